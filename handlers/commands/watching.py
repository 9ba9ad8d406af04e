"""Commands about the watch itself: who looks after an incident, what is quiet, whether a run is watched. Pure."""

from datetime import timedelta

from bot.model.conduct import STAGE_WORDS, Stage
from bot.model.durations import parse_duration, say_duration
from bot.model.incident import Acknowledged, Incident, Silenced
from bot.model.person import Person
from bot.model.record import Decision, Record, Telling
from bot.model.update import UpdateKind
from bot.model.value import CheckId
from bot.model.verdict import Severity
from bot.render.words import say_time
from handlers import tellings
from handlers.commands.question import Answered, Question, audit_entry, find_only_run, known_person, say

_USUAL_SILENCE = "1h"
_LONGEST_SILENCE = timedelta(days=7)


def acknowledge(question: Question, words: tuple[str, ...]) -> Answered:
    """Take an incident on."""
    person = known_person(question)
    if isinstance(person, Answered):
        return person
    incident = _open_incident(question, words)
    if incident is None:
        return say(question, "Which incident? Name an open one, e.g. `ack I4`; `incidents` lists them.")
    taken = Acknowledged(by=person.name, at=question.at, severity=incident.finding.severity)
    after = incident.model_copy(update={"state": taken})
    words_ = f"Thank you: I{incident.number} is looked after by {person.name}."
    return _change_incident(question, after, words_, "acknowledged")


def silence(question: Question, words: tuple[str, ...]) -> Answered:
    """Hear nothing of an incident for a while."""
    person = known_person(question)
    if isinstance(person, Answered):
        return person
    incident = _open_incident(question, words)
    if incident is None:
        return say(question, "Which incident? Name an open one, e.g. `silence I4 2h`; `incidents` lists them.")
    try:
        length = parse_duration(words[1] if len(words) > 1 else _USUAL_SILENCE)
    except ValueError as error:
        return say(question, f"{error}.")
    if not isinstance(length, timedelta) or not timedelta() < length <= _LONGEST_SILENCE:
        return say(question, f"A silence lasts from a second to {say_duration(_LONGEST_SILENCE)}.")
    until = question.at + length
    after = incident.model_copy(update={"state": Silenced(by=person.name, at=question.at, until=until)})
    said = f"I{incident.number} is silenced until {say_time(until, question.timezone)}; it is still watched."
    return _change_incident(question, after, said, "silenced")


def _open_incident(question: Question, words: tuple[str, ...]) -> Incident | None:
    wanted = words[0].upper().lstrip("I") if words else ""
    every = (incident for record in question.records for incident in record.incidents)
    return next((i for i in every if str(i.number) == wanted and i.is_open), None)


def _change_incident(question: Question, after: Incident, words: str, what: str) -> Answered:
    audit = audit_entry(question, after.run_id, what, f"I{after.number}")
    decision = Decision(incidents=(after,), audit=(audit,))
    return say(question, words).model_copy(update={"run_id": after.run_id, "decision": decision})


def pause(question: Question, words: tuple[str, ...]) -> Answered:
    """Stop watching a run; that is said in its conversation."""
    return _set_paused(question, words, is_paused=True)


def resume(question: Question, words: tuple[str, ...]) -> Answered:
    """Watch a run again, from now on."""
    return _set_paused(question, words, is_paused=False)


def _why_not_paused(record: Record) -> str:
    """Say why a run has to be watched now; empty for any other. A trial is judged, and rolled back, by looking."""
    trial = record.run.trial
    if trial is not None and not trial.is_over:
        return f"The trial of {trial.plan.child_run_id} is under way: {STAGE_WORDS[trial.stage]}"
    if record.trial_of is not None and record.trial_stage not in {None, Stage.CLOSED}:
        return f"{record.run_id} is on trial in the place of {record.trial_of}"
    return ""


def _set_paused(question: Question, words: tuple[str, ...], *, is_paused: bool) -> Answered:
    person = known_person(question)
    if isinstance(person, Answered):
        return person
    record = find_only_run(question, words, "pause [RUN], resume [RUN]")
    if isinstance(record, Answered):
        return record
    if is_paused and (why := _why_not_paused(record)):
        return say(question, f"{why}; the watch goes on.")
    run = record.run.model_copy(update={"is_paused": is_paused})
    what = "watch_paused" if is_paused else "watch_resumed"
    said = say(question, f"The watch over {record.run_id} is {'paused' if is_paused else 'resumed'}.")
    decision = Decision(
        run=run,
        audit=(audit_entry(question, record.run_id, what, person.name),),
        # The time of a pause is no silence of Hero's: what notices such begins anew.
        memories={} if is_paused else {CheckId("monitor.stale"): "{}"},
        tell=_tell_of_pause(question, record, person, is_paused=is_paused),
    )
    check = None if is_paused else record.run_id
    return said.model_copy(update={"run_id": record.run_id, "decision": decision, "check_now": check})


def _tell_of_pause(question: Question, record: Record, person: Person, *, is_paused: bool) -> tuple[Telling, ...]:
    """Say in the run's own conversation that nobody looks any more: an unwatched run must not look like a well one."""
    context = question.contexts.get(record.run_id)
    if context is None or record.run.is_paused is is_paused:
        return ()
    resumes = f"`/hero resume {record.run_id}` starts it again; nothing is checked or told until then"
    telling = tellings.tell(
        context,
        record,
        question.at,
        kind=UpdateKind.ACTION_PROGRESS,
        key=f"watch/{'paused' if is_paused else 'resumed'}/{question.at.isoformat()}",
        headline=f"the watch over this run was {'paused' if is_paused else 'resumed'} by {person.name}",
        severity=Severity.WARNING if is_paused else Severity.INFO,
        next_=resumes if is_paused else f"Hero checks it now, then every {say_duration(context.cadence)}",
    )
    if not is_paused:
        return (telling,)
    after = record.model_copy(update={"run": record.run.model_copy(update={"is_paused": True})})
    return (telling, tellings.live_status(context, after, question.at))
