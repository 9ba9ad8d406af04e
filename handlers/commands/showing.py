"""Commands that only show: where a run is, what is wrong, what each check saw. Pure."""

from datetime import datetime

from bot.model.durations import say_duration
from bot.model.incident import Acknowledged
from bot.model.record import Record
from bot.render.words import STATE_WORDS, say_state, say_time, standing_facts
from checks.named import no_such_check
from handlers.commands.question import Answered, Question, find_run, say
from handlers.context import Context, standing_of
from handlers.explained import explain_lines


def status(question: Question, words: tuple[str, ...]) -> Answered:
    """Say where one run is, or list all."""
    if not words and question.here is None and len(question.records) != 1:
        return runs(question, ())
    record = find_run(question, words)
    if isinstance(record, Answered):
        return record
    context = question.contexts.get(record.run_id)
    if context is None:
        return say(question, f"{record.run_id} is not watched: {question.blocked.get(record.run_id, 'no contract')}")
    lines = [
        f"{name}: {value}" for name, value in standing_facts(standing_of(record, context.contract), question.timezone)
    ]
    lines.append(f"monitor: {_say_freshness(record, context, question.at)}")
    lines.extend(_say_incidents(record))
    if record.run.seal:
        lines.append(f"sealed: {record.run.seal}")
    asked = record.open_request
    if asked is not None:
        lines.append(f"{asked.name} waits for {asked.dri} until {say_time(asked.expires_at, question.timezone)}")
    state = say_state(standing_of(record, context.contract))
    return say(question, f"{record.run_id}: {state}", tuple(lines), _say_validity(record, context, question))


def _say_validity(record: Record, context: Context, question: Question) -> str:
    """An answer is not renewed: after the next check or two it is to be asked for anew."""
    last = record.run.last_checked_at
    if last is None:
        return ""
    until = max(last + 2 * context.cadence, question.at + context.cadence)
    return f"true at {say_time(last, question.timezone)}; ask again after {say_time(until, question.timezone)}"


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


def runs(question: Question, _words: tuple[str, ...]) -> Answered:
    """List every run, one line each."""
    lines = [f"{r.run_id}: {STATE_WORDS[r.run.state]}, {_say_step(r)}" for r in question.records]
    lines.extend(f"{run_id}: not watched: {why}" for run_id, why in question.blocked.items())
    return say(question, f"{len(lines)} runs" if len(lines) != 1 else "1 run", tuple(lines))


def _say_step(record: Record) -> str:
    step = record.run.progress.step
    return "step unknown" if step is None else f"step {step}"


def incidents(question: Question, words: tuple[str, ...]) -> Answered:
    """Say what is wrong now."""
    if words or question.here:
        record = find_run(question, words)
        if isinstance(record, Answered):
            return record
        records: tuple[Record, ...] = (record,)
    else:
        records = question.records
    lines = tuple(f"{r.run_id}: {line}" for r in records for line in _say_incidents(r))
    headline = {0: "No open incident.", 1: "1 open incident"}.get(len(lines), f"{len(lines)} open incidents")
    return say(question, headline, lines)


def explain(question: Question, words: tuple[str, ...]) -> Answered:
    """Answer for the last look; ``hero explain --at`` does for any other minute."""
    checks = tuple(word for word in words if "." in word and word not in {r.run_id for r in question.records})
    record = find_run(question, tuple(word for word in words if word not in checks))
    if isinstance(record, Answered):
        return record
    if missing := next(filter(None, map(no_such_check, checks)), None):
        return say(question, missing)
    wanted = tuple(change for change in record.verdicts.values() if not checks or change.check in checks)
    lines = explain_lines(wanted, question.at, question.timezone)
    return say(question, f"{record.run_id}: what each check saw and concluded", lines)
