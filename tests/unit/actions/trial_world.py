"""Two runs of a trial on a made-up cluster, with a tracker: everything a cut-over and a rollback meet.

The world notes for itself what must never happen (``wrongs``): two live coordinators, a second fork, a launch beside a
job that lives, a change that no grant covers.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from bot.actions.agreeing import AgreeSteps
from bot.actions.both_runs import BothRuns
from bot.actions.cutover import CutOverSteps
from bot.actions.executor import Executor
from bot.actions.forking import Forking
from bot.actions.ports import Fence, Submission, Unlaunchable
from bot.actions.rollback import RollbackPlanner, RollbackSteps
from bot.actions.steps import Steps
from bot.actions.trial_launches import child_launch, old_launch
from bot.actions.trial_plans import plan_cutover
from bot.contracts import BadContract
from bot.model.action import Action, ActionState, Done, StepOutcome, Uncertain
from bot.model.conduct import Review, Stage, Trial
from bot.model.contract import Contract
from bot.model.gate import parse_gate
from bot.model.job import Attempt, Job, JobState, TaskState
from bot.model.plan import Grant, Plan
from bot.model.planned import PlannedCheckpoint, RelaunchPlan, StopPlan
from bot.model.pods import Pod
from bot.model.preflight import PreflightReport
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.record import Decision, Record
from bot.model.rehearsal import GuardSays, Limits, Rehearsal
from bot.model.run import Instance, Run
from bot.model.snapshot import Checkpoint, LogTail, Metrics, Snapshot
from bot.model.tracker import ForkPoint, TrackerRunState, TrackerState
from bot.model.trial import Comparison, Happened, Judged, Outcome, Quiet, Window
from bot.model.trialplan import CutOverPlan, GoPlan, PlannedFork, RollbackPlan, TrialPlan
from bot.model.value import JobId, PersonName, RunId
from bot.redaction import Redactor
from bot.render.trial import verdict_words
from bot.store.bells import Bell
from tests.fakes.clock import START, FakeClock
from tests.fakes.snapshots import AT, JOB, RUN, checkpoint, contract, instance, job, lines, rows, snapshot, task
from tests.unit.actions.world import DEADLINES, Knife

CHILD = RunId("hero-ep-4be0c0de")
CHILD_JOB = JobId("/me/hero-ep-coord")
CHILD_ROOT = "gs://bucket/users/ada/hero-ep-4be0c0de"
POLL = timedelta(seconds=5)
SETTLE = 2 * POLL
LATE = 1.5 * POLL
"""So long after it was cut off what was asked for arrives: later than the next look, earlier than it is made again."""
N = 200
HANDOFF = checkpoint(N)
LATER = checkpoint(300)
LIMIT = timedelta(minutes=30)
ADA = PersonName("ada")
FORK = PlannedFork(entity="team", project="hero", parent_id=RUN, child_id=CHILD, fork_step=1234, global_step=N - 1)
LOST = Uncertain(detail="no answer in 60 s")

type Touch = Callable[[str], str]
"""Called with the name of each moment; returns what goes wrong there, empty for nothing."""


def old_contract(**fields: Any) -> Contract:
    trial = {"child_run_id": CHILD, "fork_step": 1234, "gates": ["loss mean <= +0.002"], "handoff_step": N}
    tracker = {"mode": "online", "entity": "team", "project": "hero", "id": RUN}
    return contract(**({"trial": trial, "tracker": tracker} | fields))


def child_contract(**fields: Any) -> Contract:
    given: dict[str, Any] = {
        "run_id": CHILD,
        "command": "iris job run --no-wait --job-name hero-ep-coord -- python -m train",
        "output_root": CHILD_ROOT,
        "orchestrator": {"kind": "iris", "job_id": CHILD_JOB},
        "initialize_from": HANDOFF.path,
        "tracker": {"mode": "online", "entity": "team", "project": "hero", "id": CHILD},
        "cadence": {"check": "15m", "stabilise": "5s"},
    }
    return contract(**(given | fields))


def a_trial_plan(**fields: Any) -> TrialPlan:
    given: dict[str, Any] = {
        "run_id": RUN,
        "child_run_id": CHILD,
        "child_root": f"{CHILD_ROOT}/checkpoints",
        "handoff": PlannedCheckpoint(step=N, path=HANDOFF.path),
        "window_steps": 200,
        "gates": ("loss mean <= +0.002",),
        "quiet": True,
        "alpha": 0.05,
        "fork": FORK,
        "submitter": ADA,
    }
    return TrialPlan.model_validate(given | fields)


def a_trial(plan: TrialPlan | None = None, stage: Stage = Stage.CONTROL_COMPLETE) -> Trial:
    review = Review(by=PersonName("bob"), at=AT)
    return Trial(plan=plan or a_trial_plan(), request=1, agreed_by=ADA, agreed_at=AT, stage=stage, review=review)


def a_comparison(outcome: Outcome = Outcome.PASS, quiet: Outcome = Outcome.PASS) -> Comparison:
    judged = Judged(gate=parse_gate("loss mean <= +0.002"), outcome=outcome, reasons=(f"it is {outcome}",))
    return Comparison(
        window=Window(first_step=N, steps=200),
        alpha=0.05,
        outcome=Outcome.FAIL if Outcome.FAIL in {outcome, quiet} else outcome,
        gates=(judged,),
        quiet=Quiet(outcome=quiet, reasons=("none of each",), happened=Happened()),
        others=(),
        notes=(),
    )


def a_task(job_id: JobId, state: TaskState, *attempts: Attempt, at: datetime) -> Any:
    ended = None if state is TaskState.RUNNING else at
    return task(0, state, job_id=job_id, attempts=attempts or None, started_at=at, finished_at=ended)


class World:
    """Implements launcher, reader, checklist, forker, rehearsal and contracts, all on one set of facts."""

    submit_deadline = 2 * POLL

    def __init__(self, clock: FakeClock, touch: Touch) -> None:
        self.clock = clock
        self.touch = touch
        self.contracts: dict[RunId, Contract | BadContract] = {RUN: old_contract(), CHILD: child_contract()}
        self.undone: list[tuple[float, Contract]] = []
        """Edits of a contract that somebody takes back, and when."""
        self.found: dict[JobId, Job] = {JOB: job(tasks=(a_task(JOB, TaskState.RUNNING, at=START),))}
        self.beside: dict[RunId, tuple[Job, ...]] = {}
        """Other live jobs of a run."""
        self.saved: dict[RunId, tuple[Checkpoint, ...]] = {RUN: (checkpoint(100), HANDOFF, LATER), CHILD: ()}
        self.steps: dict[RunId, tuple[int, ...]] = {RUN: (301, 302), CHILD: (N, N + 1)}
        """What a new launch logs."""
        self.loads: dict[RunId, str] = {RUN: LATER.path, CHILD: HANDOFF.path}
        self.dark: set[str] = set()
        """What cannot be read: a run's id, ``checkpoints``, ``tracker``, ``log``, ``metrics`` …"""
        self.tracked: TrackerState | None = None
        self.pods_left: tuple[Pod, ...] | Gap = Gap.NOT_CONFIGURED
        self.says: tuple[GuardSays, ...] = (_says(Outcome.PASS),)
        self.limits: Reading[Limits] = Known(
            value=Limits(startup=LIMIT, startup_source="trainer.progress_watchdog", step=None, step_source=""), at=AT
        )
        self.gates: Reading[Comparison] = Known(value=a_comparison(), at=AT)
        """What the two runs' rows say."""
        self.checklist = PreflightReport(values=(), findings=())
        self.forks = 0
        self.submissions: list[RunId] = []
        self.stops: list[JobId] = []
        self.late: list[tuple[float, RunId]] = []
        """Submissions that were cut off, and when they arrive."""
        self.late_fork: float | None = None
        """When a fork arrives whose creation was cut off."""
        self.wrongs: list[str] = []

    # What goes on by itself

    def live(self) -> list[JobId]:
        return [each.job_id for each in self.found.values() if not each.state.is_terminal]

    def arrive(self, run_id: RunId) -> None:
        job_id = JOB if run_id == RUN else CHILD_JOB
        now = self.clock.now()
        self.found[job_id] = job(
            job_id=job_id, submitted_at=now, started_at=now, tasks=(a_task(job_id, TaskState.RUNNING, at=now),)
        )
        if len(self.live()) > 1:
            self.wrongs.append(f"two live coordinators: {self.live()}")

    def end(self, job_id: JobId, state: JobState = JobState.KILLED) -> None:
        now = self.clock.now()
        of_task = a_task(job_id, TaskState(state.value), at=now)
        done = {"state": state, "finished_at": now, "tasks": Known(value=(of_task,), at=now)}
        self.found[job_id] = self.found[job_id].model_copy(update=done)

    def retry(self, *states: TaskState) -> None:
        """Let the child's task have had these attempts before its present one."""
        now = self.clock.now()
        before = tuple(
            Attempt(attempt=n, uid=f"u{n}", state=s, exit_code=1, error="", node="n", started_at=now, finished_at=now)
            for n, s in enumerate(states)
        )
        last = Attempt(
            attempt=len(states), uid="new", state=TaskState.RUNNING, exit_code=None, error="", node="n",
            started_at=now, finished_at=None,
        )  # fmt: skip
        tried = a_task(CHILD_JOB, TaskState.RUNNING, *before, last, at=now)
        self.found[CHILD_JOB] = self.found[CHILD_JOB].model_copy(update={"tasks": Known(value=(tried,), at=now)})

    def _arrive_late(self) -> None:
        due = [each for each in self.late if each[0] <= self.clock.monotonic()]
        self.late = [each for each in self.late if each not in due]
        for _, run_id in due:
            self.arrive(run_id)

    def _unknown(self, detail: str = "connection refused") -> Unknown:
        return Unknown(reason=Gap.UNREACHABLE, detail=detail, at=self.clock.now())

    def _read[T](self, what: str, value: T, *of: str) -> Reading[T]:
        is_dark = self.touch(f"read {what}") == "dark"
        return self._unknown() if is_dark or self.dark & {what, *of} else Known(value=value, at=self.clock.now())

    # Contracts

    def load(self, run_id: RunId) -> Contract | BadContract:
        for at, good in self.undone:
            if at <= self.clock.monotonic():
                self.contracts[good.run_id] = good
        return self.contracts[run_id]

    # Launcher

    def prepare(self, promised: Contract, *, number: int) -> Submission | Unlaunchable:
        return Submission(job_id=JOB if promised.run_id == RUN else CHILD_JOB, command=promised.command)

    async def jobs(self, promised: Contract, job_id: JobId) -> Reading[tuple[Job, ...]]:
        self._arrive_late()
        found = (self.found[job_id],) if job_id in self.found else ()
        return self._read("jobs", found, promised.run_id)

    async def is_submitting(self, _promised: Contract) -> bool:
        return False

    async def stop(self, promised: Contract, plan: RelaunchPlan | StopPlan, grant: Grant) -> StepOutcome:
        fault = self.touch("before the stop")
        if not isinstance(plan, StopPlan) or plan.run_id != promised.run_id or not grant.covers(plan, self.clock.now()):
            self.wrongs.append(f"a stop that nobody granted: {plan}")
        assert isinstance(plan, StopPlan)
        if fault == "cut":
            return LOST
        self.stops.append(plan.stop)
        if not self.found[plan.stop].state.is_terminal:
            self.end(plan.stop)
        self.touch("after the stop")
        return LOST if fault == "lost" else Done(detail="accepted")

    async def submit(self, promised: Contract, plan: RelaunchPlan, grant: Grant, *, fence: Fence) -> StepOutcome:
        await fence()
        fault = self.touch("before the submission")
        if plan.run_id != promised.run_id or not grant.covers(plan, self.clock.now()):
            self.wrongs.append(f"a launch that nobody granted: {plan}")
        if alive := self.live():
            self.wrongs.append(f"{promised.run_id} is launched beside {alive}")
        if self.late:
            self.wrongs.append(f"{promised.run_id} is launched while a submission is on its way")
        self.submissions.append(promised.run_id)
        if fault == "cut":
            return LOST
        if fault == "late":
            self.late.append((self.clock.monotonic() + LATE.total_seconds(), promised.run_id))
            return LOST
        self.arrive(promised.run_id)
        self.touch("after the submission")
        return LOST if fault == "lost" else Done(detail=plan.job_id)

    # Checklist

    async def judge(self, _promised: Contract, _record: Record | None, _seen: Snapshot) -> PreflightReport:
        return self.checklist

    # Judges

    async def compared(self, _promised: Contract, _record: Record) -> Reading[Comparison]:
        return self.gates

    # Forker

    async def find(self, fork: PlannedFork) -> Reading[TrackerState | None]:
        if self.late_fork is not None and self.late_fork <= self.clock.monotonic():
            self.late_fork = None
            self._fork(fork)
        return self._read("tracker", self.tracked)

    async def create(self, fork: PlannedFork) -> StepOutcome:
        fault = self.touch("before the fork")
        if fault == "cut":
            return LOST
        if fault == "late":
            self.late_fork = self.clock.monotonic() + LATE.total_seconds()
            return LOST
        self._fork(fork)
        self.touch("after the fork")
        return LOST if fault == "lost" else Done(detail="created")

    def _fork(self, fork: PlannedFork) -> None:
        if self.tracked is not None or self.late_fork is not None:
            self.wrongs.append("a second fork")
        self.forks += 1
        self.tracked = a_fork(fork)

    # Reader

    async def pods(self, _promised: Contract, _job_id: JobId | None) -> Reading[tuple[Pod, ...]]:
        if isinstance(self.pods_left, Gap):
            return Unknown(reason=self.pods_left, detail="no answer", at=self.clock.now())
        return self._read("pods", self.pods_left)

    async def neighbours(
        self, promised: Contract, _job_id: JobId | None, _past: tuple[JobId, ...]
    ) -> Reading[tuple[Job, ...]]:
        return self._read("neighbours", self.beside.get(promised.run_id, ()), promised.run_id)

    async def read(
        self, promised: Contract, launch: Instance | None, _cursor: str, past: tuple[JobId, ...] = ()
    ) -> Snapshot:
        self._arrive_late()
        run_id, job_id = promised.run_id, JOB if promised.run_id == RUN else CHILD_JOB
        current = self.found.get(job_id)
        is_new = current is not None and current.submitted_at > START
        log = lines(f"Loading checkpoint from {self.loads[run_id]}") if is_new else LogTail(lines=(), is_cut=False)
        steps = self.steps[run_id] if is_new else ()
        metrics = Metrics(rows=tuple(row for step in steps for row in rows(step, step)))
        seen = snapshot(self.clock.now(), launch=launch, is_first=launch is None)
        readings = {
            "jobs": self._read("jobs", () if current is None else (current,), run_id),
            "log": self._read("log", log, run_id),
            "metrics": self._read("metrics", metrics, run_id),
            "checkpoints": self._read("checkpoints", self.saved[run_id], run_id),
            "neighbours": await self.neighbours(promised, job_id, past),
        }
        return seen.model_copy(update={"run_id": run_id, **readings})

    # Rehearsal

    async def rehearse(self, promised: Contract, record: Record, plan: TrialPlan) -> Rehearsal:
        launcher: Any = self
        child = self.contracts[CHILD]
        good = child if isinstance(child, Contract) else child_contract()
        seen = await self.read(promised, record.instance, "")
        child_seen = await self.read(good, None, "")
        report = PreflightReport(values=(), findings=())
        launch = child_launch(good, child_seen, None, launcher, Redactor(), report=report, old=seen)
        way_back = old_launch(
            promised, seen, record.instance, launcher, Redactor(), report=report, child=child_seen, as_if_stopped=True
        )
        trial = record.run.trial
        assert trial is not None
        return Rehearsal(
            at=self.clock.now(),
            stage=trial.stage,
            plan=plan,
            contract=promised,
            child=child if isinstance(child, Contract) else None,
            people=frozenset({ADA}),
            review=trial.review,
            instance=record.instance,
            seen=seen,
            child_seen=child_seen,
            is_recovery=False,
            main=self._unknown(),
            boundary=Known(value=None, at=AT),
            pins=Known(value=(), at=AT),
            limits=self.limits,
            credentials=(),
            services=(),
            launch=launch,
            rollback=way_back,
            refusal="",
        )


def a_fork(fork: PlannedFork = FORK, **point: Any) -> TrackerState:
    given = {"run_id": fork.parent_id, "step": fork.fork_step} | point
    return TrackerState(
        entity=fork.entity,
        project=fork.project,
        id=fork.child_id,
        name=fork.child_id,
        state=TrackerRunState.RUNNING,
        url="https://wandb.ai/team/hero/runs/x",
        forked_from=ForkPoint.model_validate(given),
    )


def _says(outcome: Outcome, detail: str = "it holds") -> GuardSays:
    return GuardSays(guard="handoff.complete", title="the handoff is complete", outcome=outcome, detail=detail)


FAILS = _says(Outcome.FAIL, "metadata.json is missing")
CANNOT_TELL = _says(Outcome.CANNOT_TELL, "no answer in 20 s")


class MemoryStore:
    """What the executor needs of the store, in memory; it outlives a Hero, as the database does."""

    def __init__(self, touch: Touch) -> None:
        self.touch = touch
        self.records: dict[RunId, Record] = {}
        self.actions_granted: Any = Bell()

    async def record(self, run_id: RunId) -> Record | None:
        return self.records.get(run_id)

    async def unfinished_actions(self) -> tuple[Action, ...]:
        known = (action for record in self.records.values() for action in record.actions)
        return tuple(action for action in known if action.state is ActionState.GRANTED)

    @asynccontextmanager
    async def transaction(self, _lease: object = None) -> AsyncIterator[Any]:
        self.touch("before a commit")
        yield self
        self.touch("after a commit")

    async def apply(self, decision: Decision, run_id: RunId, _at: datetime) -> None:
        record = self.records[run_id]
        changed = {each.number: each for each in decision.actions}
        actions = {each.number: each for each in record.actions} | changed
        # as the database keeps it: text
        kept = tuple(Action.model_validate_json(each.model_dump_json()) for each in actions.values())
        self.records[run_id] = record.model_copy(update={"actions": kept})


class Bench:
    """The real executor and the real steps, over a world under the test's hand."""

    def __init__(self, touch: Touch | None = None, plan: TrialPlan | None = None) -> None:
        self.clock = FakeClock(AT)
        self.knife = Knife()
        self._touch = touch or self._pass_by
        self.world = World(self.clock, self._touched)
        self.store = MemoryStore(self._touched)
        launch = instance()
        self.store.records[RUN] = Record(run=Run(run_id=RUN, trial=a_trial(plan)), instances=(launch,))
        self.numbers: Iterator[int] = iter(range(1, 100))
        self.executor = self.a_new_one()

    def _touched(self, moment: str) -> str:
        return self._touch(moment)

    def _pass_by(self, moment: str) -> str:
        self.knife.pass_by(moment)
        return ""

    def a_new_one(self) -> Executor:
        """Return the executor of a Hero that has just started: it remembers nothing."""
        world: Any = self.world
        store: Any = self.store
        launchers = {"iris": world}
        redactor = Redactor()
        runs = BothRuns(reader=world, store=store, contracts=world, launchers=launchers, clock=self.clock)
        steps = Steps(
            launchers=launchers,
            checklist=world,
            reader=world,
            store=store,
            clock=self.clock,
            redactor=redactor,
            settle=SETTLE,
        )
        self.planner = RollbackPlanner(runs=runs, checklist=world, redactor=redactor)
        cutover = CutOverSteps(
            steps=steps,
            runs=runs,
            rehearses=world,
            forking=Forking(world, clock=self.clock, settle=SETTLE),
            clock=self.clock,
            redactor=redactor,
            judge=lambda _rehearsal: self.world.says,
        )
        agree = AgreeSteps(runs=runs, judges=world, clock=self.clock, redactor=redactor)
        self.executor = Executor(
            store=store,
            steps={
                "relaunch": steps,
                "cutover": cutover,
                "rollback": RollbackSteps(
                    steps=steps, runs=runs, planner=self.planner, clock=self.clock, redactor=redactor
                ),
                "trial": agree,
                "go": agree,
            },
            contracts=world,
            clock=self.clock,
            decide=lambda _known, action, _at: Decision(actions=(action,)),
            alarm=lambda _error: None,
            poll=POLL,
            deadlines=DEADLINES,
            lease=lambda: None,
        )
        return self.executor

    # Plans

    async def cutover_plan(self) -> CutOverPlan:
        record = self.store.records[RUN]
        trial = record.run.trial
        promised = self.world.contracts[RUN]
        assert trial is not None
        assert isinstance(promised, Contract)
        rehearsal = await self.world.rehearse(promised, record, trial.plan)
        made = plan_cutover(rehearsal, trial, self.world.says, Redactor())
        assert isinstance(made, CutOverPlan), made
        return made

    async def rollback_plan(self) -> RollbackPlan:
        promised = self.world.contracts[RUN]
        assert isinstance(promised, Contract)
        made = await self.planner.plan(promised, self.store.records[RUN])
        assert isinstance(made, RollbackPlan), made
        return made

    def grant(self, plan: Plan, *, lasts: timedelta = timedelta(hours=3)) -> Action:
        now = self.clock.now()
        yes = Grant(request=7, run_id=plan.run_id, digest=plan.digest, by=ADA, at=now, expires_at=now + lasts)
        action = Action(number=next(self.numbers), run_id=plan.run_id, plan=plan, grant=yes)
        record = self.store.records.get(plan.run_id) or Record(run=Run(run_id=plan.run_id))
        self.store.records[plan.run_id] = record.model_copy(update={"actions": (*record.actions, action)})
        return action

    async def grant_cutover(self, **given: Any) -> Action:
        return self.grant(await self.cutover_plan(), **given)

    async def grant_rollback(self, **given: Any) -> Action:
        return self.grant(await self.rollback_plan(), **given)

    async def after_cutover(self) -> None:
        """Let a cut-over have been done, and the trial be at its stage."""
        await self.grant_cutover()
        await self.work()
        assert self.action.state is ActionState.DONE, self.action.noted
        self.at_stage(Stage.RUNNING)

    def at_stage(self, stage: Stage) -> None:
        record = self.store.records[RUN]
        assert record.run.trial is not None
        run = record.run.model_copy(update={"trial": record.run.trial.reached(stage, self.clock.now())})
        self.store.records[RUN] = record.model_copy(update={"run": run})

    def go_plan(self) -> GoPlan:
        launched = self.world.found[CHILD_JOB].instance_id
        assert isinstance(self.world.gates, Known)
        verdict = verdict_words(self.world.gates.value)
        return GoPlan(run_id=RUN, child_run_id=CHILD, instance=launched, verdict=verdict)

    @property
    def action(self) -> Action:
        """The newest one."""
        return self.store.records[RUN].actions[-1]

    def state(self) -> ActionState:
        """Return the newest action's."""
        return self.action.state

    async def work(self, *, until: Callable[[], bool] | None = None, polls: int = 400) -> None:
        """Let the executor run until its action is over, or something else is so, while time passes at every pause."""
        self.store.actions_granted = Bell()
        running = asyncio.create_task(self.executor.run())
        try:
            await self._pass_time(running, until or (lambda: False), polls)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait((running,))
        if not running.cancelled() and (error := running.exception()) is not None:
            raise error

    async def _pass_time(self, running: asyncio.Task[None], is_done: Callable[[], bool], polls: int) -> None:
        while not (running.done() or is_done() or self._is_over()):
            if self.clock._sleepers:
                if polls == 0:
                    return
                polls -= 1
                self.clock.advance(POLL)
            await asyncio.sleep(0)

    def _is_over(self) -> bool:
        known = [action.state for record in self.store.records.values() for action in record.actions]
        return ActionState.GRANTED not in known and not self.executor._busy
