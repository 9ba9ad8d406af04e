"""Commands that look back: what is new to somebody, what happened, who decided what, how the figures went. Pure."""

from datetime import timedelta

from bot.model.audit import AuditEntry
from bot.model.durations import parse_duration, say_duration
from bot.model.record import Record
from bot.model.value import RunId
from bot.model.visit import FIRST
from bot.render.chart import spark_lines
from bot.render.record import say_entry
from bot.render.words import say_time
from checks import CHECKS
from checks.named import no_such_check
from checks.preflight import ITEMS
from handlers.catchup import Absence, catch_up
from handlers.charts import chart_of
from handlers.commands.question import Answered, Question, find_only_run, find_run, refuse_words, say
from handlers.context import Context

_SHOWN = 15
_LINE = 300


def catchup(question: Question, words: tuple[str, ...]) -> Answered:
    """Tell whoever comes back what is new to them, of all runs or of one; ``catchup 8h`` of a time they choose."""
    since = question.past.since or question.at - FIRST
    length = _length(words[-1]) if words else None
    if length is not None:
        since, words = question.at - length, words[:-1]
    records = question.records
    if words or question.here:
        record = find_run(question, words)
        if isinstance(record, Answered):
            return record
        records = (record,)
    absence = Absence(
        records=records,
        contexts=question.contexts,
        entries=question.past.entries,
        blocked={} if words or question.here else question.blocked,
        since=since,
        at=question.at,
        timezone=question.timezone,
    )
    headline, lines = catch_up(absence)
    return say(question, headline, lines)


def _length(word: str) -> timedelta | None:
    try:
        length = parse_duration(word)
    except ValueError:
        return None
    return length if isinstance(length, timedelta) and length > timedelta() else None


def log(question: Question, words: tuple[str, ...]) -> Answered:
    """Show the newest entries of a run's record."""
    usage = "log [RUN] shows the newest of it; options as --verify or --markdown are for `hero log` in a shell"
    record = find_only_run(question, words, usage)
    if isinstance(record, Answered):
        return record
    entries = question.past.entries.get(record.run_id, ())[-_SHOWN:]
    lines = tuple(f"{e.at[:16].replace('T', ' ')} UTC  {say_entry(e)}"[:_LINE] for e in entries)
    headline = f"{record.run_id}: the newest of its record" if lines else f"{record.run_id}: nothing is on record yet"
    return say(question, headline, lines, f"`hero log {record.run_id} --markdown` shows all of it")


def audit(question: Question, words: tuple[str, ...]) -> Answered:
    """Show the newest attempts at a decision, of all runs or of one, those that were refused too."""
    wanted: RunId | None = None
    if words or question.here:
        record = find_only_run(question, words, "audit [RUN] takes a run's name and nothing else")
        if isinstance(record, Answered):
            return record
        wanted = record.run_id
    found = [each for each in question.past.attempts if wanted is None or each.run_id == wanted][-_SHOWN:]
    lines = tuple(say_attempt(each, question.timezone) for each in found)
    about = wanted or "all runs"
    headline = (
        f"{about}: the newest attempts at a decision" if lines else f"{about}: nobody has tried to decide anything"
    )
    return say(question, headline, lines, f"`hero audit{f' {wanted}' if wanted else ''}` shows all of them")


def say_attempt(entry: AuditEntry, timezone: str) -> str:
    """Return one attempt in a line: when, which run, who by their immutable id, what, why not, where it stands."""
    why = f" ({entry.why})" if entry.why else ""
    parts = (
        f"{say_time(entry.at, timezone)}  {entry.run_id or '-'}  {entry.who}  {entry.what}{why}",
        entry.detail[:_LINE],
        f"plan {entry.digest[:12]}" if entry.digest and entry.digest not in entry.detail else "",
        entry.link,
    )
    return "; ".join(part for part in parts if part)


def checks(question: Question, words: tuple[str, ...]) -> Answered:
    """List what is checked, or say one check's thresholds."""
    if refused := refuse_words(question, words[1:], "checks [CHECK] takes the name of one check and nothing else"):
        return refused
    if words and (missing := no_such_check(words[0])):
        return say(question, missing)
    item = next((each for each in ITEMS if words and each.id == words[0]), None)
    if item is not None:
        return say(question, f"{item.id} (at launch): {item.title}", next_=f"from: {item.source}")
    chosen = next((each for each in CHECKS if words and each.id == words[0]), None)
    if chosen is not None:
        limits = tuple(f"{name} = {value}" for name, value in chosen.thresholds.model_dump(mode="json").items())
        return say(question, f"{chosen.id} ({chosen.severity}): {chosen.title}", limits, f"from: {chosen.source}")
    families: dict[str, list[str]] = {}
    for each in CHECKS:
        family, _, fault = each.id.partition(".")
        families.setdefault(family, []).append(fault)
    lines = tuple(f"{family}: {', '.join(faults)}" for family, faults in sorted(families.items()))
    return say(question, f"{len(CHECKS)} checks", lines, "`checks CHECK` shows one's thresholds, `explain` what it saw")


def milestone(question: Question, words: tuple[str, ...]) -> Answered:
    """Say which milestone was reached last, and which one comes next and when."""
    found = _with_context(question, words)
    if isinstance(found, Answered):
        return found
    record, context = found
    plan, progress = context.contract.milestones, record.run.progress
    reached = record.run.milestone_step
    lines = [f"reached last: {f'step {reached}' if reached else 'none yet'}"]
    step = progress.step or 0
    coming = [s for s in plan.steps if s > step] + ([(step // plan.every + 1) * plan.every] if plan.every else [])
    following = min(coming, default=None)
    if following is not None:
        left = progress.eta(following)
        lines.append(f"next: step {following}, {f'in about {say_duration(left)}' if left else 'when is unknown'}")
    else:
        lines.append("next: none is set; the contract's [milestones] sets them")
    kept = ", ".join(map(str, context.contract.retention.milestones)) or "none"
    lines.append(f"checkpoints kept for good: {kept}")
    return say(question, f"{record.run_id}: milestones", tuple(lines))


def plot(question: Question, words: tuple[str, ...]) -> Answered:
    """Show loss and throughput with what is wrong marked: as a picture where one can be attached."""
    record = find_only_run(question, words, "plot [RUN] takes a run's name and nothing else")
    if isinstance(record, Answered):
        return record
    chart = chart_of(record)
    if chart is None:
        return say(question, f"{record.run_id}: no figures are kept of it yet")
    answered = say(
        question,
        f"{record.run_id}: loss and throughput",
        spark_lines(chart),
        f"`hero plot {record.run_id} --out {record.run_id}.png` draws it into a file",
    )
    update = answered.telling.update.model_copy(update={"chart": chart})
    return answered.model_copy(update={"telling": answered.telling.model_copy(update={"update": update})})


def watch(question: Question, words: tuple[str, ...]) -> Answered:
    """Say whether a run is watched: every contract in the directory of runs is, within seconds."""
    name = words[0].removesuffix(".toml").rpartition("/")[2] if words else ""
    if name and RunId(name) in question.blocked:
        return say(question, f"{name} is not watched: {question.blocked[RunId(name)]}")
    if name and RunId(name) in question.contexts:
        return say(question, f"{name} is watched already; `/hero status {name}` shows how it stands.")
    wanted = name or "RUN"
    return say(
        question,
        f"Hero watches every contract in its directory of runs: put {wanted}.toml there, and it is seen in seconds.",
        next_=f"`hero plan {wanted}.toml` says beforehand what is wrong with it",
    )


def _with_context(question: Question, words: tuple[str, ...]) -> tuple[Record, Context] | Answered:
    record = find_run(question, words)
    if isinstance(record, Answered):
        return record
    context = question.contexts.get(record.run_id)
    if context is None:
        return say(question, f"{record.run_id} is not watched: {question.blocked.get(record.run_id, 'no contract')}")
    return record, context
