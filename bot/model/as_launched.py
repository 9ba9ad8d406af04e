"""Whether a contract still shapes the very launch that is on record. Pure."""

from itertools import chain, combinations

from bot.model.contract import Contract
from bot.model.run import Instance

_EMPTY = frozenset({"null", '""', "[]", "{}", "false"})
"""How a field that says nothing is written as JSON."""
_MOST_ADDED = 3
"""So many new fields are looked for where a launch's own are not on record; with more it takes seconds."""


def is_as_launched(contract: Contract, instance: Instance) -> bool:
    """Say it by digest: values that are not shown, as those of variables, count too.

    A field that Hero learned of since then is no difference while it is empty. A launch of which no digest is on record
    is not known to be the same.
    """
    if instance.config_digest is None:
        return False
    if not instance.shape:
        return has_digest(contract, instance.config_digest)
    if instance.config_digest == contract.config_digest:
        return True
    shape = contract.shape()
    new = shape.keys() - instance.shape.keys()
    return contract.digest_without(new) == instance.config_digest and all(shape[name] in _EMPTY for name in new)


def has_digest(contract: Contract, digest: str) -> bool:
    """Say it of a launch of which no more is on record than its ``config_digest``.

    Which fields Hero knew of then is not known. A few empty ones are left out in turn: a digest that fits is proof.
    """
    if digest == contract.config_digest:
        return True
    empty = [name for name, text in contract.shape().items() if text in _EMPTY]
    guesses = chain.from_iterable(combinations(empty, count) for count in range(1, _MOST_ADDED + 1))
    return any(contract.digest_without(guess) == digest for guess in guesses)
