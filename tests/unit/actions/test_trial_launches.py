"""The two launches of a trial: each is planned as if the other's job had ended, and nothing else is looked past."""

from typing import Any

import pytest

from bot.actions.ports import Submission, Unlaunchable
from bot.actions.trial_launches import child_launch, live_rivals, old_launch, say_rivals, without_jobs_of
from bot.model.contract import Contract
from bot.model.job import Job, JobState
from bot.model.planned import NoPlan, PlannedCheckpoint, RelaunchPlan
from bot.model.preflight import PreflightFinding, PreflightReport, Weight
from bot.model.reading import Gap, Known, Unknown
from bot.model.snapshot import Snapshot
from bot.model.value import CheckId, JobId
from bot.redaction import Redactor
from tests.fakes.rehearsals import CHILD, CHILD_JOB, child_contract, launched, old_contract
from tests.fakes.snapshots import JOB, RUN, checkpoint, instance, job, snapshot, unknown

SECRET = "hunter2-is-the-password"  # a made-up one
RETRY = "/me/hero-12d8b6f0-coord-2"
CLEAR = PreflightReport(values=(), findings=())


class Launcher:
    """The pure half."""

    def prepare(self, promised: Contract, *, number: int) -> Submission | Unlaunchable:
        job_id = promised.orchestrator.job_id or JobId(f"/local/{promised.run_id}-{number}")
        return Submission(job_id=job_id, command=promised.command)


def of_old(*jobs: Job, neighbours: Any = (), saved: Any = None) -> Snapshot:
    listed = jobs or (job(), job(job_id=f"{JOB}/train"))
    return snapshot(
        jobs=listed, neighbours=neighbours, checkpoints=(checkpoint(100), checkpoint(200)) if saved is None else saved
    )


def of_child(*jobs: Job, neighbours: Any = (), saved: Any = ()) -> Snapshot:
    seen = snapshot(jobs=jobs, neighbours=neighbours, checkpoints=saved, is_first=True)
    return seen.model_copy(update={"run_id": CHILD})


def child(seen: Snapshot, old: Snapshot, report: PreflightReport | None = CLEAR) -> RelaunchPlan | NoPlan:
    launcher: Any = Launcher()
    promised = child_contract(environment={"TOKEN": SECRET})
    return child_launch(promised, seen, None, launcher, Redactor((SECRET,)), report=report, old=old)


def back(seen: Snapshot, child: Snapshot | None, **fields: Any) -> RelaunchPlan | NoPlan:
    launcher: Any = Launcher()
    given = {"report": CLEAR, "as_if_stopped": True, **fields}
    promised = old_contract()
    return old_launch(promised, seen, launched(promised), launcher, Redactor(), child=child, **given)


def test_the_child_is_planned_as_if_the_old_job_had_ended_and_begins_without_a_checkpoint_of_its_own() -> None:
    beside = (job(), job(job_id=f"{JOB}/train"))

    plan = child(of_child(neighbours=beside), of_old())

    assert isinstance(plan, RelaunchPlan)
    assert (plan.run_id, plan.job_id) == (CHILD, CHILD_JOB)
    assert (plan.stop, plan.instance, plan.resume_from) == (None, "", None)
    assert SECRET not in plan.model_dump_json()


def test_a_later_launch_of_the_child_goes_on_from_its_own_newest_complete_checkpoint() -> None:
    plan = child(of_child(saved=(checkpoint(300), checkpoint(400, is_complete=False))), of_old())

    assert isinstance(plan, RelaunchPlan)
    assert plan.resume_from == PlannedCheckpoint(step=300, path=checkpoint(300).path)


def test_another_coordinator_of_the_old_run_stays_in_the_childs_way() -> None:
    rival = job(job_id=RETRY)

    plan = child(of_child(neighbours=(job(), rival)), of_old(neighbours=(rival,)))

    assert isinstance(plan, NoPlan)
    assert not plan.is_unknown
    assert RETRY in plan.reason
    assert f"{JOB};" not in plan.reason


def test_while_it_is_not_known_which_job_is_the_old_one_none_is_taken_out() -> None:
    plan = child(of_child(neighbours=(job(),)), of_old().model_copy(update={"jobs": unknown()}))

    assert isinstance(plan, NoPlan)
    assert JOB in plan.reason


@pytest.mark.parametrize("which", ["root", "below"])
def test_a_live_job_of_the_child_is_in_the_way_and_is_never_stopped_for_it(which: str) -> None:
    root = job(JobState.RUNNING if which == "root" else JobState.FAILED, job_id=CHILD_JOB)
    below = job(job_id=f"{CHILD_JOB}/train")

    plan = child(of_child(root, below), of_old())

    assert isinstance(plan, NoPlan)
    assert not plan.is_unknown
    assert f"{CHILD_JOB}/train" in plan.reason


def test_what_is_not_known_of_the_child_is_no_plan_yet() -> None:
    for field in ("jobs", "checkpoints", "neighbours"):
        plan = child(of_child().model_copy(update={field: unknown()}), of_old())

        assert isinstance(plan, NoPlan), field
        assert plan.is_unknown, field


def test_the_checklists_word_counts_for_both_launches() -> None:
    blocks = PreflightFinding(check=CheckId("launch.code"), weight=Weight.BLOCKS, message="it is dirty", fix="commit")
    report = PreflightReport(values=(), findings=(blocks,))

    for plan in (child(of_child(), of_old(), report), back(of_old(), of_child(), report=report)):
        assert isinstance(plan, NoPlan)
        assert "it is dirty" in plan.reason


def test_the_way_back_is_planned_while_both_jobs_live_and_stops_nothing_itself() -> None:
    lives = job(job_id=CHILD_JOB)

    plan = back(of_old(neighbours=(lives,)), of_child(lives))

    assert isinstance(plan, RelaunchPlan)
    assert plan.run_id == RUN
    assert (plan.stop, plan.instance) == (None, job().instance_id)
    assert plan.resume_from == PlannedCheckpoint(step=200, path=checkpoint(200).path)
    assert plan.source_sha == old_contract().source_sha
    assert plan.command == old_contract().command


def test_the_way_back_is_the_same_once_both_jobs_have_ended() -> None:
    lives, ended = job(job_id=CHILD_JOB), job(JobState.KILLED, job_id=CHILD_JOB)
    over = of_old(job(JobState.KILLED), job(JobState.KILLED, job_id=f"{JOB}/train"))

    before = back(of_old(neighbours=(lives,)), of_child(lives))
    after = back(over, of_child(ended), as_if_stopped=False)

    assert isinstance(before, RelaunchPlan)
    assert before == after


def test_an_old_job_that_lives_is_to_be_stopped_unless_it_counts_as_ended() -> None:
    plan = back(of_old(), of_child(), as_if_stopped=False)

    assert isinstance(plan, RelaunchPlan)
    assert plan.stop == JOB


def test_the_way_back_is_barred_by_a_third_job_and_by_a_child_that_nobody_can_name() -> None:
    third = back(of_old(neighbours=(job(job_id=RETRY),)), of_child())
    nameless = back(of_old(neighbours=(job(job_id=CHILD_JOB),)), None)

    assert isinstance(third, NoPlan)
    assert RETRY in third.reason
    assert isinstance(nameless, NoPlan)
    assert CHILD_JOB in nameless.reason


def test_every_live_job_of_either_run_is_a_rival_though_their_orchestrators_do_not_see_one_another() -> None:
    old = of_old(job(), job(JobState.SUCCEEDED, job_id=f"{JOB}/tokenize"), neighbours=(job(job_id=RETRY),))
    new = of_child(job(job_id=CHILD_JOB))

    found = live_rivals(old, new)

    assert isinstance(found, Known)
    assert {each.job_id for each in found.value} == {JOB, RETRY, CHILD_JOB}
    assert all(name in say_rivals(found.value) for name in (JOB, RETRY, CHILD_JOB))


def test_nothing_lives_when_all_has_ended_or_was_never_there() -> None:
    found = live_rivals(of_old(job(JobState.KILLED)), of_child())

    assert isinstance(found, Known)
    assert found.value == ()


@pytest.mark.parametrize("field", ["jobs", "neighbours"])
@pytest.mark.parametrize("whose", ["old", "child"])
def test_what_lives_is_not_known_while_either_run_cannot_be_asked(field: str, whose: str) -> None:
    runs = {"old": of_old(job(JobState.KILLED)), "child": of_child()}
    runs[whose] = runs[whose].model_copy(update={field: unknown(Gap.UNREACHABLE)})

    found = live_rivals(runs["old"], runs["child"])

    assert isinstance(found, Unknown)
    assert runs[whose].run_id in found.detail


def test_where_nobody_looks_for_neighbours_the_jobs_alone_count() -> None:
    nobody = unknown(Gap.NOT_CONFIGURED)
    old = of_old(job(JobState.KILLED)).model_copy(update={"neighbours": nobody})

    assert isinstance(live_rivals(old, of_child()), Known)
    assert without_jobs_of(old, of_child()) == old


def test_the_orchestrator_may_name_a_job_of_a_later_launch_of_the_old_run_and_that_one_stays() -> None:
    renamed = of_old(job(job_id="/me/hero-r1"))

    left = without_jobs_of(of_child(neighbours=(job(), job(job_id="/me/hero-r1"))), renamed)

    assert isinstance(left.neighbours, Known)
    assert [each.job_id for each in left.neighbours.value] == [JOB]
    assert instance().job_id == JOB
