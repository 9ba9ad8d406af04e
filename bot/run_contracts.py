"""The contracts that the settings name, with every test that a contract has to pass."""

from functools import partial

from bot.contracts import Contracts
from bot.settings import Settings
from checks import CHECKS
from checks.check import threshold_problems


def contracts_of(settings: Settings) -> Contracts:
    """Return the contracts' directory, as the running bot and every command sees it."""
    return Contracts(settings.bot.runs, frozenset(settings.people), (partial(threshold_problems, CHECKS),))
