"""The contracts that the settings name, with every test that a contract has to pass."""

from functools import partial

from bot.contracts import Contracts, ContractTest
from bot.model.contract import Contract
from bot.model.wording import Wrong
from bot.redaction import Redactor
from bot.secret_names import is_secret_name
from bot.settings import Settings
from checks import CHECKS
from checks.check import threshold_problems

_SHORTEST = 8


def contracts_of(settings: Settings, *, knows_people: bool = True, redactor: Redactor | None = None) -> Contracts:
    """Return the contracts' directory, as the running bot and every command sees it.

    Args:
        settings: the whole tree.
        knows_people: whether a name that is not in ``[people]`` makes a contract unusable; the launch checklist says
            so itself.
        redactor: learns what the contracts' own variables keep secret, so that it is hidden wherever it shows.
    """
    people = frozenset(settings.people) if knows_people else None
    tests: tuple[ContractTest, ...] = (partial(threshold_problems, CHECKS),)
    if redactor is not None:
        tests = (partial(_learn, redactor), *tests)
    return Contracts(settings.bot.runs, people, tests)


def secrets_of(contract: Contract) -> tuple[str, ...]:
    """Return the values of the contract's variables whose names announce a secret; short ones may be any word."""
    named = (value for name, value in contract.environment.items() if is_secret_name(name))
    return tuple(value for value in named if len(value) >= _SHORTEST)


def _learn(redactor: Redactor, contract: Contract) -> tuple[Wrong, ...]:
    redactor.learn(secrets_of(contract))
    return ()
