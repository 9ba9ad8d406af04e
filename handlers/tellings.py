"""The updates that handlers tell, each made in one place, so that a message can be found by its name."""

from datetime import datetime

from bot.model.action import Action, StepName
from bot.model.chart import Chart
from bot.model.conduct import STAGE_WORDS, Stage
from bot.model.delivery import ChannelName, Target
from bot.model.durations import say_duration
from bot.model.event import Place
from bot.model.incident import Incident
from bot.model.person import Actor
from bot.model.plan import Request, RequestState
from bot.model.record import Record, Telling
from bot.model.run import RunState
from bot.model.update import Choice, Update, UpdateKind
from bot.model.verdict import Severity
from bot.render.words import STATE_WORDS, say_time, say_validity
from handlers.charts import chart_of
from handlers.context import Context, standing_of
from handlers.costs import decide_by_line, failure_costs, idle_line, next_save_line, replay_line, running_costs
from handlers.plans import asks_again, plan_lines, question_of


def tell(
    context: Context,
    record: Record,
    at: datetime,
    *,
    kind: UpdateKind,
    key: str,
    headline: str,
    severity: Severity = Severity.INFO,
    evidence: tuple[str, ...] = (),
    plan: tuple[str, ...] = (),
    next_: str = "",
    asks_dri: bool = False,
    choice: Choice | None = None,
    chart: Chart | None = None,
    slot: str = "",
) -> Telling:
    """Return an update about a run for all of its channels."""
    update = Update(
        kind=kind,
        run_id=record.run_id,
        at=at,
        severity=severity,
        headline=headline,
        standing=standing_of(record, context.contract),
        evidence=evidence,
        plan=plan,
        next=next_,
        asked=context.contract.dri if asks_dri else None,
        choice=choice,
        chart=chart,
    )
    channels = context.channels_for(kind)
    return Telling(update=update, key=f"{record.run_id}/{key}", channels=channels, target=Target(slot=slot))


def live_status(context: Context, record: Record, at: datetime) -> Telling:
    """Return the status that is edited in place after every check."""
    open_incidents = tuple(
        f"I{i.number} {i.check} ({i.finding.severity}) since {say_time(i.opened_at, context.rules.timezone)}: "
        f"{i.finding.summary}"
        for i in record.incidents
        if i.is_open
    )
    telling = tell(
        context,
        record,
        at,
        kind=UpdateKind.LIVE_STATUS,
        key=f"live/{at.isoformat()}",
        headline=_live_headline(record),
        severity=max(
            (i.finding.severity for i in record.incidents if i.is_open),
            key=lambda s: s.rank,
            default=Severity.INFO,
        ),
        evidence=open_incidents,
        next_=_live_next(context, record, at),
        slot="live",
    )
    # A terminal cannot edit what it has shown.
    editable = tuple(name for name in telling.channels if name is not ChannelName.CONSOLE)
    return telling.model_copy(update={"channels": editable})


def _live_next(context: Context, record: Record, at: datetime) -> str:
    """What is waited for, and until when to believe all this; a watch that somebody paused is no dead one."""
    if record.run.is_paused:
        return f"the watch is paused, nothing here is renewed; `/hero resume {record.run_id}` starts it again"
    asked = record.open_request
    zone = context.rules.timezone
    validity = say_validity(at, at + 2 * context.cadence, zone)
    if asked is not None:
        until = say_time(asked.expires_at, zone)
        return f"{asked.name} waits for {asked.dri} until {until}: {asked.reason.rstrip('.')}; {validity}"
    return f"the next check is due within {say_duration(context.cadence)}; {validity}"


def _live_headline(record: Record) -> str:
    if record.run.is_paused:
        return "not watched now: the watch is paused"
    alive = sorted((i for i in record.incidents if i.is_open), key=lambda i: (-i.finding.severity.rank, i.number))
    words = [STATE_WORDS[record.run.state], *_trial_words(record)]
    if (asked := record.open_request) is not None:
        words.append(f"{asked.name} waits for {asked.dri}")
    if alive:
        more = f", and {len(alive) - 1} more" if len(alive) > 1 else ""
        words.append(f"I{alive[0].number}: {alive[0].finding.summary.rstrip('.')}{more}")
    else:
        words.append("no open incident")
    return "; ".join(words)


def _trial_words(record: Record) -> tuple[str, ...]:
    """Say that a trial is under way, and how far it is; of either of its two runs."""
    trial = record.run.trial
    if trial is not None and not trial.is_over:
        return (f"trial of {trial.plan.child_run_id}: {STAGE_WORDS[trial.stage]}",)
    if record.trial_of is not None and record.trial_stage not in {None, Stage.CLOSED}:
        return (f"on trial in the place of {record.trial_of}",)
    return ()


def promoted(context: Context, record: Record, reason: str, at: datetime) -> Telling:
    """Tell that a diagnostic's record is kept where others find it from now on, and why."""
    return tell(
        context,
        record,
        at,
        kind=UpdateKind.ROUTINE_STATUS,
        key="promoted",
        headline=f"this diagnostic goes on record: {reason}",
        evidence=("a bounded diagnostic has no issue of its own until it needs one; its record so far is kept whole",),
        next_='set kind = "production" in its contract when it is to be looked after as one',
    )


def incident_opened(context: Context, record: Record, incident: Incident, at: datetime, *, is_failure: bool) -> Telling:
    """Tell of a new incident; the end of the run's job goes out as a failure."""
    finding = incident.finding
    return tell(
        context,
        record,
        at,
        kind=UpdateKind.FAILED if is_failure else UpdateKind.INCIDENT_OPENED,
        key=f"incident/{incident.number}/opened",
        headline=finding.summary,
        severity=finding.severity,
        evidence=_evidence(context, record, incident, at),
        next_=finding.advice,
        asks_dri=finding.severity is Severity.CRITICAL,
        chart=chart_of(record) if is_failure else None,
        slot="" if is_failure else f"incident:{incident.number}",
    )


def incident_worse(context: Context, record: Record, incident: Incident, at: datetime) -> Telling:
    """Tell that an open incident is graver than it was told to be."""
    finding = incident.finding
    return tell(
        context,
        record,
        at,
        kind=UpdateKind.INCIDENT_OPENED,
        key=f"incident/{incident.number}/worse/{finding.severity}",
        headline=f"I{incident.number} is now {finding.severity}: {finding.summary}",
        severity=finding.severity,
        evidence=_evidence(context, record, incident, at),
        next_=finding.advice,
        asks_dri=finding.severity is Severity.CRITICAL,
    )


def silence_ended(context: Context, record: Record, incident: Incident, at: datetime) -> Telling:
    """Tell that a silence has run out and the matter is still there."""
    finding = incident.finding
    return tell(
        context,
        record,
        at,
        kind=UpdateKind.INCIDENT_OPENED,
        key=f"incident/{incident.number}/silence-ended/{at.isoformat()}",
        headline=f"the silence over I{incident.number} has ended and it is still there: {finding.summary}",
        severity=finding.severity,
        evidence=_evidence(context, record, incident, at),
        next_=finding.advice,
        asks_dri=finding.severity is Severity.CRITICAL,
    )


def storm(context: Context, record: Record, incidents: tuple[Incident, ...], at: datetime) -> Telling:
    """Tell many findings that opened at one check as one message, the gravest first."""
    ordered = sorted(incidents, key=lambda i: (-i.finding.severity.rank, i.number))
    worst = ordered[0].finding
    numbers = "-".join(str(i.number) for i in ordered)
    return tell(
        context,
        record,
        at,
        kind=UpdateKind.INCIDENT_OPENED,
        key=f"incident/{numbers}/opened",
        headline=f"{len(ordered)} things at once, the gravest: {worst.summary}",
        severity=worst.severity,
        evidence=(
            *(f"I{i.number} {i.check} ({i.finding.severity}): {i.finding.summary}" for i in ordered),
            *_costs(context, record, ordered[0], at),
        ),
        next_=worst.advice,
        asks_dri=worst.severity is Severity.CRITICAL,
    )


def incident_resolved(context: Context, record: Record, incident: Incident, at: datetime) -> Telling:
    """Tell that an incident is over; edits the message that told of it where there is one."""
    return tell(
        context,
        record,
        at,
        kind=UpdateKind.INCIDENT_RESOLVED,
        key=f"incident/{incident.number}/resolved",
        headline=f"I{incident.number} is over after {say_duration(at - incident.opened_at)}; it was: "
        f"{incident.finding.summary}",
        evidence=(_which_since(context, incident),),
        next_="nothing to do; Hero goes on watching",
    )


def _evidence(context: Context, record: Record, incident: Incident, at: datetime) -> tuple[str, ...]:
    """By what name, the most telling evidence, what it costs, then all the rest: what is cut is cut from the end."""
    first, rest = incident.finding.evidence[:1], incident.finding.evidence[1:]
    return (_which_since(context, incident), *first, *_costs(context, record, incident, at), *rest)


def _costs(context: Context, record: Record, incident: Incident, at: datetime) -> tuple[str, ...]:
    """What is at stake, where it helps to decide: a warning about a run that trains on needs no sums."""
    if incident.finding.severity is not Severity.CRITICAL and not incident.check.startswith("progress."):
        return ()
    is_alive = record.run.state is RunState.RUNNING
    return running_costs(record, context, at) if is_alive else failure_costs(record, context, at)


def _which_since(context: Context, incident: Incident) -> str:
    """``I4 progress.stalled, since step 812, 2026-11-29 03:00 UTC``: what people call it by, and how old it is."""
    finding = incident.finding
    step = f"step {finding.since_step}, " if finding.since_step is not None else ""
    since = say_time(finding.since_at or incident.opened_at, context.rules.timezone)
    return f"I{incident.number} {incident.check}, since {step}{since}"


def request_asked(context: Context, record: Record, request: Request, at: datetime, extra: tuple[str, ...]) -> Telling:
    """Put a plan to the DRI: the plan's lines whole, the reason as evidence, and how and until when to answer."""
    return tell(
        context,
        record,
        at,
        kind=UpdateKind.REQUEST_ASKED,
        key=f"request/{request.number}/asked",
        headline=f"{request.name}: may Hero {question_of(request.plan, record)}?",
        severity=Severity.CRITICAL,
        evidence=(f"why: {request.reason}", *_stakes(context, record, request, at), *extra),
        plan=plan_lines(request.plan),
        next_=(
            f"{request.dri}, reply `approve {request.name}` or `deny {request.name} because …` in this thread by "
            f"{say_time(request.expires_at, context.rules.timezone)}; nothing is changed before that"
        ),
        asks_dri=True,
        choice=Choice(request=request.name, is_open=True),
        slot=f"request:{request.number}",
    )


def request_reminder(context: Context, record: Record, request: Request, at: datetime) -> Telling:
    """Bring an unanswered request up again."""
    return tell(
        context,
        record,
        at,
        kind=UpdateKind.REQUEST_REMINDER,
        key=f"request/{request.number}/reminder/{at.isoformat()}",
        headline=f"{request.name} still waits for an answer: {question_of(request.plan, record)}?",
        severity=Severity.CRITICAL,
        evidence=(
            f"why: {request.reason}",
            *_stakes(context, record, request, at),
            f"asked {say_time(request.asked_at, context.rules.timezone)}",
        ),
        next_=(
            f"{request.dri}, reply `approve {request.name}` or `deny {request.name} because …`; it expires "
            f"{say_time(request.expires_at, context.rules.timezone)}; nothing is changed before that"
        ),
        asks_dri=True,
    )


def _stakes(context: Context, record: Record, request: Request, at: datetime) -> tuple[str, ...]:
    """What waiting costs, and until when the answer fits the working hours of whoever gives it."""
    is_relaunch = request.plan.kind == "relaunch" and record.instance is not None
    idle = idle_line(record, context, at) if is_relaunch else None
    is_stop = request.plan.kind == "stop"
    lost = replay_line(record, context, record.run.progress.checkpoint_step) if is_stop else None
    save = next_save_line(record, at) if is_stop or is_relaunch else None
    return tuple(line for line in (idle, lost, save, decide_by_line(request, context, at)) if line is not None)


_ENDINGS = {
    RequestState.GRANTED: "approved",
    RequestState.DENIED: "denied",
    RequestState.EXPIRED: "expired unanswered",
    RequestState.VOID: "void: what would be done has changed",
    RequestState.WITHDRAWN: "withdrawn",
    RequestState.OPEN: "open",
}


_ASKED_ANEW = frozenset({"relaunch", "cutover", "go", "rollback"})
"""The kinds of plan that Hero puts again by itself when what would be done has changed."""


def _after_ending(request: Request) -> str:
    """Say what comes of a request that nobody can answer any more."""
    again = asks_again(request)
    anew = "Hero asks anew with the difference" if request.plan.kind in _ASKED_ANEW else again
    no = "it is a no-go: the old run is launched again" if request.plan.kind == "go" else f"nothing is changed; {again}"
    return {
        RequestState.GRANTED: "Hero reads the world once more, carries the plan out if it still holds, and reports",
        RequestState.DENIED: no,
        RequestState.EXPIRED: f"nothing was changed, and Hero does not ask again by itself; {again}",
        RequestState.VOID: f"nothing was changed; {anew}",
        RequestState.WITHDRAWN: f"nothing was changed and nothing is to be decided; {again} if it is needed after all",
        RequestState.OPEN: f"{request.dri} decides",
    }[request.state]


def request_closed(context: Context, record: Record, request: Request, at: datetime) -> Telling:
    """Edit the request's message: its outcome stands where the buttons were."""
    return tell(
        context,
        record,
        at,
        kind=UpdateKind.REQUEST_ANSWERED,
        key=f"request/{request.number}/closed/{request.state}",
        headline=f"{request.name} {say_outcome(request, context.rules.timezone)}",
        evidence=(f"it was asked because: {request.reason}",),
        plan=plan_lines(request.plan),
        next_=_after_ending(request),
        choice=Choice(request=request.name, is_open=False, outcome=say_outcome(request, context.rules.timezone)),
        slot=f"request:{request.number}",
    )


_WHERE = {"slack": "in Slack", "discord": "in Discord", "github": "on GitHub", "console": "at the terminal"}


def say_outcome(request: Request, timezone: str) -> str:
    """``approved by alice in Slack at 2026-11-29 03:00 UTC``: the other channels show where it was decided."""
    words = _ENDINGS[request.state]
    if request.decided_by:
        where = _WHERE.get(request.decided_via.partition(":")[0], "")
        words += f" by {request.decided_by} {where}".rstrip()
    if request.decided_at:
        words += f" at {say_time(request.decided_at, timezone)}"
    return f"{words} ({request.note})" if request.note else words


def action_told(
    context: Context,
    record: Record,
    action: Action,
    at: datetime,
    *,
    kind: UpdateKind,
    key: str,
    headline: str,
    severity: Severity = Severity.INFO,
    evidence: tuple[str, ...] = (),
    next_: str = "",
    asks_dri: bool = False,
) -> Telling:
    """Tell how an action goes; the doubts that were told of it before are over with this."""
    told = tell(
        context,
        record,
        at,
        kind=kind,
        key=f"action/{action.number}/{key}",
        headline=headline,
        severity=severity,
        evidence=evidence,
        next_=next_,
        asks_dri=asks_dri,
    )
    keys = (doubt_key(step) for step in StepName)
    doubts = tuple(f"{record.run_id}/action/{action.number}/{doubt}" for doubt in keys if doubt != key)
    return told.model_copy(update={"replaces": doubts})


def doubt_key(step: StepName | None) -> str:
    """Return under which key it is told once that it is not known how a step went."""
    return f"uncertain/{step}"


def answer(
    actor: Actor,
    place: Place,
    at: datetime,
    *,
    key: str,
    headline: str,
    lines: tuple[str, ...] = (),
    next_: str = "",
) -> Telling:
    """Answer somebody where they spoke, for their eyes alone where the platform can."""
    return Telling(
        update=Update(kind=UpdateKind.ANSWER, run_id=None, at=at, headline=headline, evidence=lines, next=next_),
        key=f"answer/{key}",
        channels=(ChannelName(actor.platform.value),),
        target=Target(private_to=actor.user_id, conversation=place.conversation, thread=place.thread),
    )
