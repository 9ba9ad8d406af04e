"""The ladder of escalation: what waits for a person is brought to more people, in louder ways, until one gives a sign.

It is climbed for open requests and for open critical incidents that nobody has taken on. How far it was climbed stands
on the request or incident, so each rung is taken once whatever happens to this process; what is due at one moment about
one run is one message. Read ``waiting`` for what waits, ``rungs`` for what is said to whom, ``paging`` for the pager's
side and ``signs`` for what stops it. Pure.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from bot.model.audit import AuditEntry
from bot.model.incident import Incident, Open
from bot.model.ladder import Climb, Climbed, Rung
from bot.model.plan import Request, RequestState
from bot.model.record import Record, Telling
from bot.model.run import Run
from bot.model.value import Value
from bot.model.verdict import Severity
from handlers.context import Context
from handlers.paging import follow_pages, page_about
from handlers.rungs import rung_messages
from handlers.waiting import Matter, matters_due

_READ_FIRST = timedelta(minutes=3)
"""After a start: the time in which every channel is read, so that a sign given meanwhile still counts."""
_BUDGET = timedelta(days=1)
_SPOKEN = (Rung.THREAD, Rung.MENTION, Rung.DEPUTIES)
"""What is said in the run's conversation, quiet ones first: the loudest that is due stands for the others."""


class Escalated(Value):
    """What the ladder changes for one run; all of it empty when nothing is due."""

    run: Run
    incidents: tuple[Incident, ...] = ()
    requests: tuple[Request, ...] = ()
    tell: tuple[Telling, ...] = ()
    audit: tuple[AuditEntry, ...] = ()


def escalate(record: Record, context: Context, at: datetime, *, since: datetime) -> Escalated:
    """Return what is due now.

    Args:
        record: the run.
        context: its contract, people and rules.
        at: now.
        since: when this Hero began to look after runs.
    """
    ladders = context.rules.ladders
    paged = follow_pages(record, context, at)
    ended = Escalated(run=paged.run, tell=paged.tell)
    if ladders is None:
        return ended
    kept = _keep_count(record, at)
    record = record.model_copy(update={"incidents": _merged(record.incidents, kept)})
    is_held = record.run.is_paused or at < since + _READ_FIRST
    due = () if is_held else matters_due(record, context, ladders, at)
    if not due:
        return ended.model_copy(update={"incidents": kept})
    ended = ended.model_copy(update={"incidents": kept})
    return _climb(record, context, ended, due, at, per_day=ladders.per_day)


def _keep_count(record: Record, at: datetime) -> tuple[Incident, ...]:
    """Return the incidents whose time begins to count now, or ceases to: those that people have just been told of."""
    changed: list[Incident] = []
    for incident in record.incidents:
        is_waiting = isinstance(incident.state, Open) and incident.is_told and _is_critical(incident)
        rungs = incident.climb.rungs if incident.climb else ()
        counts = incident.climb is not None and incident.climb.since is not None
        if is_waiting and not counts:
            changed.append(incident.model_copy(update={"climb": Climb(since=at, rungs=rungs)}))
        elif counts and not is_waiting:
            changed.append(incident.model_copy(update={"climb": Climb(since=None, rungs=rungs)}))
    return tuple(changed)


def _is_critical(incident: Incident) -> bool:
    return incident.finding.severity is Severity.CRITICAL


def _merged(before: tuple[Incident, ...], changed: Iterable[Incident]) -> tuple[Incident, ...]:
    by_number = {incident.number: incident for incident in (*before, *changed)}
    return tuple(by_number[incident.number] for incident in before)


def _climb(
    record: Record, context: Context, ended: Escalated, due: tuple[Matter, ...], at: datetime, *, per_day: int
) -> Escalated:
    """Take the rungs that are due, the loudest first, as far as the noise budget goes; a page is never held back."""
    recent = tuple(each for each in record.run.escalated_at if at - each < _BUDGET)
    left = per_day - len(recent)
    told: list[Telling] = []
    taken: set[Rung] = set()
    pages = ended.run.pages
    for rung in (Rung.PAGER, Rung.EMAIL, Rung.DIRECT, _loudest(due)):
        about = tuple(m for m in due if rung is not None and _covers(rung, m))
        if rung is None or not about:
            continue
        if rung is Rung.PAGER:
            pages, telling = page_about(record, context, pages, about, at)
            told += telling
        else:
            messages = rung_messages(record, context, rung, about, at)
            if len(messages) > left:
                continue
            left -= len(messages)
            told += messages
            recent += (at,) * len(messages)
        taken |= set(_SPOKEN) if rung in _SPOKEN else {rung}
    climbed = {m.name: tuple(r for r in m.due if r in taken) for m in due}
    run = ended.run.model_copy(update={"escalated_at": recent, "pages": pages})
    return Escalated(
        run=run,
        incidents=_climbed_incidents(record, ended.incidents, climbed, at),
        requests=_climbed_requests(record, climbed, at),
        tell=(*ended.tell, *told),
        audit=tuple(
            AuditEntry(at=at, run_id=record.run_id, who="hero", what="escalated", detail=f"{name}: {', '.join(rungs)}")
            for name, rungs in climbed.items()
            if rungs
        ),
    )


def _loudest(due: tuple[Matter, ...]) -> Rung | None:
    return next((rung for rung in reversed(_SPOKEN) if any(rung in m.due for m in due)), None)


def _covers(rung: Rung, matter: Matter) -> bool:
    """Whether a message of this rung is about the matter: in the conversation one message is about all that is due."""
    return any(each in matter.due for each in _SPOKEN) if rung in _SPOKEN else rung in matter.due


def _climbed_incidents(
    record: Record, kept: tuple[Incident, ...], climbed: dict[str, tuple[Rung, ...]], at: datetime
) -> tuple[Incident, ...]:
    changed = {incident.number: incident for incident in kept}
    for incident in record.incidents:
        if incident.climb is not None and (rungs := climbed.get(f"I{incident.number}")):
            changed[incident.number] = incident.model_copy(update={"climb": _after(incident.climb, rungs, at)})
    return tuple(changed.values())


def _climbed_requests(record: Record, climbed: dict[str, tuple[Rung, ...]], at: datetime) -> tuple[Request, ...]:
    return tuple(
        request.model_copy(update={"climb": _after(request.climb or Climb(since=request.asked_at), rungs, at)})
        for request in record.requests
        if request.state is RequestState.OPEN and (rungs := climbed.get(request.name))
    )


def _after(climb: Climb, rungs: tuple[Rung, ...], at: datetime) -> Climb:
    return climb.model_copy(update={"rungs": (*climb.rungs, *(Climbed(rung=rung, at=at) for rung in rungs))})
