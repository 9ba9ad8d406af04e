"""What can go wrong over several lives of a run: it fails in the same place again, or in a loop."""

from datetime import timedelta

from pydantic import Field

from bot.model.contract import Contract
from bot.model.durations import Duration, say_duration
from bot.model.reading import Gap, Unknown
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId
from bot.model.verdict import Fail, Finding, Pass, Severity, UnknownVerdict, Verdict
from checks.check import Check
from checks.current import listed, say_step, unread_tasks, unseen
from checks.failures import Ledger, Pattern, pattern_in
from checks.thresholds import Thresholds

REPEATED_ID = CheckId("job.repeated")


class RepeatThresholds(Thresholds):
    window_steps: int = Field(default=50, ge=0)
    """Failures at most so many steps apart are in the same place; progress is to get further than this beyond one. The
    procedure's "same-step or same-window failures"; the number is ours: a few minutes of a large run."""

    window_fraction: float = Field(default=0.01, ge=0, le=1)
    """As ``window_steps``, as a fraction of the step; the larger of the two holds. Ours: checkpoints of long runs lie
    further apart."""

    loop: int = Field(default=3, ge=2)
    """So many short lives in a row are a crash loop, whatever each died of. Ours."""

    short: Duration = timedelta(minutes=20)
    """A life shorter than this is a short one. Ours: restore and compilation of a large run take up to
    half an hour, so little was trained."""


def repeated(seen: Snapshot, _contract: Contract, limits: RepeatThresholds, memory: Ledger) -> tuple[Verdict, Ledger]:
    """Fail when the run has failed in the same way or place again without having got past it in between."""
    memory = memory.after(seen, limits.window_steps, limits.window_fraction)
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "whether the job failed again is not known"), memory
    found = pattern_in(
        memory.failures,
        loop=limits.loop,
        short=limits.short,
        window_steps=limits.window_steps,
        window_fraction=limits.window_fraction,
    )
    if found is not None:
        return Fail(finding=_finding(found)), memory
    if memory.failures and not memory.failures[-1].is_settled:
        gap = next((each for each in (seen.log, seen.metrics) if isinstance(each, Unknown)), None)
        reason = gap.reason if gap else Gap.UNRECOGNISED
        return UnknownVerdict(reason=reason, detail="log or metrics of the last failure could not be read"), memory
    if gap := unread_tasks(listed(seen)):
        return unseen(gap, "whether tasks failed again is not known"), memory
    return Pass(), memory


def _finding(found: Pattern) -> Finding:
    last = found.failures[-1]
    return Finding(
        check=REPEATED_ID,
        severity=Severity.CRITICAL,
        summary=f"{found.what} without progress beyond it; the last: {last.signature} at step {say_step(last.step)}",
        evidence=tuple(
            f"{each.at:%Y-%m-%d %H:%M} UTC, step {say_step(each.step)}: {each.signature}"
            + (f", lived {say_duration(each.lived)}" if each.lived is not None else "")
            + (f", on {each.node}" if each.node else "")
            for each in found.failures[-5:]
        ),
        advice="Do not relaunch it blindly again: this looks deterministic. Find what these ends have in common (code, "
        "data at that step, one node), change that, and let the DRI decide how to go on.",
        since_step=found.failures[0].step,
        since_at=found.failures[0].at,
    )


REPEATED = Check(
    id=REPEATED_ID,
    title="The run fails in the same place again",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.LOG, Source.METRICS),
    source='manage-hero-run, "What Can Go Wrong": repeated recoverable failures; bobmatnyc/trusty-tools#3631',
    thresholds=RepeatThresholds(),
    memory=Ledger(),
    judge=repeated,
)
