"""What can go wrong over several lives of a run: it fails in the same place again, or in a loop."""

from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.reading import Gap, Unknown
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId
from bot.model.verdict import Fail, Finding, Pass, Severity, UnknownVerdict, Verdict
from checks.check import Check
from checks.current import listed, say_step, unread_tasks, unseen
from checks.failures import Ledger
from checks.patterns import Pattern, RepeatThresholds, pattern_in

REPEATED_ID = CheckId("job.repeated")


def repeated(seen: Snapshot, _contract: Contract, limits: RepeatThresholds, memory: Ledger) -> tuple[Verdict, Ledger]:
    """Fail when the run has failed in the same way or place again without having got past it in between."""
    memory = memory.after(seen, limits.window_steps, limits.window_fraction)
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "whether the job failed again is not known"), memory
    found = pattern_in(memory.failures, limits)
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
        advice=_advice(found),
        since_step=found.failures[0].step,
        since_at=found.failures[0].at,
    )


def _advice(found: Pattern) -> str:
    if found.node is None:
        return (
            "Do not relaunch it blindly again: this looks deterministic. Find what these ends have in common (code, "
            "data at that step, one node), change that, and let the DRI decide how to go on."
        )
    return (
        f"Take {found.node} out of the run's machines before anybody relaunches: ask the cluster's owners to drain it, "
        "or exclude it in the request. The cause showed itself there each time. If it is the run's only machine, "
        "compare with another one first. Hero changes no cluster."
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
