"""The words of an update that every channel says alike: plain text, not yet escaped for any of them.

Escaping and cutting belong to the channel's own file here, since each has its own rules.
"""

import shlex
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from bot.model.durations import say_duration
from bot.model.run import RunState
from bot.model.update import Standing, Update
from bot.model.verdict import Severity
from bot.secret_shapes import MARK

STATE_WORDS: dict[RunState, str] = {
    RunState.UNKNOWN: "unknown",
    RunState.PENDING: "pending",
    RunState.RUNNING: "running",
    RunState.FAILED: "failed",
    RunState.RELAUNCHING: "being launched",
    RunState.COMPLETED: "completed",
    RunState.ENDED_SHORT: "ended without its final artifacts",
    RunState.STOPPED: "stopped",
    RunState.BLOCKED: "not watched: its contract cannot be read",
}

SEVERITY_SIGNS: dict[Severity, str] = {
    Severity.INFO: "ℹ️",  # noqa: RUF001 - the sign itself
    Severity.WARNING: "⚠️",
    Severity.CRITICAL: "🚨",
}


def first_line(update: Update) -> str:
    """The line that says it all on a lock screen: run, step, what happened."""
    run = f"{update.run_id} " if update.run_id else ""
    where = f"at {say_step(update.standing)}" if update.standing else ""
    subject = f"{run}{where}".strip()
    return f"{subject}: {update.headline}" if subject else update.headline


def say_state(standing: Standing) -> str:
    """``running``; one that could not be read just now is said to be what it last was."""
    is_old = any(gap.startswith("jobs:") for gap in standing.gaps) and standing.state is not RunState.UNKNOWN
    return f"{STATE_WORDS[standing.state]} when it could last be read" if is_old else STATE_WORDS[standing.state]


def say_step(standing: Standing) -> str:
    """``step ~8123/10000``; an unknown step or final step is said to be unknown, an inferred one to be inferred."""
    step = "step unknown" if standing.step is None else f"step ~{standing.step}"
    if standing.final_step is None:
        return f"{step} (final step unknown)"
    inferred = " (final step inferred)" if standing.final_step_is_inferred else ""
    return f"{step}/{standing.final_step}{inferred}"


def standing_facts(standing: Standing, timezone: str) -> tuple[tuple[str, str], ...]:
    """Label and value of where the run is; only what is known, then what is not and why."""
    facts = [("state", say_state(standing)), ("step", say_step(standing))]
    if standing.loss is not None:
        facts.append(("loss", f"{standing.loss:.4g}"))
    if standing.tokens_per_second is not None:
        facts.append(("throughput", _say_throughput(standing.tokens_per_second, standing.usual_tokens_per_second)))
    if standing.checkpoint_step is not None:
        facts.append(("newest complete checkpoint", _say_checkpoint(standing, standing.checkpoint_step)))
    if standing.eta is not None:
        facts.append(("time left", _say_left(standing, standing.eta, timezone)))
    if standing.job_id:
        facts.append(("job", standing.job_id))
    if standing.checked_at is not None:
        facts.append(("checked", say_time(standing.checked_at, timezone)))
    facts.extend(standing.links)
    facts.extend(("unknown", gap) for gap in standing.gaps)
    return tuple(facts)


def _say_throughput(now: float, usual: float | None) -> str:
    beside = f", {100 * now / usual:.0f} % of the usual" if usual else ""
    return f"{now:,.0f} tokens/s{beside}"


def _say_checkpoint(standing: Standing, saved: int) -> str:
    """``step 8000, 123 steps back, 40 min old``: what would be lost, as far as it is known."""
    back = f", {standing.step - saved} steps back" if standing.step is not None and standing.step > saved else ""
    is_dated = standing.checkpoint_at is not None and standing.checked_at is not None
    age = standing.checked_at - standing.checkpoint_at if is_dated else timedelta()  # type: ignore[operator] # both are there
    return f"step {saved}{back}{f', {say_duration(age)} old' if age > timedelta() else ''}"


def _say_left(standing: Standing, left: timedelta, timezone: str) -> str:
    since = standing.step_at or standing.checked_at
    end = f", until {say_time(since + left, timezone)}" if since else ""
    return f"about {say_duration(left)}{end}"


def say_command(words: tuple[str, ...]) -> str:
    """Return a command as it could be typed in a shell; what was cut out of it stays as it is shown everywhere."""
    return " ".join(word if word == MARK else shlex.quote(word) for word in words)


def say_time(at: datetime, timezone: str) -> str:
    """``2026-11-29 03:00 UTC`` in the reader's zone."""
    return at.astimezone(ZoneInfo(timezone)).strftime("%Y-%m-%d %H:%M %Z")


def say_validity(at: datetime, until: datetime, timezone: str) -> str:
    """When a status was true and until when to believe it: so the last one of a dead Hero announces that by itself."""
    zone = ZoneInfo(timezone)
    is_same_day = at.astimezone(zone).date() == until.astimezone(zone).date()
    by = until.astimezone(zone).strftime("%H:%M %Z") if is_same_day else say_time(until, timezone)
    return f"true at {say_time(at, timezone)}; if nothing newer stands here by {by}, Hero is not looking"


def say_bytes(count: float) -> str:
    """``1.2 TiB``: three digits at most, in powers of 1024, so that it compares with what storage tools show."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1000:  # noqa: PLR2004 - above it the next unit is shorter
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"  # noqa: PLR2004
        count /= 1024
    return f"{count:.1f} PiB"
