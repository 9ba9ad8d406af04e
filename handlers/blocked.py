"""Somebody decides about a run whose contract cannot be used: it has no effect, and that is said. Pure."""

from datetime import datetime

from bot.model.answer import Approve, Deny, parse_answer
from bot.model.audit import AuditEntry
from bot.model.event import Pressed, Said, Unsaid
from bot.model.record import Decision
from bot.model.value import RunId
from handlers import tellings


def decide_blocked(
    payload: Said | Unsaid | Pressed, run_id: RunId, problems: tuple[str, ...], at: datetime
) -> Decision:
    """Tell whoever tries to decide about a run without a contract that it has no effect, rather than be silent."""
    if payload.actor.is_bot or isinstance(payload, Unsaid):
        return Decision()
    if isinstance(payload, Said) and not isinstance(parse_answer(payload.text), Approve | Deny):
        return Decision()
    actor, place = payload.actor, payload.place
    told = tellings.answer(
        actor,
        place,
        at,
        key=f"blocked/{actor.platform}/{place.key}/{place.message}/{payload.said_at.isoformat()}",
        headline=f"Nothing can be decided about {run_id} while its contract cannot be used; nothing was changed.",
        lines=problems,
        next_="mend the file, then decide once more",
    )
    who = f"{actor.platform}:{actor.user_id}"
    detail = f"{place.key} ({place.message}): contract_blocked"
    audit = AuditEntry(at=at, run_id=run_id, who=who, what="decision_refused", detail=detail, why="contract_blocked")
    return Decision(tell=(told,), audit=(audit,))
