"""What can go wrong between the trainer's own word and the orchestrator's: one falls silent, both do, or they disagree.

A run is watched from its launch until its end is verified, whatever still tells of it: one that vanished from both
witnesses must be told most of all (field report R35). "Down" needs both of them; while one cannot be read, nothing is
concluded.
"""

from datetime import datetime, timedelta

from bot.model.contract import Contract
from bot.model.durations import Duration, say_duration
from bot.model.reading import Known
from bot.model.snapshot import Snapshot, Source
from bot.model.telemetry import Phase
from bot.model.value import CheckId
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Patience, Severity, Verdict
from checks.check import Check
from checks.current import life_began, say_step
from checks.hang import hang_evidence
from checks.thresholds import Thresholds
from checks.witnesses import Heard, Standing, ask_both, ask_two, say_heard, say_pods, stamp_of, told

GONE_ID = CheckId("telemetry.gone")
DOWN_ID = CheckId("run.down")
CONTRADICT_ID = CheckId("sources.contradict")

_DEFAULT_CADENCE = timedelta(minutes=15)


class SilenceThresholds(Thresholds):
    quiet: Duration = timedelta(minutes=10)
    """The trainer may be silent for so long. It repeats its phase every 60 s; the hero run's own alert: newest phase
    10 min old."""


class GoneThresholds(SilenceThresholds):
    appear: Duration = timedelta(minutes=45)
    """How long a new attempt may run before it has to be heard. As ``progress.startup``: it restores and compiles."""


def gone(seen: Snapshot, _contract: Contract, limits: GoneThresholds, memory: Heard) -> tuple[Verdict, Heard]:
    """Fail when the trainer is no longer heard although the orchestrator counts its tasks as running."""
    memory = memory.after(seen)
    match ask_both(seen):
        case Standing.LIVE if memory.at is None and stamp_of(told(seen)) is None:
            return NotApplicable(reason="this run has never written telemetry"), memory
        case Standing.LIVE:
            return _judge_silence(seen, limits, memory), memory
        case Standing() as standing:
            return NotApplicable(reason=f"no trainer runs, it is {standing}: run.down looks after that"), memory
        case verdict:
            return verdict, memory


def _judge_silence(seen: Snapshot, limits: GoneThresholds, memory: Heard) -> Verdict:
    began = life_began(seen)
    is_current = told(seen).is_of_current_execution
    if is_current is None and memory.at is not None and began is not None:
        is_current = memory.at >= began
    if memory.at is None or is_current is False:
        waited = seen.at - (began or seen.at)
        if waited <= limits.appear:
            return NotApplicable(reason="the newest attempt has not been heard yet; it starts up")
        return Fail(finding=_gone_finding(seen, memory, waited, limits.appear))
    if memory.phase is Phase.FINISHED:
        return NotApplicable(reason="the trainer said that it has finished")
    quiet = seen.at - memory.at
    return Pass() if quiet <= limits.quiet else Fail(finding=_gone_finding(seen, memory, quiet, limits.quiet))


def _gone_finding(seen: Snapshot, memory: Heard, quiet: timedelta, limit: timedelta) -> Finding:
    return Finding(
        check=GONE_ID,
        key=memory.instance,
        severity=Severity.WARNING,
        summary=f"the trainer is not heard for {say_duration(quiet)} (limit {say_duration(limit)}), while the "
        "orchestrator counts its tasks as running",
        evidence=(
            say_heard(memory),
            f"read at {seen.telemetry.at:%H:%M:%S} UTC, and the question was answered",
            *hang_evidence(seen, memory.at),
        ),
        advice="See by log and checkpoints whether it still trains. If it does, the way of its telemetry is broken; if "
        "it does not, process 0 hangs or is dead and the tasks do not show it yet.",
        since_step=memory.step,
        since_at=memory.at,
    )


GONE = Check(
    id=GONE_ID,
    title="The trainer's telemetry is gone while its tasks run",
    severity=Severity.WARNING,
    needs=(Source.JOBS, Source.TELEMETRY, Source.HANG),
    source="the hero run's alert telemetry_gone (marin docs/ops/hero-run-health-alerts.md)",
    thresholds=GoneThresholds(),
    memory=Heard(),
    judge=gone,
    patience=Patience(fails=2, of=3),
)


def down(seen: Snapshot, _contract: Contract, limits: SilenceThresholds, memory: Heard) -> tuple[Verdict, Heard]:
    """Fail when two independent witnesses say that nobody trains: no live task, and no sign of the trainer or its pods.

    Any of them that shows life speaks against it.
    """
    memory = memory.after(seen)
    match ask_two(seen, memory):
        case Standing.LIVE:
            return Pass(), memory
        case Standing.WAITING:
            return NotApplicable(reason="it waits to be started; job.pending looks after that"), memory
        case Standing.OVER:
            return NotApplicable(reason="the job is over; job.ended tells how"), memory
        case Standing() as standing:
            return _judge_dead(seen, limits, memory, standing), memory
        case verdict:
            return verdict, memory


def _judge_dead(seen: Snapshot, limits: SilenceThresholds, memory: Heard, standing: Standing) -> Verdict:
    if standing is Standing.ABSENT and seen.instance is not None and seen.instance.ended_at is not None:
        return NotApplicable(reason="its end is on record")
    if memory.phase is Phase.FINISHED:
        return NotApplicable(reason="the trainer said that it has finished")
    launched = seen.instance.launched_at if seen.instance else seen.job.submitted_at if seen.job else None
    since = max((at for at in (memory.at, memory.pods_at) if at is not None), default=launched)
    if since is None:
        return NotApplicable(reason="nothing of this run was ever seen")
    quiet = seen.at - since
    if quiet <= limits.quiet:
        return NotApplicable(reason=f"it may still live: the last sign of it is {say_duration(quiet)} old")
    return Fail(finding=_down_finding(seen, memory, standing, quiet, limits.quiet))


def _down_finding(seen: Snapshot, memory: Heard, standing: Standing, quiet: timedelta, limit: timedelta) -> Finding:
    said = {
        Standing.ABSENT: "the orchestrator answers that there is no such job",
        Standing.FAILED: "the orchestrator says that the job failed",
    }.get(standing, "the orchestrator shows the job, and no live task of a trainer")
    silent = "its trainer is silent" if isinstance(seen.telemetry, Known) else "no pod of it lives"
    return Finding(
        check=DOWN_ID,
        key=memory.instance,
        severity=Severity.CRITICAL,
        summary=f"the run is down: {said}, and {silent} for {say_duration(quiet)} (limit {say_duration(limit)})",
        evidence=(
            f"orchestrator, read at {seen.jobs.at:%H:%M:%S} UTC: {standing}",
            say_heard(memory) if isinstance(seen.telemetry, Known) else f"telemetry: {seen.telemetry.detail}",
            *say_pods(seen, memory),
        ),
        advice="Find its last log lines and how it ended. Before a relaunch make sure that the job lives under no "
        "other id: two witnesses see nothing, and a third writer of the output root would still be one too many.",
        since_step=memory.step,
        since_at=memory.at or memory.pods_at,
    )


DOWN = Check(
    id=DOWN_ID,
    title="The run is down: neither its tasks nor its trainer show life",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.TELEMETRY, Source.PODS),
    source="the hero run's alert run_down; marin-community/marin#8568",
    thresholds=SilenceThresholds(),
    memory=Heard(),
    judge=down,
)


class ContradictThresholds(Thresholds):
    fresh: Duration = timedelta(minutes=10)
    """A sign of life counts as one for so long."""
    last_words: Duration = timedelta(minutes=1)
    """What a trainer that was ended says so soon after it was first seen to be over is no life. Ours: a killed process
    outlives its job by seconds, and pods have a grace period of half a minute."""
    wind_down: Duration = timedelta(minutes=30)
    """A trainer that has finished may take so long to end, and at least a cadence. Ours: it evaluates and exports."""


def contradict(
    seen: Snapshot, contract: Contract, limits: ContradictThresholds, memory: Heard
) -> tuple[Verdict, Heard]:
    """Fail when the trainer and the orchestrator say opposite things for longer than a cadence."""
    memory = memory.after(seen)
    cadence = contract.cadence.check or _DEFAULT_CADENCE
    match ask_both(seen):
        case Standing() if memory.at is None:
            return NotApplicable(reason="this launch's trainer was never heard"), memory
        case Standing() as standing if standing.is_dead and _is_heard(seen, limits, memory):
            memory = memory.model_copy(update={"opposed_since": memory.opposed_since or seen.at})
            return _judge_alive(seen, memory, standing, limits, cadence), memory
        case Standing.LIVE if memory.phase is Phase.FINISHED:
            memory = memory.model_copy(update={"opposed_since": None})
            return _judge_finished(seen, memory, max(cadence, limits.wind_down)), memory
        case Standing():
            return Pass(), memory.model_copy(update={"opposed_since": None})
        case verdict:
            return verdict, memory


def _is_heard(seen: Snapshot, limits: ContradictThresholds, memory: Heard) -> bool:
    is_fresh = memory.at is not None and seen.at - memory.at <= limits.fresh
    return is_fresh and memory.phase is not Phase.FINISHED


def _judge_alive(
    seen: Snapshot, memory: Heard, standing: Standing, limits: ContradictThresholds, cadence: timedelta
) -> Verdict:
    since = memory.opposed_since or seen.at
    # The last words of a dead trainer may come late, but only once.
    if seen.at - since >= cadence and memory.at is not None and memory.at > since + limits.last_words:
        return Fail(finding=_alive_finding(seen, memory, standing, since))
    return NotApplicable(reason="the two contradict each other for less than a cadence, or by last words alone")


def _judge_finished(seen: Snapshot, memory: Heard, limit: timedelta) -> Verdict:
    finished_at, is_current = told(seen).phase_at, told(seen).is_of_current_execution
    if finished_at is None:
        return Pass()
    began = life_began(seen)
    if is_current is None:
        is_current = began is None or finished_at >= began
    waited = seen.at - finished_at
    if not is_current or waited <= limit:
        return Pass()
    return Fail(finding=_finished_finding(memory, finished_at, waited, limit))


def _alive_finding(seen: Snapshot, memory: Heard, standing: Standing, since: datetime) -> Finding:
    return Finding(
        check=CONTRADICT_ID,
        key=f"alive {memory.instance}",
        severity=Severity.CRITICAL,
        summary=f"sources contradict each other for {say_duration(seen.at - since)}: to the orchestrator the trainer "
        f"is {standing}, and its telemetry goes on",
        evidence=(f"orchestrator, read at {seen.jobs.at:%H:%M:%S} UTC: {standing}", say_heard(memory)),
        advice="Do not relaunch: somebody still trains, and would be a second writer of the same output root. Find the "
        "process by the execution and the job that its telemetry names, and decide which of the two is wrong.",
        since_step=memory.step,
        since_at=since,
    )


def _finished_finding(memory: Heard, finished_at: datetime, waited: timedelta, limit: timedelta) -> Finding:
    return Finding(
        check=CONTRADICT_ID,
        key=f"finished {memory.instance}",
        severity=Severity.WARNING,
        summary=f"sources contradict each other: the trainer said {say_duration(waited)} ago that it has finished "
        f"(limit {say_duration(limit)}), and its tasks still run",
        evidence=(f"finished at {finished_at:%Y-%m-%d %H:%M:%S} UTC, step {say_step(memory.step)}",),
        advice="See whether it still exports or evaluates. If not it hangs at its end and holds its machines; check "
        "the final checkpoint before anybody stops it.",
        since_step=memory.step,
        since_at=finished_at,
    )


CONTRADICT = Check(
    id=CONTRADICT_ID,
    title="The orchestrator and the trainer contradict each other",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.TELEMETRY),
    source='manage-hero-run, "What Can Go Wrong": metrics that "look plausible while attached to the wrong lineage"; '
    "marin-community/marin#8568",
    thresholds=ContradictThresholds(),
    memory=Heard(),
    judge=contradict,
)
