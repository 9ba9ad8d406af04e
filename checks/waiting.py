"""What can go wrong before the job trains: it waits for machines. Waiting tasks of a running job: ``partial.py``."""

import re
from datetime import timedelta

from pydantic import AwareDatetime

from bot.model.contract import Contract
from bot.model.durations import Duration, say_duration
from bot.model.job import Job, JobState
from bot.model.reading import Unknown
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import listed, unseen
from checks.thresholds import Thresholds

PENDING_ID = CheckId("job.pending")


class PendingThresholds(Thresholds):
    wait: Duration = timedelta(minutes=30)
    """How long a job may wait for machines. The procedure's "Capacity or scheduling wedge"."""


class Waits(Value):
    """Since when each job waits, by its instance."""

    since: dict[str, AwareDatetime] = {}


_MISMATCH = re.compile(
    r"mismatch|none have|no matching|does not (?:match|exist)|unknown (?:device|resource|variant)", re.IGNORECASE
)
_CAPACITY = re.compile(
    r"capacity|autoscal|scal(?:e|ing).?up|quota|insufficient|unsatisfied|backoff|no (?:free|available)|waiting for",
    re.IGNORECASE,
)


def pending(seen: Snapshot, _contract: Contract, limits: PendingThresholds, memory: Waits) -> tuple[Verdict, Waits]:
    """Fail when the job or one of its children has waited for too long."""
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "whether the job waits is not known"), memory
    if seen.job is None or seen.job.state.is_terminal:
        return NotApplicable(reason="there is no live job"), Waits()
    live = tuple(job for job in listed(seen) if not job.state.is_terminal)
    waiting = {job.instance_id: job for job in live if job.state in {JobState.PENDING, JobState.BUILDING}}
    memory = Waits(since={name: _waits_since(job, seen, memory) for name, job in waiting.items()})
    name = min(memory.since, key=lambda each: memory.since[each], default=None)
    if name is not None and seen.at - memory.since[name] > limits.wait:
        return Fail(finding=_wait_finding(waiting[name], memory.since[name], seen, limits)), memory
    return Pass(), memory


def _waits_since(job: Job, seen: Snapshot, memory: Waits) -> AwareDatetime:
    first = job.submitted_at if job.started_at is None else seen.at
    return memory.since.get(job.instance_id, first)


def _wait_finding(job: Job, since: AwareDatetime, seen: Snapshot, limits: PendingThresholds) -> Finding:
    reason = " ".join(job.pending_reason.split())[:300] if job.state is JobState.PENDING else ""
    if _MISMATCH.search(reason):
        what = "waits for machines that do not match its request"
        advice = "Compare the requested device type and number with what the cluster has; waiting longer may not help."
    elif _CAPACITY.search(reason):
        what = "waits for capacity"
        advice = (
            "Keep waiting, or ask the DRI to choose other hardware; a capacity wait is no reason to touch the cluster."
        )
    else:
        what = f"is still {job.state}"
        advice = "Ask the orchestrator's owners why it is not scheduled."
    return Finding(
        check=PENDING_ID,
        key=job.instance_id,
        severity=Severity.WARNING,
        summary=f"{job.job_id} {what}, for {say_duration(seen.at - since)} now (limit {say_duration(limits.wait)})",
        evidence=(f"waiting since {since:%Y-%m-%d %H:%M} UTC", *((f"reason given: {reason}",) if reason else ())),
        advice=f"{advice} Hero changes no cluster.",
        since_at=since,
    )


PENDING = Check(
    id=PENDING_ID,
    title="The job waits for machines for too long",
    severity=Severity.WARNING,
    needs=(Source.JOBS,),
    source='manage-hero-run, "What Can Go Wrong": capacity or scheduling wedge; babysit-job, "Check status"',
    thresholds=PendingThresholds(),
    memory=Waits(),
    judge=pending,
)
