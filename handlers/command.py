"""``/hero …``: answered from what is on record, at once; never a call to a service. Pure."""

import hashlib
import shlex
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from bot.model.audit import AuditEntry
from bot.model.durations import parse_duration, say_duration
from bot.model.errand import Errand, ErrandKind
from bot.model.event import Commanded
from bot.model.incident import Acknowledged, Incident, Silenced
from bot.model.person import Person, Standing
from bot.model.reading import Reading
from bot.model.record import Decision, Record, Telling
from bot.model.update import UpdateKind
from bot.model.value import CheckId, RunId, Value
from bot.model.verdict import Severity
from bot.render.words import STATE_WORDS, say_state, say_time, standing_facts
from handlers import tellings
from handlers.context import Context, standing_of
from handlers.explained import explain_lines
from handlers.gate import judge_account
from handlers.plans import deed_of

HELP = (
    "status [RUN] — where a run is, when that was true, what is unknown",
    "runs — every run, one line each",
    "incidents [RUN] — what is wrong now",
    "ack I4 — you look after an incident: no more reminders",
    "silence I4 2h — hear nothing of an incident until then; it is still watched",
    "explain [RUN] [CHECK] — what each check saw and concluded, and why it told you or did not",
    "plan [RUN] — what a launch would do, and what the launch checklist finds",
    "launch [RUN] — ask the DRI for the run's first launch",
    "relaunch [RUN] — ask the DRI for a relaunch from the newest complete checkpoint",
    "stop [RUN] — ask the DRI to stop the run's job",
    "cleanup [RUN] — list checkpoints that could be deleted, and ask the DRI for exactly that list",
    "seal [RUN] — look whether everything of a finished run is there, and ask the DRI for the seal",
    "pause [RUN] / resume [RUN] — stop and start watching a run; it is said in the status",
    "help — this list",
    "A request is decided in its thread: `approve R7` or `deny R7 because …`",
)


_USUAL_SILENCE = "1h"
_LONGEST_SILENCE = timedelta(days=7)


class Question(Value):
    """A command and what is on record to answer it from."""

    event: Commanded
    standing: Reading[Standing] | None
    """What the platform says of who gave it; None counts as not known. Only a command that changes something asks."""
    records: tuple[Record, ...]
    contexts: Mapping[RunId, Context]
    blocked: Mapping[RunId, str]
    """Runs whose contract cannot be read, with the reason."""
    here: RunId | None
    """The run in whose conversation it was given."""
    people: tuple[Person, ...]
    timezone: str
    at: datetime


class Answered(Value):
    """The answer, and what the command changes for one run."""

    telling: Telling
    run_id: RunId | None = None
    decision: Decision = Decision()
    check_now: RunId | None = None
    """A run to be checked at once."""


def changes_something(text: str) -> bool:
    """Whether a command does more than answer, so that the platform has to be asked who gives it."""
    return _split(text)[0] in _CHANGING


def _split(text: str) -> tuple[str, tuple[str, ...]]:
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return (words[0].lower(), tuple(words[1:])) if words else ("help", ())


def answer_command(question: Question) -> Answered:
    """Answer one command; an unknown one gets the nearest valid ones."""
    verb, words = _split(question.event.text)
    handler = COMMANDS.get(verb)
    if handler is None:
        return _say(question, f"`{verb[:40]}` is no command of Hero's.", HELP)
    return handler(question, words)


def _say(question: Question, headline: str, lines: tuple[str, ...] = (), next_: str = "") -> Answered:
    event = question.event
    # Two people, or one with two questions, may speak in the same second; free text has no place in a key.
    said = hashlib.sha256(f"{event.actor.user_id} {event.text}".encode("utf-8", "replace")).hexdigest()[:12]
    where = f"{event.actor.platform}/{event.place.key}/{event.place.message}"
    key = f"command/{where}/{event.said_at.isoformat()}/{said}"
    telling = tellings.answer(
        event.actor, event.place, question.at, key=key, headline=headline, lines=lines, next_=next_
    )
    return Answered(telling=telling)


def _find(question: Question, words: tuple[str, ...]) -> Record | Answered:
    """Return the run that is meant: named, or the one of this conversation, or the only one."""
    wanted = words[0] if words else question.here
    if wanted is None and len(question.records) == 1:
        return question.records[0]
    if wanted is None:
        names = ", ".join(r.run_id for r in question.records) or "none"
        return _say(question, "Which run? Please name one.", (f"runs: {names}",))
    found = [r for r in question.records if r.run_id == wanted]
    if found:
        return found[0]
    if RunId(wanted) in question.blocked:
        return _say(question, f"{wanted} is not watched: {question.blocked[RunId(wanted)]}")
    near = ", ".join(r.run_id for r in question.records if r.run_id.startswith(wanted[:4])) or "none like it"
    return _say(question, f"There is no run {wanted[:80]}.", (f"there are: {near}",))


def _status(question: Question, words: tuple[str, ...]) -> Answered:
    if not words and question.here is None and len(question.records) != 1:
        return _runs(question, ())
    record = _find(question, words)
    if isinstance(record, Answered):
        return record
    context = question.contexts.get(record.run_id)
    if context is None:
        return _say(question, f"{record.run_id} is not watched: {question.blocked.get(record.run_id, 'no contract')}")
    lines = [
        f"{name}: {value}" for name, value in standing_facts(standing_of(record, context.contract), question.timezone)
    ]
    lines.append(f"monitor: {_say_freshness(record, context, question.at)}")
    lines.extend(_say_incidents(record))
    asked = record.open_request
    if asked is not None:
        lines.append(f"{asked.name} waits for {asked.dri} until {say_time(asked.expires_at, question.timezone)}")
    state = say_state(standing_of(record, context.contract))
    return _say(question, f"{record.run_id}: {state}", tuple(lines))


def _say_freshness(record: Record, context: Context, at: datetime) -> str:
    last = record.run.last_checked_at
    if last is None:
        return "not checked yet"
    age = at - last
    paused = "paused; " if record.run.is_paused else ""
    if age > 2 * context.cadence:
        return f"{paused}STALE, not checked for {say_duration(age)}; what stands above may no longer be true"
    return f"{paused}checked {say_duration(age)} ago, every {say_duration(context.cadence)}"


def _say_incidents(record: Record) -> list[str]:
    return [
        f"I{i.number} {i.check} ({i.finding.severity}"
        + (f", looked after by {i.state.by}" if isinstance(i.state, Acknowledged) else "")
        + f"): {i.finding.summary}"
        for i in record.incidents
        if i.is_open
    ]


def _runs(question: Question, _words: tuple[str, ...]) -> Answered:
    lines = [f"{r.run_id}: {STATE_WORDS[r.run.state]}, {_say_step(r)}" for r in question.records]
    lines.extend(f"{run_id}: not watched: {why}" for run_id, why in question.blocked.items())
    return _say(question, f"{len(lines)} runs" if len(lines) != 1 else "1 run", tuple(lines))


def _say_step(record: Record) -> str:
    step = record.run.progress.step
    return "step unknown" if step is None else f"step {step}"


def _incidents(question: Question, words: tuple[str, ...]) -> Answered:
    if words or question.here:
        record = _find(question, words)
        if isinstance(record, Answered):
            return record
        records: tuple[Record, ...] = (record,)
    else:
        records = question.records
    lines = tuple(f"{r.run_id}: {line}" for r in records for line in _say_incidents(r))
    headline = {0: "No open incident.", 1: "1 open incident"}.get(len(lines), f"{len(lines)} open incidents")
    return _say(question, headline, lines)


def _acknowledge(question: Question, words: tuple[str, ...]) -> Answered:
    person = _known_person(question)
    if isinstance(person, Answered):
        return person
    incident = _open_incident(question, words)
    if incident is None:
        return _say(question, "Which incident? Name an open one, e.g. `ack I4`; `incidents` lists them.")
    after = incident.model_copy(update={"state": Acknowledged(by=person.name, at=question.at)})
    words_ = f"Thank you: I{incident.number} is looked after by {person.name}."
    return _change_incident(question, after, words_, "acknowledged")


def _silence(question: Question, words: tuple[str, ...]) -> Answered:
    person = _known_person(question)
    if isinstance(person, Answered):
        return person
    incident = _open_incident(question, words)
    if incident is None:
        return _say(question, "Which incident? Name an open one, e.g. `silence I4 2h`; `incidents` lists them.")
    try:
        length = parse_duration(words[1] if len(words) > 1 else _USUAL_SILENCE)
    except ValueError as error:
        return _say(question, f"{error}.")
    if not isinstance(length, timedelta) or not timedelta() < length <= _LONGEST_SILENCE:
        return _say(question, f"A silence lasts from a second to {say_duration(_LONGEST_SILENCE)}.")
    until = question.at + length
    after = incident.model_copy(update={"state": Silenced(by=person.name, at=question.at, until=until)})
    said = f"I{incident.number} is silenced until {say_time(until, question.timezone)}; it is still watched."
    return _change_incident(question, after, said, "silenced")


def _open_incident(question: Question, words: tuple[str, ...]) -> Incident | None:
    wanted = words[0].upper().lstrip("I") if words else ""
    every = (incident for record in question.records for incident in record.incidents)
    return next((i for i in every if str(i.number) == wanted and i.is_open), None)


def _change_incident(question: Question, after: Incident, words: str, what: str) -> Answered:
    audit = _audit(question, after.run_id, what, f"I{after.number}")
    decision = Decision(incidents=(after,), audit=(audit,))
    return _say(question, words).model_copy(update={"run_id": after.run_id, "decision": decision})


def _explain(question: Question, words: tuple[str, ...]) -> Answered:
    """Answer for the last look; ``hero explain --at`` does for any other minute."""
    checks = tuple(word for word in words if "." in word and word not in {r.run_id for r in question.records})
    record = _find(question, tuple(word for word in words if word not in checks))
    if isinstance(record, Answered):
        return record
    wanted = tuple(change for change in record.verdicts.values() if not checks or change.check in checks)
    lines = explain_lines(wanted, question.at, question.timezone)
    return _say(question, f"{record.run_id}: what each check saw and concluded", lines)


def _relaunch(question: Question, words: tuple[str, ...]) -> Answered:
    person = _known_person(question)
    if isinstance(person, Answered):
        return person
    record = _find(question, words)
    if isinstance(record, Answered):
        return record
    if (active := record.active_action) is not None:
        return _say(question, f"A {deed_of(active.plan, record)} of {record.run_id} is under way already.")
    if record.run.is_paused:
        return _say(question, f"The watch over {record.run_id} is paused; `/hero resume {record.run_id}` comes first.")
    if (asked := record.open_relaunch) is not None:
        return _say(question, f"{asked.name} asks for that already and waits for {asked.dri}.")
    run = record.run.model_copy(update={"relaunch_wanted_by": person.name})
    said = _say(
        question,
        f"Hero checks {record.run_id} now and puts the plan to its DRI in the run's thread; nothing is changed before "
        "the answer.",
    )
    decision = Decision(run=run, audit=(_audit(question, record.run_id, "relaunch_wanted", person.name),))
    return said.model_copy(update={"run_id": record.run_id, "decision": decision, "check_now": record.run_id})


def _launch(question: Question, words: tuple[str, ...]) -> Answered:
    record = _find(question, words)
    if isinstance(record, Record) and record.instance is not None:
        again = f"{record.run_id} was launched before, as {record.instance.job_id}; `/hero relaunch {record.run_id}`"
        return _say(question, f"{again} asks for it once more.")
    return _relaunch(question, words)


def _stop(question: Question, words: tuple[str, ...]) -> Answered:
    return _send_on(question, words, ErrandKind.STOP, "puts the plan to its DRI")


def _plan(question: Question, words: tuple[str, ...]) -> Answered:
    return _send_on(question, words, ErrandKind.PLAN, "says what a launch would do and what speaks against it")


def _cleanup(question: Question, words: tuple[str, ...]) -> Answered:
    return _send_on(question, words, ErrandKind.CLEANUP, "lists what could be deleted and puts that list to its DRI")


def _seal(question: Question, words: tuple[str, ...]) -> Answered:
    return _send_on(question, words, ErrandKind.SEAL, "looks whether everything is there, and asks its DRI if it is")


def _send_on(question: Question, words: tuple[str, ...], kind: ErrandKind, what: str) -> Answered:
    """Note an errand; it is looked into after the run's next check, which is now."""
    person = _known_person(question)
    if isinstance(person, Answered):
        return person
    is_named = bool(words) and (question.here is None or RunId(words[0]) in question.contexts)
    record = _find(question, words[:1] if is_named else ())
    if isinstance(record, Answered):
        return record
    if record.run.is_paused:
        return _say(question, f"The watch over {record.run_id} is paused; `/hero resume {record.run_id}` comes first.")
    if any(each.kind is kind for each in record.run.errands):
        return _say(question, f"Hero looks into that already: {kind} of {record.run_id}.")
    errand = Errand(kind=kind, by=person.name, at=question.at, argument=" ".join(words[1:] if is_named else words))
    run = record.run.model_copy(update={"errands": (*record.run.errands, errand)})
    said = _say(
        question,
        f"Hero looks at {record.run_id} now and {what} in the run's thread; nothing is changed before the answer.",
    )
    decision = Decision(run=run, audit=(_audit(question, record.run_id, f"{kind}_wanted", person.name),))
    return said.model_copy(update={"run_id": record.run_id, "decision": decision, "check_now": record.run_id})


def _pause(question: Question, words: tuple[str, ...]) -> Answered:
    return _set_paused(question, words, is_paused=True)


def _resume(question: Question, words: tuple[str, ...]) -> Answered:
    return _set_paused(question, words, is_paused=False)


def _set_paused(question: Question, words: tuple[str, ...], *, is_paused: bool) -> Answered:
    person = _known_person(question)
    if isinstance(person, Answered):
        return person
    record = _find(question, words)
    if isinstance(record, Answered):
        return record
    run = record.run.model_copy(update={"is_paused": is_paused})
    what = "watch_paused" if is_paused else "watch_resumed"
    said = _say(question, f"The watch over {record.run_id} is {'paused' if is_paused else 'resumed'}.")
    decision = Decision(
        run=run,
        audit=(_audit(question, record.run_id, what, person.name),),
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
    return (telling,)


def _help(question: Question, _words: tuple[str, ...]) -> Answered:
    return _say(question, "Hero watches training runs and asks before it changes anything.", HELP)


def _known_person(question: Question) -> Person | Answered:
    """Return who gives a command that changes something, by the same test that a decision has to pass."""
    judged = judge_account(question.event.actor, question.standing, question.people)
    if isinstance(judged, Person):
        return judged
    refused = _say(question, judged.answer or "A bot's command changes nothing.")
    detail = f"{question.event.text[:200]}: {judged.why}"
    decision = Decision(audit=(_audit(question, question.here, "command_refused", detail),))
    return refused.model_copy(update={"run_id": question.here, "decision": decision})


def _audit(question: Question, run_id: RunId | None, what: str, detail: str) -> AuditEntry:
    actor = question.event.actor
    return AuditEntry(at=question.at, run_id=run_id, who=f"{actor.platform}:{actor.user_id}", what=what, detail=detail)


COMMANDS: Mapping[str, Callable[[Question, tuple[str, ...]], Answered]] = {
    "status": _status,
    "runs": _runs,
    "incidents": _incidents,
    "ack": _acknowledge,
    "silence": _silence,
    "explain": _explain,
    "plan": _plan,
    "launch": _launch,
    "relaunch": _relaunch,
    "stop": _stop,
    "cleanup": _cleanup,
    "seal": _seal,
    "pause": _pause,
    "resume": _resume,
    "help": _help,
}
_CHANGING = frozenset({"ack", "silence", "plan", "launch", "relaunch", "stop", "cleanup", "seal", "pause", "resume"})
