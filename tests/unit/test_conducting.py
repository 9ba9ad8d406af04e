"""What the conductor reads at each stage of a trial, and what becomes of a look that hangs or breaks."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from bot.comparing import Comparer
from bot.conducting import Conductor
from bot.model.action import Action
from bot.model.conduct import Review, Stage, Trial
from bot.model.contract import Contract
from bot.model.incident import Acknowledged, Incident, Open, open_incident
from bot.model.job import Job, JobState
from bot.model.plan import Grant
from bot.model.planned import NoPlan, RelaunchPlan, StopPlan
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.record import Record
from bot.model.rehearsal import Rehearsal
from bot.model.run import Run
from bot.model.series import Figure, History, RunRows
from bot.model.trial import Comparison, Outcome
from bot.model.trialplan import CutOverPlan, TrialPlan
from bot.model.value import CheckId, JobId, RunId
from bot.model.verdict import Finding, Severity
from bot.redaction import Redactor
from handlers.trial.look import TrialLook
from tests.fakes.clock import FakeClock
from tests.fakes.rehearsals import (
    BOB,
    CHILD,
    CHILD_JOB,
    HANDOFF,
    child_contract,
    green_rehearsal,
    old_contract,
    trial_plan,
)
from tests.fakes.snapshots import AT, JOB, RUN, attempt, instance, job, task

DARK: Unknown = Unknown(reason=Gap.TIMEOUT, detail="no answer in 20 s", at=AT)
CHILD_INSTANCE = f"{CHILD_JOB}@{AT.isoformat()}"


def rows(uid: str, shift: float = 0.0, last: int | None = None) -> RunRows:
    """A run that logs its loss at every step of the window and beyond."""
    steps = np.arange(HANDOFF - 20, (last or HANDOFF + 260) + 1)
    values = 3 + 0.01 * np.sin(steps) + shift
    figure = Figure(steps, np.zeros_like(steps), values)
    speed = Figure(steps, np.zeros_like(steps), 1000 + np.cos(steps))
    history = History({"loss": figure, "tokens_per_second": speed})
    return RunRows(history=history, executions=(uid,), newest_step=int(steps[-1]))


class World:
    """Everything the conductor asks; what a test does not set is as it should be."""

    def __init__(self, stage: Stage) -> None:
        self.clock = FakeClock()
        self.old, self.child = old_contract(), child_contract()
        plan = trial_plan()
        trial = Trial(plan=plan, request=1, agreed_by=self.old.dri, agreed_at=AT, review=Review(by=BOB, at=AT))
        trial = trial.reached(Stage.LAUNCHED, AT, child_instance=CHILD_INSTANCE).reached(stage, AT)
        self.records = {
            RUN: Record(run=Run(run_id=RUN, trial=trial), instances=(instance(from_step=HANDOFF),)),
            CHILD: Record(run=Run(run_id=CHILD)),
        }
        self.rehearsal: Callable[[], Rehearsal] = green_rehearsal
        self.of = {RUN: rows("iris:a0"), CHILD: rows("iris:c0")}
        self.unread: set[RunId] = set()
        self.child_jobs: Reading[tuple[Job, ...]] = Known(
            value=(job(job_id=CHILD_JOB, submitted_at=AT, tasks=(task(attempts=(attempt(uid="c0"),)),)),), at=AT
        )
        self.handed: list[TrialLook] = []
        self.asked: list[str] = []
        self.published: list[Comparison | None] = []
        self.hangs = False
        self.old_jobs: Reading[tuple[Job, ...]] = Known(value=(job(state=JobState.KILLED),), at=AT)
        self.report: Callable[[], Awaitable[Reading[str]]] | None = None
        """What becomes of a report, where that is not its address."""
        self.deadline = timedelta(seconds=30)

    # The ports

    async def rehearse(self, contract: Contract, record: Record, plan: TrialPlan) -> Rehearsal:
        self.asked.append("rehearse")
        if self.hangs:
            await asyncio.Event().wait()
        return self.rehearsal()

    async def rows(self, contract: Contract, **_: Any) -> Reading[RunRows]:
        self.asked.append(f"rows {contract.run_id}")
        return DARK if contract.run_id in self.unread else Known(value=self.of[contract.run_id], at=AT)

    async def jobs(self, contract: Contract, job_id: JobId) -> Reading[tuple[Job, ...]]:
        self.asked.append(f"jobs {job_id}")
        return self.child_jobs if contract.run_id == CHILD else self.old_jobs

    async def publish(
        self, contract: Contract, trial: Trial, control: History, child: History, found: Comparison | None, **_: Any
    ) -> Reading[str]:
        self.published.append(found)
        if self.report is not None:
            return await self.report()
        return Known(value="https://hero.example/trials/", at=AT)

    async def plan(self, contract: Contract, record: Record | None) -> NoPlan:
        self.asked.append("plan the way back")
        return NoPlan(reason="the child cannot be asked", fix="mend it", is_unknown=True)

    async def record(self, run_id: RunId) -> Record | None:
        return self.records.get(run_id)

    async def incidents_since(self, run_id: RunId, since: Any) -> tuple[Incident, ...]:
        return self.records[run_id].incidents

    def load(self, run_id: RunId) -> Contract:
        return self.child if run_id == CHILD else self.old

    async def hand_on(self, contract: Contract, look: TrialLook) -> None:
        self.handed.append(look)

    def conductor(self) -> Conductor:
        world: Any = self
        return Conductor(
            rehearser=world,
            both=world,
            rollbacks=world,
            launchers={"iris": world},
            comparer=Comparer(world),
            reports=world,
            tracker_reports=None,
            contracts=world,
            store=world,
            clock=self.clock,
            redactor=Redactor(),
            hand_on=self.hand_on,
            deadline=timedelta(seconds=0.2) if self.hangs else self.deadline,
        )

    async def look(self) -> TrialLook:
        await self.conductor().run(self.old)
        return self.handed[-1]


async def test_a_run_without_a_live_trial_is_not_looked_at() -> None:
    world = World(Stage.CLOSED)
    with pytest.raises(IndexError):
        await world.look()
    assert world.asked == []


async def test_the_launch_record_is_looked_at_before_the_whole_rehearsal() -> None:
    first, then = await World(Stage.PLANNED).look(), await World(Stage.RECORDED).look()

    assert {each.guard.split(".")[0] for each in first.guards} <= {"plan", "record"}
    assert len(then.guards) > len(first.guards)
    assert {each.outcome for each in then.guards} == {Outcome.PASS}


async def test_a_cut_over_is_planned_from_guards_that_passed_just_now() -> None:
    look = await World(Stage.CONTROL_COMPLETE).look()

    assert isinstance(look.cutover, CutOverPlan)
    assert look.cutover.stop.run_id == RUN
    assert look.cutover.launch.run_id == CHILD

    world = World(Stage.CONTROL_COMPLETE)
    world.rehearsal = lambda: green_rehearsal(main=DARK)
    dark = await world.look()
    assert isinstance(dark.cutover, NoPlan)
    assert dark.cutover.is_unknown


async def test_before_the_agreed_time_nothing_is_rehearsed() -> None:
    world = World(Stage.CONTROL_COMPLETE)
    trial = world.records[RUN].run.trial
    assert trial is not None
    later = trial.plan.model_copy(update={"starts_at": world.clock.now() + timedelta(hours=1)})
    run = world.records[RUN].run.model_copy(update={"trial": trial.model_copy(update={"plan": later})})
    world.records[RUN] = world.records[RUN].model_copy(update={"run": run})

    look = await world.look()

    assert look.cutover is None
    assert world.asked == []


async def test_equal_runs_pass_and_the_report_is_published_with_the_verdict() -> None:
    world = World(Stage.RUNNING)
    look = await world.look()

    assert look.comparison is not None
    assert look.comparison.outcome is Outcome.PASS, look.comparison
    assert look.is_past_window
    assert look.report_url == "https://hero.example/trials/"
    assert world.published == [look.comparison]
    assert look.child_said == (f"{CHILD_JOB}: running, 1 tasks, newest attempt 0",)


async def test_a_loss_that_is_half_a_percent_worse_fails() -> None:
    world = World(Stage.RUNNING)
    world.of[CHILD] = rows("iris:c0", shift=0.015)

    look = await world.look()

    assert look.comparison is not None
    assert look.comparison.outcome is Outcome.FAIL


async def test_rows_of_another_job_under_the_child_s_name_prove_nothing() -> None:
    world = World(Stage.RUNNING)
    world.of[CHILD] = rows("iris:somebody-else")

    look = await world.look()

    assert look.child_step is None
    assert look.comparison is not None
    assert look.comparison.outcome is Outcome.CANNOT_TELL


@pytest.mark.parametrize("run_id", [RUN, CHILD])
async def test_rows_that_cannot_be_read_are_a_gap_and_no_verdict(run_id: RunId) -> None:
    world = World(Stage.RUNNING)
    world.unread.add(run_id)

    look = await world.look()

    assert look.comparison is None
    assert "no answer in 20 s" in look.comparison_gap


async def test_what_is_critically_wrong_with_the_child_is_told_and_a_warning_is_an_alert_alone() -> None:
    world = World(Stage.RUNNING)
    for number, (severity, check) in enumerate(
        ((Severity.CRITICAL, "progress.stalled"), (Severity.WARNING, "router.collapse")), start=1
    ):
        finding = Finding(check=CheckId(check), severity=severity, summary="it stands still", advice="look")
        opened = open_incident(number, CHILD, finding, AT)
        known = world.records[CHILD]
        world.records[CHILD] = known.model_copy(update={"incidents": (*known.incidents, opened)})

    look = await world.look()

    assert look.stuck == ("I1 progress.stalled: it stands still",)


async def test_what_was_found_before_the_cut_over_or_of_hero_s_own_sight_is_not_against_the_child() -> None:
    world = World(Stage.RUNNING)
    trial = world.records[RUN].run.trial
    assert trial is not None
    trial = trial.reached(Stage.OLD_STOPPED, AT).reached(Stage.RUNNING, AT)
    world.records[RUN] = world.records[RUN].model_copy(update={"run": Run(run_id=RUN, trial=trial)})
    taken_on = Acknowledged(by=BOB, at=AT)
    for number, (check, opened_at, state) in enumerate(
        (
            ("job.ended", AT - timedelta(hours=1), Open()),
            ("monitor.check_broken", AT, Open()),
            ("numerics.nonfinite", AT, taken_on),
        ),
        start=1,
    ):
        finding = Finding(check=CheckId(check), severity=Severity.CRITICAL, summary="it is broken", advice="look")
        opened = open_incident(number, CHILD, finding, opened_at).model_copy(update={"state": state})
        known = world.records[CHILD]
        world.records[CHILD] = known.model_copy(update={"incidents": (*known.incidents, opened)})

    assert (await world.look()).stuck == ("I3 numerics.nonfinite: it is broken",)


AFTER_THE_STOP = (Stage.OLD_STOPPED, Stage.LAUNCHED, Stage.RUNNING, Stage.GO, Stage.NO_GO)


@pytest.mark.parametrize("stage", AFTER_THE_STOP)
async def test_an_old_run_that_was_launched_by_hand_is_seen_at_every_stage_after_its_stop(stage: Stage) -> None:
    stopped, alive, dark = World(stage), World(stage), World(stage)
    alive.old_jobs = Known(value=(job(),), at=AT)
    dark.old_jobs = DARK

    assert [((look := await each.look()).old_lives, look.old_gap) for each in (stopped, alive, dark)] == [
        ("", ""),
        (job().instance_id, ""),
        ("", "whether the old run's job lives: no answer in 20 s"),
    ]


async def test_the_old_run_s_job_is_no_news_while_it_is_the_one_that_trains() -> None:
    for stage in (Stage.CONTROL_COMPLETE, Stage.ROLLED_BACK):
        world = World(stage)
        world.old_jobs = Known(value=(job(),), at=AT)
        assert (await world.look()).old_lives == ""


async def hangs() -> Reading[str]:
    await asyncio.Event().wait()
    raise AssertionError


async def breaks() -> Reading[str]:
    raise RuntimeError("a bug of ours")


async def fails() -> Reading[str]:
    return DARK


@pytest.mark.parametrize(
    ("report", "why"), [(hangs, "longer than"), (breaks, "RuntimeError"), (fails, "no answer in 20 s")]
)
async def test_a_report_that_cannot_be_made_does_not_cost_the_verdict(report: Any, why: str) -> None:
    world = World(Stage.RUNNING)
    world.report = report
    world.deadline = timedelta(seconds=2)

    look = await world.look()

    assert look.comparison is not None
    assert look.comparison.outcome is Outcome.PASS
    assert look.chart is not None
    assert why in look.report_gap
    assert look.comparison_gap == ""


async def test_a_child_is_not_asked_for_where_an_edited_contract_points() -> None:
    world = World(Stage.RUNNING)
    trial = world.records[RUN].run.trial
    assert trial is not None
    plan = a_cutover(trial, world.child.config_digest)
    grant = Grant(request=7, run_id=RUN, digest=plan.digest, by=BOB, at=AT, expires_at=AT + timedelta(hours=1))
    launched = Action(number=1, run_id=RUN, plan=plan, grant=grant, submits=1)
    world.records[RUN] = world.records[RUN].model_copy(update={"actions": (launched,)})
    assert isinstance((await world.look()).child, Known)
    world.child = world.child.model_copy(update={"checkout": "/elsewhere"})
    world.child_jobs = Known(value=(), at=AT)

    look = await world.look()

    assert isinstance(look.child, Unknown)
    assert "was changed since its launch" in look.child.detail
    assert look.child_said == (f"NOT KNOWN: the child's job ({look.child.detail})",)


def a_cutover(trial: Trial, config_digest: str) -> CutOverPlan:
    launch = RelaunchPlan(
        run_id=CHILD,
        instance="",
        stop=None,
        command=("iris", "job", "run"),
        command_sha256="0" * 64,
        directory="/checkout",
        job_id=CHILD_JOB,
        output_root="gs://bucket/child",
        resume_from=None,
        source_sha=None,
        config_digest=config_digest,
        changes=(),
    )
    return CutOverPlan(
        run_id=RUN,
        trial=trial.plan.digest,
        fork=None,
        handoff=trial.plan.handoff,
        stop=StopPlan(run_id=RUN, stop=JOB, instance=job().instance_id),
        launch=launch,
        startup_limit_s=600,
        startup_limit_source="the contract",
        review="bob",
    )


async def test_rows_are_nobody_s_while_the_child_s_attempts_are_not_known() -> None:
    world = World(Stage.RUNNING)
    world.of[CHILD] = rows("iris:c0", shift=0.015)
    world.child_jobs = DARK

    look = await world.look()

    assert look.comparison is None
    assert look.comparison_gap == "which rows are the child's is not known: no answer in 20 s"


async def test_a_go_gets_the_same_word_of_the_gates_as_a_look_or_why_there_is_none() -> None:
    world = World(Stage.RUNNING)
    look, found = await world.look(), await world.conductor().compared(world.old, world.records[RUN])
    world.unread.add(CHILD)
    dark = await world.conductor().compared(world.old, world.records[RUN])

    assert isinstance(found, Known)
    assert found.value == look.comparison
    assert isinstance(dark, Unknown)
    assert dark.detail == "the child's rows cannot be read: no answer in 20 s"


async def test_what_pins_the_old_run_is_not_none_because_nobody_could_look() -> None:
    dark, broken = World(Stage.GO), World(Stage.GO)
    dark.rehearsal = lambda: green_rehearsal(pins=DARK)
    broken.hangs = True

    assert (await World(Stage.GO).look()).pins_gap == ""
    assert (await dark.look()).pins_gap == "no answer in 20 s"
    assert "took longer than" in (await broken.look()).pins_gap


@pytest.mark.parametrize("is_dark", [True, False])
async def test_a_replay_that_nobody_can_look_at_ends_as_not_told_after_a_day(*, is_dark: bool) -> None:
    world = World(Stage.ROLLED_BACK)
    if is_dark:
        world.unread.add(RUN)
    else:
        world.records[RUN] = world.records[RUN].model_copy(update={"instances": (instance(),)})
    early = await world.look()
    world.clock.advance(timedelta(hours=26))
    late = await world.look()

    assert (early.trajectory, early.is_long_enough) == (None, False)
    assert late.is_long_enough
    assert late.trajectory is not None
    assert late.trajectory.outcome is Outcome.CANNOT_TELL
    assert ("no answer in 20 s" if is_dark else "not on record") in late.trajectory.detail


async def test_a_no_go_asks_for_the_way_back_and_reads_nothing_else() -> None:
    world = World(Stage.NO_GO)
    look = await world.look()

    assert isinstance(look.rollback, NoPlan)
    assert world.asked == [f"jobs {JOB}", "plan the way back"]


async def test_a_look_that_hangs_or_breaks_is_one_that_has_seen_nothing() -> None:
    hanging = World(Stage.PLANNED)
    hanging.hangs = True
    broken = World(Stage.PLANNED)

    def breaks() -> Rehearsal:
        raise RuntimeError("a bug of ours")

    broken.rehearsal = breaks

    for world in (hanging, broken):
        look = await world.look()
        assert look.stage is Stage.PLANNED
        assert look.guards == ()
        assert look.comparison_gap
