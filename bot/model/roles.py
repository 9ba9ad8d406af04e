"""Who has which part in a run, and how a part goes from one person to another: offered by one, confirmed by both."""

from enum import StrEnum

from pydantic import AwareDatetime

from bot.model.contract import Contract
from bot.model.value import PersonName, Value


class Role(StrEnum):
    DRI = "dri"
    """Decides every request."""
    OWNER = "owner"
    """Looks after the monitoring; there is one."""
    DEPUTY = "deputy"
    """Stands in for the DRI."""


class Handover(Value):
    """A part that is offered or asked for, until the other of the two has said yes."""

    role: Role
    giver: PersonName
    """Who has it, or for a part that nobody has, the DRI."""
    taker: PersonName
    by: PersonName
    """The one of the two who began it."""
    at: AwareDatetime
    expires_at: AwareDatetime

    @property
    def waits_for(self) -> PersonName:
        """The one whose yes is missing."""
        return self.taker if self.by == self.giver else self.giver


class HeldRole(Value):
    """A part that was handed over, confirmed by both."""

    role: Role
    person: PersonName
    instead_of: PersonName | None
    """Whom the contract's file named then; while it still does, this counts, and an edit of the file counts more."""
    at: AwareDatetime


def with_roles(contract: Contract, roles: tuple[HeldRole, ...]) -> Contract:
    """Return the contract as it is meant since the hand-overs; the file itself is nobody's but its owner's."""
    update: dict[str, object] = {}
    for held in roles:
        match held.role:
            case Role.DRI if contract.dri == held.instead_of:
                update["dri"] = held.person
            case Role.OWNER if contract.owner == held.instead_of:
                update["owner"] = held.person
            case Role.DEPUTY if held.person not in contract.deputies:
                update["deputies"] = (*contract.deputies, held.person)
            case _:
                pass
    return contract.model_copy(update=update) if update else contract
