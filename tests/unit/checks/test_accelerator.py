"""``job.accelerator``: what the trainer asks for against what the contract names."""

from datetime import timedelta
from typing import Any

import pytest

from bot.model.job import Job, JobState
from bot.model.verdict import Fail, NotApplicable, Pass, UnknownVerdict, Verdict
from checks.accelerator import ACCELERATOR, Bare
from tests.fakes.snapshots import AT, JOB, contract, job, later, snapshot, unknown

TRAIN = f"{JOB}/train"
COORDINATOR = job(accelerator="", accelerators=0, expected_tasks=1)


def trainer(asked: str | None, count: int | None = None, tasks: int | None = None, **fields: Any) -> Job:
    given: dict[str, Any] = {"job_id": TRAIN, "parent": JOB, "accelerator": asked, "accelerators": count}
    return job(**(given | {"expected_tasks": tasks} | fields))


def judge(jobs: Any, memory: Bare | None = None, *, minutes: float = 0, **promised: Any) -> tuple[Verdict, Bare]:
    seen = snapshot(later(minutes), jobs=jobs)
    return ACCELERATOR.judge(seen, contract(**promised), ACCELERATOR.thresholds, memory or ACCELERATOR.memory)


@pytest.mark.parametrize(
    ("hardware", "tasks", "asked", "said"),
    [
        ("v5p-64", None, ("v5p-64", 4, 8), None),
        ("v5p-64", None, ("v5p-128", 4, 16), "each task asks for v5p-128x4"),
        ("v5p-64", None, ("v5litepod-64", 4, 16), "each task asks for v5litepod-64x4"),
        ("v5e-16", None, ("v5litepod-16", 4, 4), None),
        ("v5p", None, ("v5p-128", 4, 16), None),
        ("v6e-4, v5litepod-4", None, ("v5litepod-4", 4, 1), None),
        ("v5p-64", 16, ("v5p-64", 4, 8), "it has 8 tasks, and 16 are meant"),
        ("v5p-64", 16, ("v5p-64", 4, 16), None),
        (None, 16, ("v5p-64", 4, 8), "it has 8 tasks, and 16 are meant"),
        ("H100x8", None, ("H100", 8, 4), None),
        ("h100-80gb", None, ("H100", 8, 4), None),
        ("H100x8", None, ("H100", 4, 4), "each task asks for H100x4"),
        ("H100x8", None, ("gpu", 8, 4), None),
        ("H200", None, ("GH200", 8, 4), "each task asks for GH200x8"),
        ("v5p-64", None, ("gpu", 8, 4), "each task asks for gpux8"),
    ],
)
def test_what_the_trainer_asks_for_is_compared_with_the_contract(
    hardware: str | None, tasks: int | None, asked: tuple[str, int, int], said: str | None
) -> None:
    verdict, _ = judge((COORDINATOR, trainer(*asked)), hardware=hardware, hardware_tasks=tasks)

    if said is None:
        assert verdict == Pass()
    else:
        assert isinstance(verdict, Fail), verdict
        assert said in verdict.finding.summary
        assert verdict.finding.summary.startswith(TRAIN)


def test_a_wrong_request_is_told_while_it_still_waits_for_machines() -> None:
    waiting = trainer("v5p-8", 4, 1, state=JobState.PENDING, started_at=None)

    assert isinstance(judge((COORDINATOR, waiting), hardware="v5p-64")[0], Fail)


def test_an_evaluation_on_smaller_machines_beside_the_right_trainer_is_nothing() -> None:
    evaluation = trainer("v5p-8", 4, 1, job_id=f"{JOB}/eval")

    assert judge((COORDINATOR, trainer("v5p-64", 4, 8), evaluation), hardware="v5p-64")[0] == Pass()


def test_a_job_that_only_reserves_is_told_when_no_trainer_has_come_for_half_an_hour() -> None:
    early, memory = judge(COORDINATOR, hardware="v5p-64")
    in_time, memory = judge(COORDINATOR, memory, minutes=30, hardware="v5p-64")
    late, _ = judge(COORDINATOR, memory, minutes=31, hardware="v5p-64")

    assert [type(each) for each in (early, in_time, late)] == [NotApplicable, NotApplicable, Fail]
    assert isinstance(late, Fail)
    assert "--reserve only holds capacity" in late.finding.advice
    assert late.finding.since_at == AT


def test_a_pause_between_two_trainers_begins_the_half_hour_anew() -> None:
    _, memory = judge(COORDINATOR, hardware="v5p-64")
    _, memory = judge((COORDINATOR, trainer("v5p-64", 4, 8)), memory, minutes=20, hardware="v5p-64")
    between, _ = judge(COORDINATOR, memory, minutes=40, hardware="v5p-64")

    assert isinstance(between, NotApplicable)


def test_what_is_not_told_is_unknown_and_not_fine() -> None:
    assert isinstance(judge((COORDINATOR, trainer(None)), hardware="v5p-64")[0], UnknownVerdict)
    assert isinstance(judge(unknown(), hardware="v5p-64")[0], UnknownVerdict)


@pytest.mark.parametrize("hardware", [None, "a rack of GB200", "8xH100", "marin-us-east5", "cpu", "V100 or so"])
def test_hardware_that_is_written_for_people_is_not_compared(hardware: str | None) -> None:
    assert isinstance(judge((COORDINATOR, trainer("v5p-8", 4, 1)), hardware=hardware)[0], NotApplicable)


def test_a_job_that_has_ended_asks_for_nothing() -> None:
    ended = job(JobState.FAILED, accelerator="v5p-8", finished_at=AT + timedelta(minutes=1))

    assert isinstance(judge(ended, hardware="v5p-64")[0], NotApplicable)
