"""What is said of the name of a check that there is not: whoever mistypes one is not shown something else."""

from bot.model.wording import nearest
from checks import CHECKS
from checks.preflight import ITEMS

NAMES: frozenset[str] = frozenset((*(check.id for check in CHECKS), *(item.id for item in ITEMS)))
"""The checks of a run, and the items of the launch checklist."""


def no_such_check(name: str) -> str | None:
    """Return ``There is no check …`` with the one that is most like it; None for one that there is."""
    if name in NAMES:
        return None
    guess = nearest(name[:80], sorted(NAMES))
    return f"There is no check {name[:80]}" + (f"; {guess}" if guess else "; `checks` lists those there are.")
