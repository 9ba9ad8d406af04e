"""What can go wrong with what a job asks for: another accelerator than the contract names, too few tasks, or none.

It is seen as soon as the job is submitted, long before a wait for machines that never come is.
"""

import re
from datetime import timedelta
from typing import NamedTuple

from pydantic import AwareDatetime

from bot.model.contract import Contract
from bot.model.durations import Duration, say_duration
from bot.model.job import Job
from bot.model.reading import Gap, Unknown
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, UnknownVerdict, Verdict
from checks.check import Check
from checks.current import unseen
from checks.kin import is_below, own_jobs
from checks.thresholds import Thresholds

ACCELERATOR_ID = CheckId("job.accelerator")

_TPU = re.compile(r"(?P<family>v[2-9][a-z]*)(?:-(?P<size>[0-9]{1,5}))?")
_GPU = re.compile(
    r"(?:nvidia-)?(?P<variant>[a-z]{1,4}[0-9]{1,4}[a-z]{0,3})(?:-[0-9]{1,3}gb)?(?:x(?P<count>[0-9]{1,3}))?"
)
_SAME_FAMILY = {"v5e": "v5litepod"}
"""Two names of one family (marin-iris 0.2.227, ``iris/cluster/tpu_topology.py``)."""
_ANY_GPU = "gpu"


class AcceleratorThresholds(Thresholds):
    appear: Duration = timedelta(minutes=30)
    """How long a running job may go on without any job of the run asking for accelerators: a coordinator asks for none
    itself, and launches who does. Ours: it stages code and data first."""


class Bare(Value):
    """Since when no live job of the instance asks for accelerators."""

    instance: str = ""
    since: AwareDatetime | None = None


class Wanted(NamedTuple):
    """One accelerator that will do."""

    kind: str
    size: str | None
    """A TPU's size; None when any will do."""
    each: int | None
    """How many a task; None when any number will do."""


def accelerator(
    seen: Snapshot, contract: Contract, limits: AcceleratorThresholds, memory: Bare
) -> tuple[Verdict, Bare]:
    """Fail when what the trainer asks for is not what the contract names."""
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "what the job asks for is not known"), memory
    if not wanted_of(contract.hardware) and contract.hardware_tasks is None:
        return NotApplicable(reason=_why_not(contract)), memory
    if seen.job is None or seen.job.state.is_terminal or contract.orchestrator.kind != "iris":
        return NotApplicable(reason="there is no live job that tells what it asks for"), Bare()
    return _judge_live(seen, seen.job, contract, limits, memory)


def _judge_live(
    seen: Snapshot, root: Job, contract: Contract, limits: AcceleratorThresholds, memory: Bare
) -> tuple[Verdict, Bare]:
    wanted = wanted_of(contract.hardware)
    live = tuple(job for job in own_jobs(seen) if not job.state.is_terminal)
    asking = tuple(job for job in live if job.accelerator)
    silent = [job for job in live if job.accelerator is None and not any(is_below(other, job) for other in live)]
    wrong = {job: _mismatches(job, wanted, contract.hardware_tasks) for job in asking}
    if any(not found for found in wrong.values()):
        return Pass(), Bare()
    if silent:
        detail = f"the controller does not tell what {silent[0].job_id} asks for"
        return UnknownVerdict(reason=Gap.UNRECOGNISED, detail=detail), memory
    if wrong:
        return Fail(finding=_wrong_finding(wrong, contract)), Bare()
    return _judge_bare(seen, root, contract, limits, memory)


def _judge_bare(
    seen: Snapshot, job: Job, contract: Contract, limits: AcceleratorThresholds, memory: Bare
) -> tuple[Verdict, Bare]:
    since = memory.since if memory.instance == job.instance_id and memory.since else seen.at
    memory = Bare(instance=job.instance_id, since=since)
    waited = seen.at - since
    if job.started_at is None or waited <= limits.appear:
        return NotApplicable(reason="no job asks for accelerators yet; the trainer may still be launched"), memory
    return Fail(finding=_bare_finding(job, contract, waited, limits.appear, since)), memory


def wanted_of(hardware: str | None) -> tuple[Wanted, ...]:
    """Return every accelerator that will do; none when one of the words is not as ``--tpu`` and ``--gpu`` take them."""
    found: list[Wanted] = []
    for word in (hardware or "").lower().split(","):
        if tpu := _TPU.fullmatch(word.strip()):
            found.append(Wanted(_SAME_FAMILY.get(tpu["family"], tpu["family"]), tpu["size"], None))
        elif gpu := _GPU.fullmatch(word.strip()):
            found.append(Wanted(gpu["variant"], None, int(gpu["count"]) if gpu["count"] else None))
        else:
            return ()
    return tuple(found)


def _mismatches(job: Job, wanted: tuple[Wanted, ...], tasks: int | None) -> tuple[str, ...]:
    found: list[str] = []
    if wanted and not any(_will_do(job, each) for each in wanted):
        count = f"x{job.accelerators}" if job.accelerators else ""
        found.append(f"each task asks for {job.accelerator}{count}")
    if tasks is not None and job.expected_tasks is not None and job.expected_tasks != tasks:
        found.append(f"it has {job.expected_tasks} tasks, and {tasks} are meant")
    return tuple(found)


def _will_do(job: Job, wanted: Wanted) -> bool:
    asked = (job.accelerator or "").lower()
    has_count = wanted.each is None or job.accelerators is None or wanted.each == job.accelerators
    if asked == _ANY_GPU:
        return has_count and wanted.size is None
    [found] = wanted_of(asked) or (Wanted(asked, None, None),)
    return found.kind == wanted.kind and wanted.size in {None, found.size} and has_count


def _why_not(contract: Contract) -> str:
    if contract.hardware is None:
        return "the contract names no hardware"
    return f"`hardware` is {contract.hardware!r}: only what --tpu and --gpu take, as v5p-64 or H100x8, can be compared"


def _meant(contract: Contract) -> str:
    tasks = "" if contract.hardware_tasks is None else f", {contract.hardware_tasks} tasks"
    return f"{contract.hardware or 'any accelerator'}{tasks}"


def _wrong_finding(wrong: dict[Job, tuple[str, ...]], contract: Contract) -> Finding:
    first, mismatches = next(iter(wrong.items()))
    return Finding(
        check=ACCELERATOR_ID,
        key=first.instance_id,
        severity=Severity.WARNING,
        summary=f"{first.job_id} asks for other hardware than the contract names ({_meant(contract)}): "
        + "; ".join(mismatches),
        evidence=tuple(f"{job.job_id}, {job.state}: {'; '.join(found)}" for job, found in wrong.items()),
        advice="Compare --tpu or --gpu and the number of replicas in the launch with the contract, and correct the one "
        "that is wrong. A request that no machine matches waits for ever; one that is smaller trains slower, and on "
        "another mesh.",
        since_at=first.submitted_at,
    )


def _bare_finding(job: Job, contract: Contract, waited: timedelta, limit: timedelta, since: AwareDatetime) -> Finding:
    return Finding(
        check=ACCELERATOR_ID,
        key=job.instance_id,
        severity=Severity.WARNING,
        summary=f"no live job of the run has asked for an accelerator for {say_duration(waited)} "
        f"(limit {say_duration(limit)}), and the contract names {_meant(contract)}",
        evidence=(f"{job.job_id} is {job.state}",),
        advice="See whether the launch says --tpu or --gpu: --reserve only holds capacity and attaches no device. If a "
        "coordinator was to launch the trainer, its log says why it has not.",
        since_at=since,
    )


ACCELERATOR = Check(
    id=ACCELERATOR_ID,
    title="The job asks for another accelerator than the contract names",
    severity=Severity.WARNING,
    needs=(Source.JOBS,),
    source='manage-hero-run, "What Can Go Wrong": wrong TPU type or slice count is requested; babysit-job, "Required '
    'Info" 5: --reserve attaches no device',
    thresholds=AcceleratorThresholds(),
    memory=Bare(),
    judge=accelerator,
)
