"""A diagnostic beside the run is told apart from its production child, and the run is not judged by it."""

from typing import Any

import pytest

from bot.model.job import Job, JobState, TaskState
from bot.model.reading import Gap, Known
from bot.model.snapshot import LogLine, LogTail, Snapshot
from bot.model.telemetry import Phase, Telemetry
from bot.model.verdict import Fail, NotApplicable, Pass, Severity, UnknownVerdict
from checks.job import DUPLICATE, ENDED
from checks.kin import diagnostics
from checks.partial import PARTIAL
from checks.progress import STALLED
from checks.repeats import REPEATED
from checks.stray import DIAGNOSTIC
from checks.telemetry import DOWN
from tests.fakes.clock import START
from tests.fakes.snapshots import (
    AT,
    JOB,
    RUN,
    attempt,
    blind,
    contract,
    failed_job,
    job,
    later,
    row,
    snapshot,
    task,
    unknown,
)
from tests.unit.checks.story import finding, verdict, verdicts

CHILD = f"{JOB}/grug-train-{RUN}"
PROBE = f"{JOB}/nccl-probe"


def tasks(job_id: str, count: int, state: TaskState = TaskState.RUNNING) -> Any:
    return tuple(task(index, state, job_id=job_id) for index in range(count))


def tree(*others: Job, child: JobState = JobState.RUNNING, count: int = 8) -> tuple[Job, ...]:
    """Return a coordinator, its production child of so many tasks, and other jobs."""
    return (
        job(),
        job(child, job_id=CHILD, parent=JOB, tasks=tasks(CHILD, count, TaskState(child.value))),
        *others,
    )


def probe(job_id: str = PROBE, *, count: int = 1, state: JobState = JobState.RUNNING, **fields: Any) -> Job:
    parent = JOB if job_id.startswith(f"{JOB}/") else None
    return job(state, job_id=job_id, parent=parent, **{"tasks": tasks(job_id, count, TaskState(state.value)), **fields})


def test_a_probe_that_lives_for_hours_beside_the_production_child_is_information() -> None:
    found = finding(DIAGNOSTIC, snapshot(later(61), jobs=tree(probe())))

    assert found.severity is Severity.INFO
    assert found.key == f"{PROBE}@{START.isoformat()}"
    assert PROBE in found.summary
    assert CHILD in found.summary
    assert f"{PROBE}: running, 1 task, by its name a diagnostic" in found.evidence
    assert not found.is_recoverable


@pytest.mark.parametrize(
    ("jobs", "minutes"),
    [
        (tree(probe()), 59),
        (tree(probe(submitted_at=AT)), 119),
        (tree(probe(state=JobState.SUCCEEDED)), 600),
        (tree(), 600),
    ],
    ids=["not for long", "submitted later", "over", "none"],
)
def test_a_diagnostic_that_is_new_or_over_is_nothing_to_tell(jobs: tuple[Job, ...], minutes: float) -> None:
    assert verdict(DIAGNOSTIC, snapshot(later(minutes), jobs=jobs)) == Pass()


def test_what_is_no_diagnostic_by_name_and_size_counts_as_the_runs_own() -> None:
    alike = tree(
        probe(f"{JOB}/grug-train-{RUN}-2"),
        probe(f"{JOB}/tokenize"),
        probe(f"{JOB}/debug-train", count=8),
        probe(f"{JOB}/smoke", tasks=unknown()),
        probe(f"{JOB}/contest"),
    )

    assert diagnostics(snapshot(jobs=alike)) == ()


def test_a_run_that_is_called_a_trial_itself_and_the_trainer_by_its_own_word_are_no_diagnostics() -> None:
    root = "/me/hero-trial-coord"
    called = (job(job_id=root), job(job_id=f"{root}/train-trial", parent=root, tasks=tasks("t", 1)))
    heard = snapshot(jobs=tree(probe(), count=1))
    heard = heard.model_copy(update={"telemetry": Known(value=Telemetry(job_id=PROBE), at=AT)})

    assert diagnostics(snapshot(jobs=called)) == ()
    assert diagnostics(heard) == ()


def test_a_small_diagnostic_of_the_same_user_is_no_second_coordinator_and_another_coordinator_is() -> None:
    assert verdict(DUPLICATE, snapshot(jobs=tree(probe("/me/hero-probe")))) == Pass()
    assert isinstance(verdict(DUPLICATE, snapshot(jobs=tree(probe("/me/hero-coord-2")))), Fail)
    assert isinstance(verdict(DUPLICATE, snapshot(jobs=tree(probe("/me/hero-debug", count=8)))), Fail)
    assert isinstance(verdict(DUPLICATE, snapshot(jobs=tree(probe("/me/hero-debug", tasks=unknown())))), Fail)


def test_a_living_probe_does_not_keep_a_run_up_whose_production_child_is_dead() -> None:
    def told(seen: Snapshot) -> Snapshot:
        said = Telemetry(phase=Phase.TRAINING, phase_at=AT, last_row_at=AT, job_id=CHILD)
        return seen.model_copy(update={"telemetry": Known(value=said, at=seen.at)})

    story = [
        told(snapshot(AT, jobs=tree(probe()))),
        told(snapshot(later(30), jobs=tree(probe(), child=JobState.FAILED))),
    ]

    assert verdicts(DOWN, story)[0] == Pass()
    assert isinstance(verdicts(DOWN, story)[-1], Fail)


def test_a_probe_that_starts_does_not_excuse_a_step_that_stands_still() -> None:
    begins = probe(submitted_at=later(10), tasks=(task(0, job_id=PROBE, attempts=(attempt(started_at=later(10)),)),))
    story = [snapshot(AT, jobs=tree(), metrics=[row(100, at=AT)]), snapshot(later(30), jobs=tree(begins))]

    assert isinstance(verdicts(STALLED, story)[-1], Fail)


def test_a_probe_that_waits_or_fails_is_neither_the_runs_wait_nor_its_failure() -> None:
    waiting = probe(tasks=(task(0, TaskState.PENDING, job_id=PROBE),))
    story = [snapshot(later(minutes), jobs=tree(waiting)) for minutes in (0, 31)]
    dead = [
        snapshot(later(n * 60), jobs=tree(failed_job(1, job_id=PROBE, parent=JOB, submitted_at=later(n * 60 - 50))))
        for n in range(3)
    ]

    assert verdicts(PARTIAL, story)[-1] == Pass()
    assert verdict(REPEATED, *dead) == Pass()


def test_what_a_probe_printed_is_not_why_the_run_ended() -> None:
    printed = LogTail(
        lines=(
            LogLine(text="NameError: name 'figurs' is not defined", task=f"{PROBE}/0", attempt=0),
            LogLine(
                text="slurmstepd: error: *** JOB 7 ON n3 CANCELLED AT 03:10 DUE TO PREEMPTION ***", task=f"{CHILD}/0"
            ),
        ),
        is_cut=False,
    )
    dead = (
        job(JobState.FAILED, finished_at=AT, tasks=tasks(JOB, 1, TaskState.FAILED)),
        failed_job(1, job_id=CHILD, parent=JOB),
        failed_job(1, job_id=PROBE, parent=JOB, finished_at=START),
    )

    found = finding(ENDED, snapshot(jobs=dead, log=printed))

    assert "preemption" in found.summary.lower()
    assert "figurs" not in f"{found.summary} {found.evidence}"


def test_jobs_that_are_not_known_or_not_started_tell_of_no_diagnostic() -> None:
    assert isinstance(verdict(DIAGNOSTIC, blind()), UnknownVerdict)
    assert isinstance(verdict(DIAGNOSTIC, snapshot(jobs=())), NotApplicable)
    assert isinstance(
        verdict(DIAGNOSTIC, snapshot(jobs=job(JobState.PENDING, started_at=None)), promised=contract()), NotApplicable
    )


def test_a_neighbour_that_is_a_small_diagnostic_is_told_as_such_and_is_no_second_coordinator() -> None:
    def beside(job_id: str, expected_tasks: int | None = 1) -> Job:
        return job(job_id=job_id, tasks=unknown(Gap.NOT_CONFIGURED), expected_tasks=expected_tasks)

    seen = snapshot(later(61), jobs=tree(), neighbours=(beside("/me/hero-debug"),))
    large = snapshot(later(61), jobs=tree(), neighbours=(beside("/me/hero-debug", 8),))

    assert "/me/hero-debug: running, 1 task, by its name a diagnostic" in finding(DIAGNOSTIC, seen).evidence
    assert verdict(DUPLICATE, seen) == Pass()
    assert isinstance(verdict(DUPLICATE, large), Fail)
    assert verdict(DIAGNOSTIC, large) == Pass()
