"""Short made-up crash texts, one module a family, in the words that schedulers, libraries and trainers use."""
