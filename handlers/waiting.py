"""What waits for a person: open requests and open critical incidents that nobody reacted to, and what is due. Pure."""

from collections.abc import Iterable
from datetime import datetime
from typing import assert_never

from bot.model.delivery import ChannelName
from bot.model.incident import Acknowledged, Incident, Open, Silenced
from bot.model.ladder import Climb, Climbed, Ladder, Ladders, Rung
from bot.model.person import Person
from bot.model.plan import Request, RequestState
from bot.model.record import Record
from bot.model.value import PersonName, Value
from handlers.context import Context
from handlers.plans import question_of


class Matter(Value):
    """One thing that waits for a person."""

    name: str
    """``I4`` or ``R7``."""
    says: str
    more: str
    """What somebody who is woken by it has to know besides: why it is asked, or what to do."""
    stops: str
    """What somebody says or does to stop the ladder."""
    is_critical: bool
    climb: Climb
    since: datetime
    due: tuple[Rung, ...] = ()


def matters_due(record: Record, context: Context, ladders: Ladders, at: datetime) -> tuple[Matter, ...]:
    """Return what waits and has a rung before it now, the gravest and oldest first."""
    found = [
        matter.model_copy(update={"due": rungs})
        for matter in matters_of(record, at)
        if (rungs := _rungs_due(matter, ladders, context, at))
    ]
    return tuple(sorted(found, key=lambda m: (not m.is_critical, m.since, m.name)))


def matters_of(record: Record, at: datetime) -> tuple[Matter, ...]:
    """Return what waits for a person and has had no sign since people were told of it."""
    waiting = [r for r in record.requests if r.state is RequestState.OPEN and at < r.expires_at]
    # A question about an incident speaks for it as well; and what is being carried out is under way to its end.
    spoken_for = {r.incident for r in waiting}
    # Who looks after the incident looks after the question that it led to.
    taken_on = {i.number for i in record.incidents if isinstance(i.state, Acknowledged | Silenced)}
    free = () if record.active_action is not None else record.incidents
    matters = [
        *(_of_request(r, record) for r in waiting if r.incident not in taken_on),
        *(m for i in free if i.number not in spoken_for and (m := _of_incident(i, record)) is not None),
    ]
    sign = record.run.attended_at
    return tuple(m for m in matters if sign is None or sign < m.since)


def _of_request(request: Request, record: Record) -> Matter:
    climb = request.climb or Climb(since=request.asked_at)
    since, sign = request.asked_at, record.run.attended_at
    told = next((i.climb.since for i in record.incidents if i.number == request.incident and i.climb), None)
    if told is not None and told < since and (sign is None or sign < told):
        # Nobody has reacted to the incident yet: a question that is put anew does not begin the ladder anew.
        since, climb = told, climb.model_copy(update={"rungs": (*_rungs_about(request.incident, record), *climb.rungs)})
    return Matter(
        name=request.name,
        says=f"may Hero {question_of(request.plan, record)}?",
        more=f"why: {request.reason}",
        stops=_how_to_answer(request, record),
        is_critical=request.plan.kind == "rollback"
        or (request.plan.kind == "relaunch" and request.incident is not None),
        climb=climb,
        since=since,
    )


def _how_to_answer(request: Request, record: Record) -> str:
    answer = f"`approve {request.name}` or `deny {request.name} because …` in the run's conversation"
    is_there = any(i.number == request.incident and i.is_open for i in record.incidents)
    return f"{answer}, `/hero ack I{request.incident}` (you look after it)" if is_there else answer


def _rungs_about(incident: int | None, record: Record) -> tuple[Climbed, ...]:
    """Return the rungs that were taken for an incident: for itself, and for the questions that it led to."""
    itself = (i.climb for i in record.incidents if i.number == incident)
    asked = (r.climb for r in record.requests if incident is not None and r.incident == incident)
    return tuple(each for climb in (*itself, *asked) if climb is not None for each in climb.rungs)


def _of_incident(incident: Incident, record: Record) -> Matter | None:
    climb = incident.climb
    if climb is None or climb.since is None or not isinstance(incident.state, Open):
        return None
    name = f"I{incident.number}"
    return Matter(
        name=name,
        says=f"{incident.check}: {incident.finding.summary}",
        more=f"what to do: {incident.finding.advice}",
        stops=f"`/hero ack {name}` (you look after it)",
        is_critical=True,
        climb=climb.model_copy(update={"rungs": _rungs_about(incident.number, record)}),
        since=climb.since,
    )


def _rungs_due(matter: Matter, ladders: Ladders, context: Context, at: datetime) -> tuple[Rung, ...]:
    ladder = ladders.critical if matter.is_critical else ladders.warning
    return tuple(
        rung
        for rung in Rung
        if not matter.climb.has(rung)
        and (when := due_at(rung, ladder, matter.since, context, is_critical=matter.is_critical)) is not None
        and at >= when
        and _is_there(rung, context)
    )


def due_at(rung: Rung, ladder: Ladder, since: datetime, context: Context, *, is_critical: bool) -> datetime | None:
    """Return when a rung is due; None when it is off. What is not critical waits for the DRI's working hours."""
    wait = ladder.times.get(rung)
    if wait is None or (rung is Rung.THREAD and not wait):
        return None
    dri = _person(context, context.contract.dri)
    hours = dri.hours(context.rules.timezone) if dri else None
    when = since + wait
    return when if is_critical or hours is None else hours.next_open(when)


def _is_there(rung: Rung, context: Context) -> bool:
    """Whether there is a way to reach somebody so; what cannot be tried is not said to have been."""
    match rung:
        case Rung.THREAD | Rung.MENTION:
            return True
        case Rung.DIRECT:
            return bool(accounts_of(context, (context.contract.dri,)))
        case Rung.DEPUTIES:
            return bool(context.contract.deputies)
        case Rung.EMAIL:
            return ChannelName.EMAIL in context.alerts
        case Rung.PAGER:
            return ChannelName.PAGER in context.alerts
        case _:
            assert_never(rung)


def accounts_of(context: Context, names: Iterable[PersonName]) -> tuple[tuple[PersonName, ChannelName, str], ...]:
    """Return where these persons can be written to directly."""
    return tuple(
        (name, channel, account)
        for name in names
        for channel in context.channels
        if (account := _direct_account(_person(context, name), channel))
    )


def _direct_account(person: Person | None, channel: ChannelName) -> str:
    """Return a person's user id in a channel that has direct messages; empty when there is none."""
    if person is None:
        return ""
    match channel:
        case ChannelName.SLACK:
            return person.slack or ""
        case ChannelName.DISCORD:
            return person.discord or ""
        case ChannelName.GITHUB | ChannelName.CONSOLE | ChannelName.EMAIL | ChannelName.PAGER:
            return ""
        case _:
            assert_never(channel)


def _person(context: Context, name: PersonName) -> Person | None:
    return next((person for person in context.people if person.name == name), None)
