"""The record of a run as Markdown: what ``hero log RUN --markdown`` prints and the run's issue shows.

Made from the entries alone, so that it can be made anew from them and compared with what was written; times are UTC for
the same reason. The newest launch and the newest events come first, since what does not fit is left out at the end.
"""

from collections.abc import Sequence
from typing import assert_never

from bot.model.chronicle import (
    ActionEnded,
    Asked,
    Change,
    Completed,
    ContractChanged,
    Decided,
    Entry,
    Fact,
    Failed,
    HandedOver,
    Happening,
    HistoryWritten,
    Launched,
    MilestoneReached,
    Promoted,
    Recovered,
    RetentionChanged,
    Sealed,
    StateImported,
    StepEnded,
    TrackerSeen,
    TrialMoved,
    head_of,
)
from bot.model.value import RunId
from bot.render.text import clean, github_escape

_CELL = 1_000
_LINE = 600
_LEAST_ROOM = 600
"""With less than this nothing of use could be shown."""


def record_markdown(run_id: RunId, entries: Sequence[Entry], *, room: int = 60_000) -> str | None:
    """Return the record as Markdown.

    Args:
        run_id: whose.
        entries: all of them, oldest first.
        room: the most characters that it may have; older launches, then older events, are left out, and that is said.

    Returns:
        None when not even the beginning fits.
    """
    if room < _LEAST_ROOM:
        return None
    head = _heading(run_id, entries)
    launches = [_launch(each, entry) for entry in reversed(entries) if isinstance(each := entry.happening, Launched)]
    lines = [_event(entry) for entry in reversed(entries)]
    newest = "\n\n".join((head, *launches[:1]))
    if len(newest) > room - _LEAST_ROOM // 2:
        newest, launches = head, []
    events, shown = _as_many(lines, room - len(newest) - _LEAST_ROOM // 2)
    parts = [newest, _events(events, len(lines) - shown)]
    left = room - sum(len(part) + 2 for part in parts)
    for older in launches[1:]:
        folded = f"<details><summary>An earlier launch</summary>\n\n{older}\n\n</details>"
        left -= len(folded) + 2
        if left < 0:
            break
        parts.append(folded)
    return "\n\n".join(parts)


def say_happening(happening: Happening) -> str:  # noqa: C901, PLR0911, PLR0912 - one line a kind
    """Return what happened in one line of plain text."""
    match happening:
        case Launched(instance=number, job_id=job, is_by_hero=is_ours):
            return f"launch {number}: {job}, {'made by Hero' if is_ours else 'seen, not made by Hero'}"
        case Failed(incident=number, check=check, severity=severity, summary=summary, crash=crash):
            return f"I{number} {check} ({severity}{f', {crash}' if crash else ''}): {summary}"
        case Recovered(incident=number, check=check):
            return f"I{number} {check} is over"
        case Asked(request=number, plan=plan, dri=dri, digest=digest, reason=reason):
            return f"R{number}, a {plan} (plan {digest[:12]}), was put to {dri}: {reason}"
        case Decided(request=number, outcome=outcome, by=by, note=note):
            return f"R{number} {outcome}{f' by {by}' if by else ''}{f': {note}' if note else ''}"
        case StepEnded(action=number, step=step, outcome=outcome, detail=detail):
            return f"action {number}, {step} {outcome}: {detail}"
        case ActionEnded():
            return _say_action(happening)
        case MilestoneReached(step=step, checkpoint_step=saved):
            return f"step {step} is reached; newest complete checkpoint: {_or_unknown(saved)}"
        case Completed(step=step, final_step=final):
            return f"completed: the job succeeded; seen up to step {_or_unknown(step)} of {_or_unknown(final)}"
        case RetentionChanged(changes=changes):
            return f"retention changed: {_say_changes(changes)}"
        case HandedOver(changes=changes, by=by, basis=basis):
            return f"handed over{f' by {by}' if by else ''} ({basis}): {_say_changes(changes)}"
        case ContractChanged(changes=changes):
            return f"contract changed: {_say_changes(changes)}"
        case TrackerSeen(url=url, id=id_, name=name):
            return f"tracker run {id_} ({name}) seen at {url}"
        case StateImported():
            return _say_import(happening)
        case HistoryWritten(command=command, about=about, is_done=is_done, detail=detail):
            return f"run history, {command} for entry {about}: {'done' if is_done else 'FAILED'}: {detail}"
        case Promoted(reason=reason):
            return f"promoted: this diagnostic's record is kept for others to find, since {reason}"
        case Sealed(tag=tag, final_step=step, checkpoint=checkpoint):
            return f"sealed: tag {tag}, final step {step}, checkpoint {checkpoint}"
        case TrialMoved(child_run_id=child, stage=stage, why=why):
            return f"trial of {child}: {stage.replace('_', ' ')}{f', {why}' if why else ''}"
        case _:
            assert_never(happening)


def say_entry(entry: Entry) -> str:
    """Return an entry's content in one line of plain text; one of a kind that this Hero does not know as it stands."""
    happening = entry.happening
    return say_happening(happening) if happening is not None else f"{entry.kind}: {entry.payload}"


def say_fact(fact: Fact) -> tuple[str, str, str]:
    """Return a fact's label, value and basis in words."""
    return fact.label, fact.value if fact.value is not None else "not stated or not known", fact.basis or ""


def _say_action(ended: ActionEnded) -> str:
    words = f"action {ended.action}, the {ended.plan} of R{ended.request}: {ended.outcome}"
    if ended.job_id is not None:
        words += f", {ended.job_id} from step {0 if ended.from_step is None else ended.from_step}"
    return f"{words}: {ended.detail}" if ended.detail else words


def _say_import(imported: StateImported) -> str:
    became = "taken as the current instance" if imported.is_taken else "noted as a claim"
    differs = f"; differs: {'; '.join(imported.differences)}" if imported.differences else ""
    return f"state file imported (stated): {imported.job_id}, restart {imported.restart_count}, {became}{differs}"


def _say_changes(changes: tuple[Change, ...]) -> str:
    return "; ".join(f"{each.field}: {each.before} → {each.after}" for each in changes)


def _or_unknown(step: int | None) -> str:
    return "unknown" if step is None else str(step)


def _heading(run_id: RunId, entries: Sequence[Entry]) -> str:
    count = "1 entry" if len(entries) == 1 else f"{len(entries)} entries"
    return (
        f"### Run record of {_cell(run_id)}\n\n"
        f"{count}, head `{head_of(run_id, entries)}`. Kept by Hero from its own log: what is written between the two "
        "hidden markers around this is overwritten, what stands outside of them is yours. "
        f"`hero log RUN --verify --head {head_of(run_id, entries)[:16]}` tells whether anything was changed since."
    )


def _launch(launched: Launched, entry: Entry) -> str:
    rows = "\n".join(
        f"| {_cell(label)} | {_cell(value)} | {basis} |" for label, value, basis in map(say_fact, launched.facts)
    )
    by = "made by Hero" if launched.is_by_hero else "seen, not made by Hero"
    title = f"**Launch {launched.instance}: {_cell(launched.job_id)}, {_when(entry)} UTC, {by}**"
    return f"{title}\n\n| field | value | basis |\n| --- | --- | --- |\n{rows}"


def _events(lines: Sequence[str], left_out: int) -> str:
    older = f"\n\n{left_out} older entries are not shown here; `hero log RUN --markdown` has all." if left_out else ""
    return f"| # | when (UTC) | what |\n| --- | --- | --- |\n{'\n'.join(lines)}{older}"


def _event(entry: Entry) -> str:
    return f"| {entry.seq} | {_when(entry)} | {_cell(say_entry(entry), _LINE)} |"


def _as_many(lines: Sequence[str], room: int) -> tuple[Sequence[str], int]:
    used = 0
    for place, line in enumerate(lines):
        used += len(line) + 1
        if used > room:
            return lines[:place], place
    return lines, len(lines)


def _when(entry: Entry) -> str:
    return _cell(entry.at[:19].replace("T", " "))


def _cell(text: str, limit: int = _CELL) -> str:
    """Bring foreign text into one cell of a table."""
    return github_escape(" ".join(clean(text, limit).split()))
