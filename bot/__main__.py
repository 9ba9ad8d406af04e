"""``python -m bot`` is the program ``hero``."""

from bot.cli import main

main()
