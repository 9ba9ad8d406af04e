"""The ladder of escalation: what waits for a person is brought to more people, in louder ways, until one gives a sign.

It is climbed for open requests and for open critical incidents that nobody has taken on. How far it was climbed stands
on the request or incident, so each rung is taken once whatever happens to this process; what is due at one moment about
one run is one message. Pure.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal, assert_never

from bot.model.audit import AuditEntry
from bot.model.delivery import ChannelName, Target
from bot.model.durations import say_duration
from bot.model.event import Commanded, Inbound
from bot.model.incident import Incident, Open
from bot.model.ladder import Climb, Climbed, Ladder, Ladders, OpenPage, Page, PageStatus, Rung
from bot.model.person import Person, find_people
from bot.model.plan import Request, RequestState
from bot.model.record import Record, Telling
from bot.model.run import Run
from bot.model.update import UpdateKind
from bot.model.value import PersonName, RunId, Value
from bot.model.verdict import Severity
from bot.render.words import say_time
from handlers import tellings
from handlers.context import Context
from handlers.plans import question_of

_READ_FIRST = timedelta(minutes=3)
"""After a start: the time in which every channel is read, so that a sign given meanwhile still counts."""
_BUDGET = timedelta(days=1)
_SPOKEN = (Rung.THREAD, Rung.MENTION, Rung.DEPUTIES)
"""What is said in the run's conversation, quiet ones first: the loudest that is due stands for the others."""
_WORDS = {
    Rung.THREAD: "reminder in the conversation",
    Rung.MENTION: "mention of the DRI",
    Rung.DIRECT: "direct message",
    Rung.DEPUTIES: "the deputies",
    Rung.EMAIL: "e-mail",
    Rung.PAGER: "pager",
}
_MOST_SHOWN = 10


class Escalated(Value):
    """What the ladder changes for one run; all of it empty when nothing is due."""

    run: Run
    incidents: tuple[Incident, ...] = ()
    requests: tuple[Request, ...] = ()
    tell: tuple[Telling, ...] = ()
    audit: tuple[AuditEntry, ...] = ()


class _Matter(Value):
    """One thing that waits for a person."""

    kind: Literal["incident", "request"]
    number: int
    name: str
    """``I4`` or ``R7``."""
    says: str
    stops: str
    """What somebody says or does to stop the ladder."""
    is_critical: bool
    climb: Climb
    since: datetime
    due: tuple[Rung, ...] = ()


def escalate(record: Record, context: Context, at: datetime, *, since: datetime) -> Escalated:
    """Return what is due now.

    Args:
        record: the run.
        context: its contract, people and rules.
        at: now.
        since: when this Hero began to look after runs.
    """
    ladders = context.rules.ladders
    ended = _follow_pages(record, context, at)
    if ladders is None:
        return ended
    kept = _keep_count(record, at)
    record = record.model_copy(update={"incidents": _merged(record.incidents, kept)})
    is_held = record.run.is_paused or at < since + _READ_FIRST
    due = () if is_held else _due(record, context, ladders, at)
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


def _due(record: Record, context: Context, ladders: Ladders, at: datetime) -> tuple[_Matter, ...]:
    """Return what waits and has a rung before it now, the gravest and oldest first."""
    found = [
        matter.model_copy(update={"due": rungs})
        for matter in _matters(record, at)
        if (rungs := _rungs_due(matter, ladders, context, at))
    ]
    return tuple(sorted(found, key=lambda m: (not m.is_critical, m.since, m.name)))


def _matters(record: Record, at: datetime) -> tuple[_Matter, ...]:
    """Return what waits for a person and has had no sign since people were told of it."""
    waiting = [r for r in record.requests if r.state is RequestState.OPEN and at < r.expires_at]
    # A question about an incident speaks for it as well; and what is being carried out is under way to its end.
    spoken_for = {r.incident for r in waiting}
    free = () if record.active_action is not None else record.incidents
    matters = [
        *(_of_request(r, record) for r in waiting),
        *(m for i in free if i.number not in spoken_for and (m := _of_incident(i, record)) is not None),
    ]
    sign = record.run.attended_at
    return tuple(m for m in matters if sign is None or sign < m.since)


def _of_request(request: Request, record: Record) -> _Matter:
    climb = request.climb or Climb(since=request.asked_at)
    since, sign = request.asked_at, record.run.attended_at
    told = next((i.climb.since for i in record.incidents if i.number == request.incident and i.climb), None)
    if told is not None and told < since and (sign is None or sign < told):
        # Nobody has reacted to the incident yet: a question that is put anew does not begin the ladder anew.
        since, climb = told, climb.model_copy(update={"rungs": (*_rungs_about(request.incident, record), *climb.rungs)})
    return _Matter(
        kind="request",
        number=request.number,
        name=request.name,
        says=f"may Hero {question_of(request.plan, record)}?",
        stops=f"`approve {request.name}` or `deny {request.name} because …` in the run's conversation",
        is_critical=request.plan.kind == "relaunch" and request.incident is not None,
        climb=climb,
        since=since,
    )


def _rungs_about(incident: int | None, record: Record) -> tuple[Climbed, ...]:
    """Return the rungs that were taken for an incident: for itself, and for the questions that it led to."""
    itself = (i.climb for i in record.incidents if i.number == incident)
    asked = (r.climb for r in record.requests if incident is not None and r.incident == incident)
    return tuple(each for climb in (*itself, *asked) if climb is not None for each in climb.rungs)


def _of_incident(incident: Incident, record: Record) -> _Matter | None:
    climb = incident.climb
    if climb is None or climb.since is None or not isinstance(incident.state, Open):
        return None
    name = f"I{incident.number}"
    return _Matter(
        kind="incident",
        number=incident.number,
        name=name,
        says=f"{incident.check}: {incident.finding.summary}",
        stops=f"`/hero ack {name}` (you look after it)",
        is_critical=True,
        climb=climb.model_copy(update={"rungs": _rungs_about(incident.number, record)}),
        since=climb.since,
    )


def _rungs_due(matter: _Matter, ladders: Ladders, context: Context, at: datetime) -> tuple[Rung, ...]:
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
            return bool(_accounts(context, (context.contract.dri,)))
        case Rung.DEPUTIES:
            return bool(context.contract.deputies)
        case Rung.EMAIL:
            return ChannelName.EMAIL in context.alerts
        case Rung.PAGER:
            return ChannelName.PAGER in context.alerts
        case _:
            assert_never(rung)


def _accounts(context: Context, names: Iterable[PersonName]) -> tuple[tuple[PersonName, ChannelName, str], ...]:
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


def _climb(
    record: Record, context: Context, ended: Escalated, due: tuple[_Matter, ...], at: datetime, *, per_day: int
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
            pages, telling = _page(record, context, pages, about, at)
            told += telling
        else:
            messages = _messages(record, context, rung, about, at)
            if len(messages) > left:
                continue
            left -= len(messages)
            told += messages
            recent += (at,) * len(messages)
        taken |= set(_SPOKEN) if rung in _SPOKEN else {rung}
    climbed = {m.name: tuple(r for r in m.due if r in taken) for m in due}
    run = ended.run.model_copy(update={"escalated_at": recent, "pages": pages})
    return Escalated(
        run=run.model_copy(update={"last_told_at": at}) if told else run,
        incidents=_climbed_incidents(record, ended.incidents, climbed, at),
        requests=_climbed_requests(record, climbed, at),
        tell=(*ended.tell, *told),
        audit=tuple(
            AuditEntry(at=at, run_id=record.run_id, who="hero", what="escalated", detail=f"{name}: {', '.join(rungs)}")
            for name, rungs in climbed.items()
            if rungs
        ),
    )


def _loudest(due: tuple[_Matter, ...]) -> Rung | None:
    return next((rung for rung in reversed(_SPOKEN) if any(rung in m.due for m in due)), None)


def _covers(rung: Rung, matter: _Matter) -> bool:
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


def _messages(
    record: Record, context: Context, rung: Rung, about: tuple[_Matter, ...], at: datetime
) -> tuple[Telling, ...]:
    """Return the messages of one rung: in the conversation, to each account, or by mail."""
    dri, deputies = context.contract.dri, context.contract.deputies
    direct: tuple[tuple[PersonName, ChannelName, str], ...] = ()
    spoken: tuple[Telling, ...] = ()
    match rung:
        case Rung.THREAD:
            spoken = (_say(record, context, rung, about, at),)
        case Rung.MENTION:
            spoken = (_say(record, context, rung, about, at, asked=(dri,)),)
        case Rung.DEPUTIES:
            spoken = (_say(record, context, rung, about, at, asked=(dri, *deputies)),)
            direct = _accounts(context, deputies)
        case Rung.DIRECT:
            direct = _accounts(context, (dri,))
        case Rung.EMAIL:
            asked = (dri, *(deputies if any(m.is_critical for m in about) else ()))
            mail = _say(record, context, rung, about, at, asked=asked)
            spoken = (mail.model_copy(update={"channels": (ChannelName.EMAIL,)}),)
        case Rung.PAGER:
            pass
        case _:
            assert_never(rung)
    return (
        *spoken,
        *(
            _direct(record, context, rung, about, at, to=name, channel=channel, account=a)
            for name, channel, a in direct
        ),
    )


def _direct(
    record: Record,
    context: Context,
    rung: Rung,
    about: tuple[_Matter, ...],
    at: datetime,
    *,
    to: PersonName,
    channel: ChannelName,
    account: str,
) -> Telling:
    said = _say(record, context, rung, about, at, asked=(to,))
    return said.model_copy(
        update={"key": f"{said.key}/{to}", "channels": (channel,), "target": Target(direct_to=account)}
    )


def _say(
    record: Record,
    context: Context,
    rung: Rung,
    about: tuple[_Matter, ...],
    at: datetime,
    *,
    asked: tuple[PersonName, ...] = (),
) -> Telling:
    """Say what it is about, since when, what was tried, and how it stops."""
    first = about[0]
    waited = say_duration(at - first.since)
    headline = f"{first.name} has waited {waited} for a person: {first.says}"
    if len(about) > 1:
        headline = f"{len(about)} things wait for a person, the first since {waited}: {first.name}, {first.says}"
    telling = tellings.tell(
        context,
        record,
        at,
        kind=UpdateKind.ESCALATION,
        key=f"escalation/{'-'.join(m.name for m in about)}/{rung}/{at.isoformat()}",
        headline=headline,
        severity=Severity.CRITICAL if any(m.is_critical for m in about) else Severity.WARNING,
        evidence=_evidence(context, about),
        next_=_how_to_stop(record, about),
    )
    also = tuple(name for name in dict.fromkeys(asked[1:]) if name != asked[0])
    update = telling.update.model_copy(update={"asked": asked[0] if asked else None, "also_asked": also})
    return telling.model_copy(update={"update": update})


def _evidence(context: Context, about: tuple[_Matter, ...]) -> tuple[str, ...]:
    zone = context.rules.timezone
    lines: list[str] = []
    for matter in about[:_MOST_SHOWN]:
        lines.append(f"{matter.name} {matter.says}; told {say_time(matter.since, zone)}")
        rungs = sorted({(each.at, each.rung) for each in matter.climb.rungs})
        tried = ", ".join(f"{_WORDS[rung]} {say_time(at, zone)}" for at, rung in rungs)
        lines.append(f"{matter.name} tried so far: {tried or 'the first message in the conversation'}")
    if len(about) > _MOST_SHOWN:
        lines.append(f"and {len(about) - _MOST_SHOWN} more: `/hero incidents {context.contract.run_id}`")
    return tuple(lines)


def _how_to_stop(record: Record, about: tuple[_Matter, ...]) -> str:
    how = "; ".join(matter.stops for matter in about[:3])
    link = _link(record)
    return f"to stop this: {how}, or say anything in the run's conversation{f': {link}' if link else ''}"


def _link(record: Record) -> str:
    """Return where the run is talked about, for those who are told elsewhere."""
    return next((posted.link for posted in record.posted if posted.slot == "thread" and posted.link), "")


def _page(
    record: Record, context: Context, pages: tuple[OpenPage, ...], about: tuple[_Matter, ...], at: datetime
) -> tuple[tuple[OpenPage, ...], tuple[Telling, ...]]:
    """Call somebody; who is being called about this run already is not called a second time."""
    names = tuple(matter.name for matter in about)
    ringing = next((page for page in pages if not page.is_acknowledged), None)
    if ringing is not None:
        longer = ringing.model_copy(update={"about": tuple(dict.fromkeys((*ringing.about, *names)))})
        return tuple(longer if page is ringing else page for page in pages), ()
    page = OpenPage(name=names[0], about=names)
    said = _say(record, context, Rung.PAGER, about, at, asked=(context.contract.dri,))
    return (*pages, page), (_paged(record, said, page, PageStatus.TRIGGER),)


def _paged(record: Record, telling: Telling, page: OpenPage, status: PageStatus) -> Telling:
    key = f"hero/{record.run_id}/{page.name}"
    update = telling.update.model_copy(update={"page": Page(key=key, status=status, link=_link(record))})
    # One slot a page: a call that has not gone out yet is dropped when it is over.
    target = Target(slot=f"page:{page.name}")
    return telling.model_copy(update={"update": update, "channels": (ChannelName.PAGER,), "target": target})


def _follow_pages(record: Record, context: Context, at: datetime) -> Escalated:
    """Tell the pager what has ended, and what somebody has given a sign of."""
    if ChannelName.PAGER not in context.alerts:
        return Escalated(run=record.run.model_copy(update={"pages": ()}) if record.run.pages else record.run)
    pages: list[OpenPage] = []
    told: list[Telling] = []
    unattended = {m.name for m in _matters(record, at)}
    still = {
        *(f"I{i.number}" for i in record.incidents if i.is_open),
        *(r.name for r in record.requests if r.state is RequestState.OPEN),
    }
    for page in record.run.pages:
        if not still.intersection(page.about):
            told.append(_page_news(record, context, page, PageStatus.RESOLVE, at))
        elif not page.is_acknowledged and not unattended.intersection(page.about):
            told.append(_page_news(record, context, page, PageStatus.ACKNOWLEDGE, at))
            pages.append(page.model_copy(update={"is_acknowledged": True}))
        else:
            pages.append(page)
    run = record.run.model_copy(update={"pages": tuple(pages)}) if told else record.run
    return Escalated(run=run, tell=tuple(told))


def _page_news(record: Record, context: Context, page: OpenPage, status: PageStatus, at: datetime) -> Telling:
    names = ", ".join(page.about)
    telling = tellings.tell(
        context,
        record,
        at,
        kind=UpdateKind.ESCALATION,
        key=f"page/{page.name}/{status}/{at.isoformat()}",
        headline=f"{names}: {'over' if status is PageStatus.RESOLVE else 'somebody looks after it'}",
    )
    return _paged(record, telling, page, status)


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
