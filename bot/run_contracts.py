"""The contracts that the settings name, with every test that a contract has to pass."""

from functools import partial

from bot.contracts import Contracts
from bot.settings import Settings
from checks import CHECKS
from checks.check import threshold_problems


def contracts_of(settings: Settings, *, knows_people: bool = True) -> Contracts:
    """Return the contracts' directory, as the running bot and every command sees it.

    Args:
        settings: the whole tree.
        knows_people: whether a name that is not in ``[people]`` makes a contract unusable; the launch checklist says
            so itself.
    """
    people = frozenset(settings.people) if knows_people else None
    return Contracts(settings.bot.runs, people, (partial(threshold_problems, CHECKS),))
