"""Time passed: requests expire or are brought up again, routine statuses fall due, a watch that stopped is noticed.

Works from what is on record alone, so that it speaks even when no source answers and no check gets through.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from bot.model.audit import AuditEntry
from bot.model.delivery import ChannelName, Told
from bot.model.durations import say_duration
from bot.model.incident import News, open_incident
from bot.model.plan import Request, RequestState
from bot.model.reading import Gap
from bot.model.record import Decision, Record, Telling
from bot.model.run import RunState
from bot.model.update import UpdateKind
from bot.model.value import CheckId
from bot.model.verdict import Fail, Finding, Pass, Severity, UnknownVerdict, Verdict
from bot.render.words import say_state, say_time, say_validity
from handlers import tellings
from handlers.context import Context, standing_of
from handlers.escalation import escalate
from handlers.plans import asks_again

UNCHECKED = CheckId("monitor.unchecked")
_AFTER_START = timedelta(minutes=5)
"""How long a Hero that was down has to catch up on its checks before it says that they are missing."""
_OVER = {RunState.COMPLETED, RunState.STOPPED}


_READ_PAST_THE_END = timedelta(minutes=3)
"""Longer than any channel takes to be read: GitHub is polled every two minutes at least."""


def decide_time_passed(
    record: Record,
    context: Context,
    at: datetime,
    *,
    since: datetime,
    noise: Told | None = None,
) -> Decision:
    """Return what the clock alone changes for one run.

    Args:
        record: the run.
        context: its contract and rules.
        at: now.
        since: when this Hero began to look after runs.
        noise: how many messages there were about it, for the routine status; None where nobody counted.
    """
    requests = tuple(changed for r in record.requests if (changed := _request_after(r, context, at, since)) is not None)
    ladder = escalate(record, context, at, since=since)
    told = [telling for request in requests for telling in _tell_request(context, record, request, at)]
    incident = _watch_over_the_watch(record, context, at, since)
    told.extend((*incident.tell, *ladder.tell))
    if not told and is_status_due(record, context, at):
        told.append(_routine_status(context, record, at, noise))
    incidents = (*incident.incidents, *ladder.incidents)
    if not told:
        run = ladder.run if ladder.run != record.run else None
        return Decision(run=run, requests=ladder.requests, incidents=incidents, audit=ladder.audit)
    audit = tuple(
        AuditEntry(at=at, run_id=record.run_id, who="hero", what=f"request_{r.state}", detail=r.name)
        for r in requests
        if r.state is RequestState.EXPIRED
    )
    run = ladder.run.model_copy(update={"last_told_at": at})
    return Decision(
        run=run,
        requests=(*requests, *ladder.requests),
        incidents=incidents,
        tell=tuple(told),
        audit=(*audit, *ladder.audit),
    )


def _request_after(request: Request, context: Context, at: datetime, since: datetime) -> Request | None:
    """Return an open request that expired or was brought up again; None when neither is due.

    An answer given in time may be read a little later, above all after a restart: the request is closed once every
    channel had the time to be read past its end. What was said after the end decides nothing anyway.
    """
    if request.state is not RequestState.OPEN:
        return None
    if at >= request.expires_at:
        is_read = at >= max(request.expires_at, since) + _READ_PAST_THE_END
        return request.model_copy(update={"state": RequestState.EXPIRED, "decided_at": at}) if is_read else None
    # With a ladder the reminder is its first rung: ``handlers.escalation``.
    is_due = at - (request.reminded_at or request.asked_at) >= context.rules.request_reminder
    if is_due and context.rules.ladders is None:
        return request.model_copy(update={"reminded_at": at})
    return None


def _tell_request(context: Context, record: Record, request: Request, at: datetime) -> tuple[Telling, ...]:
    """Bring a request up again; one that ran out is edited, and told anew: an edit rings nobody's phone."""
    if request.state is not RequestState.EXPIRED:
        return (tellings.request_reminder(context, record, request, at),)
    news = tellings.tell(
        context,
        record,
        at,
        kind=UpdateKind.ACTION_PROGRESS,
        key=f"request/{request.number}/expired",
        headline=f"{request.name} has expired without an answer; nothing was changed",
        severity=Severity.WARNING,
        evidence=(f"it was asked because: {request.reason}",),
        next_=asks_again(request),
        asks_dri=True,
    )
    return (tellings.request_closed(context, record, request, at), news)


def _watch_over_the_watch(record: Record, context: Context, at: datetime, since: datetime) -> Decision:
    """Open an incident about Hero itself when a run was not checked for two cadences, and close it again."""
    verdict = _judge_silence(record, context, at, since)
    current = next((i for i in record.incidents if i.check == UNCHECKED and i.is_open), None)
    if current is None:
        if not isinstance(verdict, Fail):
            return Decision()
        opened = open_incident(record.next_incident, record.run_id, verdict.finding, at)
        told = tellings.incident_opened(context, record, opened, at, is_failure=False)
        return Decision(incidents=(opened,), tell=(told,))
    after, news = current.after(verdict, at)
    if news is News.RESOLVED:
        return Decision(incidents=(after,), tell=(tellings.incident_resolved(context, record, after, at),))
    return Decision()


def _judge_silence(record: Record, context: Context, at: datetime, since: datetime) -> Verdict:
    """Judge from the last check; of a run that never was checked, from when Hero began to look."""
    last = record.run.last_checked_at
    silent = at - (last or since)
    is_recent = silent <= 2 * context.cadence
    if record.run.is_paused or (last is not None and is_recent):
        return Pass()
    if is_recent or at - since < _AFTER_START:
        return UnknownVerdict(reason=Gap.BUSY, detail="Hero has just started and has its first check before it")
    zone = context.rules.timezone
    finding = Finding(
        check=UNCHECKED,
        severity=Severity.WARNING,
        summary=f"Hero has not been able to check this run for {say_duration(silent)}",
        evidence=(
            f"last check: {say_time(last, zone) if last else 'none yet'}",
            f"it is due every {say_duration(context.cadence)}",
        ),
        advice="This is about Hero and says nothing about the run; see Hero's log, and watch the run by hand meanwhile",
        since_at=last or since,
    )
    return Fail(finding=finding)


def is_status_due(record: Record, context: Context, at: datetime) -> bool:
    """A routine status at least every 24 h, sooner only with news (manage-hero-run, "Run Record")."""
    last = record.run.last_told_at
    is_alive = record.instance is not None and record.run.state not in _OVER and not record.run.is_paused
    return is_alive and last is not None and at - last >= context.rules.status_every


def _routine_status(context: Context, record: Record, at: datetime, told: Told | None) -> Telling:
    standing = standing_of(record, context.contract)
    return tellings.tell(
        context,
        record,
        at,
        kind=UpdateKind.ROUTINE_STATUS,
        key=f"routine/{at.isoformat()}",
        headline=f"{say_state(standing)}, nothing new for {say_duration(context.rules.status_every)}",
        evidence=(
            *(
                f"open: I{i.number} {i.check} ({i.finding.severity}): {i.finding.summary}"
                for i in record.incidents
                if i.is_open
            ),
            *_say_told(told),
        ),
        next_=f"the next check is due within {say_duration(context.cadence)}; "
        + say_validity(at, at + context.rules.status_every + 2 * context.cadence, context.rules.timezone),
    )


def _say_told(told: Told | None) -> tuple[str, ...]:
    """Say what the noise was, so that people can tell when it is too much."""
    if told is None:
        return ()

    def say(counts: Mapping[ChannelName, int]) -> str:
        return ", ".join(f"{count} on {channel}" for channel, count in sorted(counts.items())) or "none"

    return (f"messages about this run: {say(told.day)} in the last 24h, {say(told.week)} in the last 7 days",)
