"""The record of verdicts, and its reading: what each check saw and concluded, and why it told or did not. Pure."""

from datetime import datetime

from bot.model.event import RunChecked
from bot.model.history import VerdictChange, say_verdict
from bot.model.incident import News
from bot.model.reading import Known
from bot.model.record import Record
from bot.model.snapshot import Snapshot, newest_complete
from bot.render.words import say_time
from handlers.news import Change, Changes

NEWS_WORDS: dict[News, str] = {
    News.OPENED: "told: a new incident",
    News.WORSE: "told: graver than before",
    News.SILENCE_ENDED: "told: the silence had ended",
    News.RESOLVED: "told: it is over",
    News.NOTHING_NEW: "not told again: nothing new since it was",
    News.PENDING: "not told: not seen often enough yet",
    News.CLOSING: "not told: gone, but not for long enough to call it over",
    News.INHIBITED: "not told: another open incident explains it",
    News.SILENCED: "not told: silenced",
    News.DROPPED: "not told: over before anybody was told",
    News.UNKNOWN: "not told: the check could not look, so the incident stays as it was",
}


def verdict_changes(record: Record, event: RunChecked, changes: Changes) -> tuple[VerdictChange, ...]:
    """Return the verdicts that differ from each check's last one on record."""
    seen = say_seen(event.snapshot)
    made: list[VerdictChange] = []
    for judgement in event.judgements:
        newest = _newest(changes.of(judgement.check))
        now = VerdictChange(
            run_id=record.run_id,
            check=judgement.check,
            at=event.snapshot.at,
            verdict=judgement.verdict,
            seen=seen,
            incident=newest.incident.number if newest else None,
            news=newest.news if newest else None,
        )
        before = record.verdicts.get(judgement.check)
        if before is None or not before.says_the_same(now):
            made.append(now)
    return tuple(made)


def _newest(changes: tuple[Change, ...]) -> Change | None:
    return max(changes, key=lambda change: change.incident.number, default=None)


def say_seen(seen: Snapshot) -> str:
    """Return a snapshot in one line: job, step, loss, checkpoint, and what could not be read."""
    parts: list[str] = []
    if isinstance(seen.jobs, Known):
        parts.append("no job" if seen.job is None else f"job {seen.job.job_id} {seen.job.state}")
    if isinstance(seen.metrics, Known):
        rows = seen.metrics.value.rows
        last = f"step {rows[-1].step}, " + ", ".join(f"{k} {v:.4g}" for k, v in rows[-1].values.items()) if rows else ""
        parts.append(f"{len(rows)} new rows, last {last}" if rows else "no new rows")
    if isinstance(seen.checkpoints, Known):
        newest = newest_complete(seen.checkpoints.value)
        parts.append(f"newest complete checkpoint step {newest.step}" if newest else "no complete checkpoint")
    gaps = [f"{source} unknown ({gap.reason})" for source, gap in seen.gaps()]
    return "; ".join((*parts, *gaps))


def explain_lines(changes: tuple[VerdictChange, ...], at: datetime, timezone: str) -> tuple[str, ...]:
    """Say what each check had concluded at a moment, from its last change until then."""
    lines: list[str] = []
    for change in sorted(changes, key=lambda each: each.check):
        why = f" — {NEWS_WORDS[change.news]}" if change.news else ""
        number = f" (I{change.incident})" if change.incident else ""
        lines.append(f"{change.check}: {say_verdict(change.verdict)}{number}{why}")
        lines.append(f"  since {say_time(change.at, timezone)}, having seen: {change.seen}")
    return tuple(lines) or (f"nothing is on record for {say_time(at, timezone)}",)
