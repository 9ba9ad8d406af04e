"""What somebody needs to know who comes back: what changed since they looked, the gravest first. Pure."""

import itertools
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from pydantic import AwareDatetime, ValidationError

from bot.model.chronicle import Asked, Entry, Failed, StepEnded
from bot.model.durations import say_duration
from bot.model.incident import Acknowledged, Incident, Pending, Silenced
from bot.model.plan import RequestState
from bot.model.record import Record
from bot.model.run import RunState
from bot.model.value import RunId, Value
from bot.model.verdict import Severity
from bot.render.record import say_entry
from bot.render.words import STATE_WORDS, say_step, say_time
from checks.failures import Failure, Ledger, window
from checks.patterns import RepeatThresholds
from checks.repeats import REPEATED_ID
from handlers.context import Context, standing_of
from handlers.plans import question_of

MOST_LINES = 23
"""With the headline and what comes next it is 25: what fits a phone in two screens."""

_SOON = timedelta(hours=4)
_TOGETHER = timedelta(minutes=15)
_SAME_PLACE = RepeatThresholds()
_NOT_WELL = frozenset({RunState.FAILED, RunState.ENDED_SHORT, RunState.UNKNOWN, RunState.RELAUNCHING})


class Absence(Value):
    """What is on record of the runs, and since when somebody was away."""

    records: tuple[Record, ...]
    contexts: Mapping[RunId, Context]
    entries: Mapping[RunId, tuple[Entry, ...]] = {}
    """The newest entries of each run's record, oldest of them first."""
    blocked: Mapping[RunId, str] = {}
    since: AwareDatetime
    at: AwareDatetime
    timezone: str


class _Item(NamedTuple):
    """One line, and how far up it belongs: by rank, then by its place among equals."""

    rank: int
    place: float
    text: str


def catch_up(absence: Absence) -> tuple[str, tuple[str, ...]]:
    """Return a headline and at most ``MOST_LINES`` lines, most severe first; what does not fit is counted."""
    items = sorted(
        itertools.chain(
            (_Item(1, 0, f"{run}: not watched, its contract cannot be used: {why}") for run, why in _blocked(absence)),
            *(_of_run(absence, record) for record in absence.records),
            _shared(absence),
        )
    )
    lines = [" ".join(item.text.split()) for item in items]
    if len(lines) > MOST_LINES:
        left = len(lines) - MOST_LINES + 1
        lines = [*lines[: MOST_LINES - 1], f"… and {left} more; `/hero log RUN` and `/hero incidents` show them"]
    away = say_duration(absence.at - absence.since)
    since = f"since {say_time(absence.since, absence.timezone)} ({away})"
    return (f"what is new {since}" if items else f"nothing to catch up on {since}"), tuple(lines)


def _blocked(absence: Absence) -> Iterator[tuple[RunId, str]]:
    yield from absence.blocked.items()


def _of_run(absence: Absence, record: Record) -> Iterator[_Item]:
    name = f"{record.run_id}: " if len(absence.records) > 1 else ""
    context = absence.contexts.get(record.run_id)
    for request in record.requests:
        if request.state is RequestState.OPEN:
            until = say_time(request.expires_at, absence.timezone)
            question = question_of(request.plan, record)
            yield _Item(
                0, request.number, f"{name}TO DECIDE by {request.dri} until {until}: {request.name}, {question}?"
            )
    if (offered := record.run.handover) is not None and absence.at < offered.expires_at:
        text = f"{name}{offered.waits_for} is asked to agree that {offered.taker} becomes {offered.role}"
        yield _Item(0, 0, text)
    if context is not None:
        yield from _standing(absence, record, context, name)
    for incident in record.incidents:
        yield from _incident(absence, incident, name)
    yield from _happened(absence, record, name)


def _standing(absence: Absence, record: Record, context: Context, name: str) -> Iterator[_Item]:
    """Say where a run is that is not well, or that nobody looks at."""
    run, said = record.run, name or f"{record.run_id}: "
    checked = run.last_checked_at
    if run.is_paused:
        yield _Item(2, 0, f"{said}the watch is paused; nothing of it is checked")
    elif checked is None:
        if record.instance is not None:
            yield _Item(2, 0, f"{said}not checked yet")
    elif absence.at - checked > 2 * context.cadence:
        yield _Item(1, 0, f"{said}not checked for {say_duration(absence.at - checked)}; what stands here may be old")
    if run.state in _NOT_WELL and record.instance is not None:
        yield _Item(1, 1, f"{said}{STATE_WORDS[run.state]} at {say_step(standing_of(record, context.contract))}")


def _incident(absence: Absence, incident: Incident, name: str) -> Iterator[_Item]:
    finding = incident.finding
    about = f"I{incident.number} {incident.check}"
    match incident.state:
        case Pending():
            yield _Item(5, incident.number, f"{name}seen, not often enough to be told: {about}: {finding.summary}")
        case Silenced(until=until, by=by):
            if until - absence.at <= _SOON:
                end = f"in {say_duration(until - absence.at)}" if until > absence.at else "at the next check"
                yield _Item(3, incident.number, f"{name}{by}'s silence over {about} ends {end}: {finding.summary}")
        case _ if incident.is_open:
            is_new = ", new" if incident.opened_at > absence.since else ""
            taken = f", looked after by {incident.state.by}" if isinstance(incident.state, Acknowledged) else ""
            rank = {Severity.CRITICAL: 1, Severity.WARNING: 4, Severity.INFO: 6}[finding.severity]
            yield _Item(rank, incident.number, f"{name}{about} ({finding.severity}{is_new}{taken}): {finding.summary}")
        case _:
            return


def _happened(absence: Absence, record: Record, name: str) -> Iterator[_Item]:
    """What is on the run's record since then, newest first; what still stands above is not said twice."""
    is_open = {i.number for i in record.incidents if not i.is_resolved}
    asked = {r.number for r in record.requests if r.state is RequestState.OPEN}
    for entry in absence.entries.get(record.run_id, ()):
        at, happening = datetime.fromisoformat(entry.at), entry.happening
        if at <= absence.since or isinstance(happening, StepEnded):
            continue
        if isinstance(happening, Failed) and happening.incident in is_open:
            continue
        if isinstance(happening, Asked) and happening.request in asked:
            continue
        yield _Item(7, -at.timestamp(), f"{name}{say_time(at, absence.timezone)} {say_entry(entry)}")


def _shared(absence: Absence) -> Iterator[_Item]:
    """Say which failures have something in common with an earlier one, when the later of the two is news."""
    failures = [(record.run_id, each) for record in absence.records for each in _failures(record)]
    failures.sort(key=lambda each: each[1].at)
    said: set[str] = set()
    for (run, first), (other, second) in itertools.combinations(failures, 2):
        if second.at <= absence.since:
            continue
        for text in _in_common(run, first, other, second, absence.timezone):
            if text not in said:
                said.add(text)
                yield _Item(2, len(said), text)


def _in_common(run: RunId, first: Failure, other: RunId, second: Failure, zone: str) -> Iterator[str]:
    both = run if run == other else f"{run} and {other}"
    if first.node is not None and first.node == second.node:
        yield f"{both} failed more than once on {first.node}"
    if run != other and second.at - first.at <= _TOGETHER:
        apart = say_duration(second.at - first.at)
        yield f"{both} failed {apart} apart, at {say_time(second.at, zone)}: one cause?"
    if run == other and first.step is not None and second.step is not None:
        low, high = sorted((first.step, second.step))
        if high - low <= window(low, _SAME_PLACE.window_steps, _SAME_PLACE.window_fraction):
            where = f"at step {low}" if low == high else f"within steps {low} to {high}"
            yield f"{run} failed more than once {where}: {second.signature}"


def _failures(record: Record) -> tuple[Failure, ...]:
    """Return the failures that no progress has passed yet, from the memory of the check that counts them."""
    memory = record.memories.get(REPEATED_ID)
    try:
        return Ledger.model_validate_json(memory).failures if memory else ()
    except ValidationError:
        return ()
