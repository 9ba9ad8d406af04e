"""checkpoint.risk: after a failure at a permanent save the next one is still exposed (field report R26)."""

from bot.model.job import Job, JobState, TaskState
from bot.model.snapshot import Checkpoint, Snapshot
from bot.model.verdict import Fail, NotApplicable, Pass, UnknownVerdict
from checks.saverisk import RISK
from tests.fakes.snapshots import (
    attempt,
    checkpoint,
    contract,
    failed_job,
    instance,
    job,
    later,
    rows,
    snapshot,
    task,
    unknown,
)
from tests.unit.checks.story import finding, verdict, verdicts

PERMANENT = (checkpoint(1_000), checkpoint(2_000))


def retried(number: int) -> Job:
    """Return the job in its attempt of that number, the ones before failed."""
    before = tuple(attempt(n, TaskState.FAILED, exit_code=1) for n in range(number))
    return job(tasks=(task(0, attempts=(*before, attempt(number))),))


def look(
    minutes: int, first: int, last: int, *, number: int = 0, found: tuple[Checkpoint, ...] = PERMANENT
) -> Snapshot:
    """Return a look at a run that trains ten steps a minute."""
    logged = rows(first, last, until=later(minutes), every_s=6)
    return snapshot(later(minutes), jobs=retried(number), metrics=logged, checkpoints=found)


def past_it(step: int = 3_000) -> list[Snapshot]:
    """Return a run that dies at a step, is retried from 2900 and gets past it."""
    return [
        look(0, step - 150, step - 50),
        look(15, step - 49, step),
        look(30, 2_900, step + 20, number=1),
        look(45, step + 21, step + 170, number=1),
    ]


def test_a_failure_at_a_permanent_save_stays_open_after_the_retry_and_names_the_next_save() -> None:
    found = verdicts(RISK, past_it())

    assert [isinstance(each, Fail) for each in found] == [False, False, True, True]
    last = finding(RISK, *past_it())
    assert last.summary.startswith(
        "permanent saves are at risk since step 3000; the next one is at step 4000, expected"
    )
    assert "in 1 h 23 min" in last.summary
    assert last.since_step == 3_000


def test_it_closes_when_a_later_permanent_save_is_complete_and_clean() -> None:
    unclean = checkpoint(4_000).model_copy(update={"fault": "the save is not clean: metadata.json.tmp is still there"})
    still = look(150, 4_000, 4_010, number=1, found=(*PERMANENT, unclean))
    over = look(250, 5_000, 5_010, number=1, found=(*PERMANENT, checkpoint(5_000)))

    found = verdicts(RISK, [*past_it(), still, over])

    assert isinstance(found[-2], Fail)
    assert "step 5000" in found[-2].finding.summary
    assert found[-1] == Pass()


def test_a_failure_elsewhere_or_after_the_save_was_done_is_none() -> None:
    assert verdicts(RISK, past_it(2_950))[-1] == Pass()
    done = (*PERMANENT, checkpoint(3_000))
    after = [each if n < 2 else look(15 * n, 2_900, 3_020, number=1, found=done) for n, each in enumerate(past_it())]
    assert verdicts(RISK, after)[-1] == Pass()


def test_a_job_that_ended_at_a_save_is_found_also_when_it_was_relaunched() -> None:
    died = snapshot(later(15), jobs=failed_job(), metrics=rows(2_951, 3_000), checkpoints=PERMANENT)
    again = snapshot(
        later(45),
        jobs=job(submitted_at=later(30)),
        launch=instance(1, submitted_at=later(30)),
        metrics=rows(2_900, 3_050),
        checkpoints=PERMANENT,
    )

    assert [isinstance(each, Fail) for each in verdicts(RISK, [look(0, 2_850, 2_950), died, again])] == [
        False,
        True,
        True,
    ]


def test_milestones_tell_the_saves_while_no_interval_is_known() -> None:
    promised = contract(retention={"milestones": [3_000, 7_000]})
    story = [
        each.model_copy(update={"checkpoints": snapshot(each.at, checkpoints=[checkpoint(900)]).checkpoints})
        for each in past_it()
    ]

    assert "at step 7000" in finding(RISK, *story, promised=promised).summary
    assert verdict(RISK, *story) == Pass()


def test_a_save_that_left_something_behind_is_a_risk_by_itself() -> None:
    unclean = checkpoint(2_000).model_copy(update={"fault": "the save is not clean: metadata.json.tmp is still there"})

    found = finding(RISK, look(0, 2_000, 2_100, found=(checkpoint(1_000), unclean)))

    assert "not clean" in found.evidence[0]


def test_what_cannot_be_read_is_no_pass_and_without_permanent_ones_there_is_no_risk() -> None:
    for dark in ({"checkpoints": unknown()}, {"jobs": unknown()}, {"metrics": unknown()}):
        assert isinstance(verdict(RISK, look(0, 1, 5).model_copy(update=dark)), UnknownVerdict)
    assert isinstance(verdict(RISK, snapshot(jobs=job(JobState.RUNNING))), NotApplicable)
