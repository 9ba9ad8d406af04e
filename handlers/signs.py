"""Signs of life: what the people of a run say or do about it, by which its ladder of escalation stops. Pure.

Authority is another affair: ``handlers.gate``.
"""

from collections.abc import Iterable
from datetime import datetime

from bot.model.event import Commanded, Inbound
from bot.model.person import find_people
from bot.model.record import Record
from bot.model.run import Run
from bot.model.value import RunId
from handlers.context import Context


def attended(record: Record, event: Inbound, context: Context, at: datetime) -> Run | None:
    """Return the run with a person's sign of life on it; None when what was done is none.

    Anything that one of the run's people says, presses or commands about it counts; what was said before people were
    told of a matter does not stop its ladder, since the time is kept. Authority is another affair: ``handlers.gate``.
    """
    run = record.run
    is_calm = record.open_request is None and not any(i.is_open for i in record.incidents)
    if is_calm or event.actor.is_bot or event.kind == "unsaid":
        return None
    people = find_people(event.actor, context.people)
    if len(people) != 1 or people[0].name not in {*context.contract.approvers, *context.contract.deputies}:
        return None
    said_at = min(event.said_at, at)
    if run.attended_at is not None and run.attended_at >= said_at:
        return None
    return run.model_copy(update={"attended_at": said_at})


def runs_meant(event: Commanded, run_ids: Iterable[RunId], *, about: Iterable[RunId | None]) -> tuple[RunId, ...]:
    """Return the runs that a command is about: those that it names, and those that are known to be meant."""
    there = tuple(run_ids)
    words = event.text.split()
    meant = tuple(run_id for run_id in there if run_id in words or run_id in about)
    return meant or (there if len(there) == 1 else ())
