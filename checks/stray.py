"""What can be left beside a run: a diagnostic job that nobody stopped. It is told apart, and judges nothing."""

from datetime import timedelta

from bot.model.contract import Contract
from bot.model.durations import Duration, say_duration
from bot.model.job import Job
from bot.model.reading import Known, Unknown
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import unseen
from checks.kin import diagnostics, is_below, own_jobs
from checks.thresholds import NoMemory, Thresholds

DIAGNOSTIC_ID = CheckId("job.diagnostic")


class DiagnosticThresholds(Thresholds):
    stale: Duration = timedelta(hours=2)
    """So long after the production child's start, and its own, a diagnostic may live. Ours: a probe of a start-up takes
    minutes, a profile less than an hour."""


def diagnostic(
    seen: Snapshot, _contract: Contract, limits: DiagnosticThresholds, memory: NoMemory
) -> tuple[Verdict, NoMemory]:
    """Tell of diagnostic jobs beside the run that outlived what they were for."""
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "whether a diagnostic was left is not known"), memory
    child = _production_child(seen)
    if child is None or child.started_at is None:
        return NotApplicable(reason="no job of the run itself has started"), memory
    began = child.started_at
    stale = tuple(
        job
        for job in diagnostics(seen)
        if not job.state.is_terminal and seen.at - max(job.submitted_at, began) > limits.stale
    )
    return (Fail(finding=_finding(seen, stale, child)) if stale else Pass()), memory


def _production_child(seen: Snapshot) -> Job | None:
    """Return the innermost live job of the run itself, the newest of several; a coordinator only stands above it."""
    live = [job for job in own_jobs(seen) if not job.state.is_terminal and job.started_at is not None]
    inner = [job for job in live if not any(is_below(other, job) for other in live)]
    return max(inner, key=lambda job: job.submitted_at, default=None)


def _finding(seen: Snapshot, stale: tuple[Job, ...], child: Job) -> Finding:
    names = ", ".join(job.job_id for job in stale)
    oldest = min(job.submitted_at for job in stale)
    return Finding(
        check=DIAGNOSTIC_ID,
        key=",".join(sorted(job.instance_id for job in stale)),
        severity=Severity.INFO,
        summary=f"beside the production child {child.job_id} a diagnostic still lives, "
        f"{say_duration(seen.at - oldest)} after its submission: {names}",
        evidence=(
            *(f"{job.job_id}: {job.state}, {_say_tasks(job)}, by its name a diagnostic" for job in stale),
            f"{child.job_id}: {child.state}, {_say_tasks(child)}, the run's own",
        ),
        advice="Ask whose it is, and have it stopped if nobody needs it: it holds machines. By what the job tree shows "
        "it is no second coordinator, and the run's health is not judged by it; what it writes is not known.",
        since_at=oldest,
    )


def _say_tasks(job: Job) -> str:
    count = len(job.tasks.value) if isinstance(job.tasks, Known) else job.expected_tasks
    return "tasks not known" if count is None else f"{count} task{'' if count == 1 else 's'}"


DIAGNOSTIC = Check(
    id=DIAGNOSTIC_ID,
    title="A diagnostic job was left beside the run",
    severity=Severity.INFO,
    needs=(Source.JOBS, Source.TELEMETRY, Source.NEIGHBOURS),
    source='manage-hero-run, "Babysitting": classify stale diagnostic jobs separately from the production child',
    thresholds=DiagnosticThresholds(),
    memory=NoMemory(),
    judge=diagnostic,
)
