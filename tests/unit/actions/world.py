"""A made-up orchestrator under the test's hand, and what it takes to let the real executor loose on it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import event

from bot.actions.executor import Executor
from bot.actions.ports import Fence, StepTaker, Submission, Unlaunchable
from bot.actions.relaunch import plan_relaunch
from bot.actions.steps import Steps
from bot.actions.stopping import StopSteps
from bot.contracts import BadContract
from bot.errors import StoreError
from bot.model.action import Action, ActionState, Done, Refused, StepName, StepOutcome, Uncertain
from bot.model.contract import Contract
from bot.model.job import Job, JobState
from bot.model.plan import Grant, Plan, RequestState
from bot.model.planned import RelaunchPlan, StopPlan
from bot.model.pods import Pod
from bot.model.preflight import PreflightFinding, PreflightReport
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.record import Decision, Record
from bot.model.run import Instance
from bot.model.snapshot import Checkpoint, Snapshot
from bot.model.value import JobId
from bot.redaction import Redactor
from bot.store.leases import Lease
from bot.store.store import Store
from handlers.outcome import decide_outcome
from tests.fakes.clock import FakeClock
from tests.fakes.snapshots import AT, JOB, RUN, checkpoint, contract, failed_job, instance, job, snapshot
from tests.unit.handlers.scene import ADA, context, record, request

POLL = timedelta(seconds=5)
SETTLE = 2 * POLL
SUBMIT_DEADLINE = 4 * POLL
SAVED = (checkpoint(100), checkpoint(200))
LOADING = "Loading checkpoint from gs://bucket/users/ada/hero-12d8b6f0/checkpoints/step-200"
DEADLINES = {
    StepName.VERIFY: timedelta(minutes=10),
    StepName.STOP: timedelta(minutes=10),
    StepName.CONFIRM: timedelta(minutes=10),
    StepName.STABILISE: timedelta(hours=1),
    StepName.RESTORE: timedelta(hours=1),
}


class Killed(BaseException):
    """SIGKILL, as far as the code that was running can tell: nothing catches it."""


class Knife:
    """Counts the moments at which a process can die, and kills it at one of them."""

    def __init__(self) -> None:
        self.moments: list[str] = []
        self.at: int | None = None

    def pass_by(self, moment: str) -> None:
        self.moments.append(moment)
        if self.at == len(self.moments) - 1:
            raise Killed(moment)


class World:
    """Jobs, and what was done to them. Implements ``Launcher`` and ``Checklist`` of ``bot.actions.ports``.

    It stands in for the reader too.
    """

    def __init__(self, clock: FakeClock, knife: Knife) -> None:
        self.clock = clock
        self.knife = knife
        self.found: dict[JobId, Job] = {JOB: failed_job(137)}
        self.checkpoints: tuple[Checkpoint, ...] = SAVED
        self.log = LOADING
        self.steps: tuple[int, ...] = (201,)
        self.is_reachable = True
        self.has_new_job = False
        self.submissions = 0
        self.stops: list[JobId] = []
        self.on_submit: Callable[[], StepOutcome | None] = lambda: None
        """What a submission answers instead of the job id; raising is allowed too."""
        self.arrives_after: int | None = None
        """A submission shows only so many questions later."""
        self.on_question: Callable[[], None] = lambda: None
        self.is_still_submitting = False
        self.pods_answer: tuple[Pod, ...] | Gap = Gap.NOT_CONFIGURED
        """What Kubernetes says of the old job; here it is not configured, unless a test says otherwise."""
        self.neighbours_answer: tuple[Job, ...] | Gap = ()
        """Other jobs of the run that are alive."""
        self.on_pods: Callable[[], None] = lambda: None
        self.readings = 0
        self.findings: tuple[PreflightFinding, ...] = ()
        """Of the launch checklist."""
        self.cursors: list[str] = []

    def live(self) -> None:
        """Let the old job be alive."""
        self.found[JOB] = job()

    def arrive(self, state: JobState = JobState.RUNNING) -> None:
        self.has_new_job = True
        self.found[JOB] = job(state, submitted_at=self.clock.now())

    # Checklist

    async def judge(self, _promised: Contract, _record: Record | None, _seen: Snapshot) -> PreflightReport:
        return PreflightReport(values=(), findings=self.findings)

    # Launcher

    submit_deadline = SUBMIT_DEADLINE

    def prepare(self, promised: Contract, *, number: int) -> Submission | Unlaunchable:
        return Submission(job_id=JOB, command=promised.command)

    async def jobs(self, _promised: Contract, job_id: JobId) -> Reading[tuple[Job, ...]]:
        self.knife.pass_by("before a question")
        self.on_question()
        if self.arrives_after is not None:
            self.arrives_after -= 1
            if self.arrives_after == 0:
                self.arrives_after = None
                self.arrive()
        answer: Reading[tuple[Job, ...]]
        if self.is_reachable:
            answer = Known(value=(self.found[job_id],) if job_id in self.found else (), at=self.clock.now())
        else:
            answer = Unknown(reason=Gap.UNREACHABLE, detail="connection refused", at=self.clock.now())
        self.knife.pass_by("after a question")
        return answer

    async def stop(self, _promised: Contract, plan: RelaunchPlan | StopPlan, grant: Grant) -> StepOutcome:
        self.knife.pass_by("before the stop")
        assert plan.stop is not None
        assert grant.covers(plan, self.clock.now())
        self.stops.append(plan.stop)
        self.found[plan.stop] = self.found[plan.stop].model_copy(update={"state": JobState.KILLED})
        self.knife.pass_by("after the stop")
        return Done(detail="accepted")

    async def submit(self, _promised: Contract, plan: RelaunchPlan, grant: Grant, *, fence: Fence) -> StepOutcome:
        if self.is_still_submitting:
            return Uncertain(detail="an earlier submission of this run is still under way on this machine")
        await fence()
        self.knife.pass_by("before the submission")
        assert grant.covers(plan, self.clock.now())
        self.submissions += 1
        answer = self.on_submit()
        if answer is not None:
            return answer
        self.arrive()
        self.knife.pass_by("after the submission")
        return Done(detail=JOB)

    async def is_submitting(self, _promised: Contract) -> bool:
        return self.is_still_submitting

    # Reader

    async def pods(self, _promised: Contract, _job_id: JobId | None) -> Reading[tuple[Pod, ...]]:
        self.on_pods()
        if isinstance(self.pods_answer, Gap):
            return Unknown(reason=self.pods_answer, detail="no answer", at=self.clock.now())
        return Known(value=self.pods_answer, at=self.clock.now())

    async def neighbours(
        self, _promised: Contract, job_id: JobId | None, _past: tuple[JobId, ...]
    ) -> Reading[tuple[Job, ...]]:
        if isinstance(self.neighbours_answer, Gap):
            return Unknown(reason=self.neighbours_answer, detail="no answer", at=self.clock.now())
        return Known(value=tuple(j for j in self.neighbours_answer if j.job_id != job_id), at=self.clock.now())

    async def read(
        self, promised: Contract, launch: Instance | None, cursor: str, past: tuple[JobId, ...] = ()
    ) -> Snapshot:
        self.readings += 1
        self.cursors.append(cursor)
        if not self.is_reachable:
            dark = Unknown(reason=Gap.UNREACHABLE, detail="connection refused", at=self.clock.now())
            return snapshot(self.clock.now(), launch=launch, jobs=dark, checkpoints=self.checkpoints)
        seen = snapshot(
            self.clock.now(),
            launch=launch,
            jobs=tuple(self.found.values()),
            log=self.log,
            checkpoints=self.checkpoints,
        )
        logged = self.steps if self.has_new_job else ()
        rows = tuple({"step": step, "values": {"loss": 2.0}} for step in logged)
        metrics = {"kind": "known", "at": seen.at, "value": {"rows": rows, "cursor": "new"}}
        beside = await self.neighbours(promised, JOB, past)
        return Snapshot.model_validate({**seen.model_dump(), "metrics": metrics, "neighbours": beside.model_dump()})


class StoreUnderKnife:
    """The real store, with a chance to die before and after each of its transactions."""

    def __init__(self, store: Store, knife: Knife) -> None:
        self._store = store
        self._knife = knife
        self.refusal: StoreError | None = None
        self.after_commit: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @asynccontextmanager
    async def transaction(self, lease: Lease | None = None) -> AsyncIterator[Any]:
        self._knife.pass_by("before a commit")
        if self.refusal is not None:
            raise self.refusal
        async with self._store.transaction(lease) as tx:
            yield tx
        self.after_commit()
        self._knife.pass_by("after a commit")


class Bench:
    """The executor at work in the made-up world."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.clock = clock
        self.knife = Knife()
        self.world = World(clock, self.knife)
        self.store = StoreUnderKnife(store, self.knife)
        self.promised: Contract | BadContract = contract()
        self.alarms: list[StoreError] = []
        self.told: list[str] = []
        self.moves: list[Action] = []
        """The action as it stood after each commit."""
        self._deciding: list[Action] = []
        self.store.after_commit = self._note
        self.lease: Lease | None = None
        self.takers: dict[str, StepTaker] = {}
        """Of kinds of action other than a relaunch."""
        self.executor = self.a_new_one()

    def a_new_one(self) -> Executor:
        """Return the executor of a Hero that has just started: it remembers nothing."""
        world: Any = self.world
        store: Any = self.store
        contracts: Any = self
        steps = Steps(
            launchers={"iris": world},
            checklist=world,
            reader=world,
            store=store,
            clock=self.clock,
            redactor=Redactor(),
            settle=SETTLE,
        )
        self.executor = Executor(
            store=store,
            steps={"relaunch": steps, "stop": StopSteps(launchers={"iris": world}, clock=self.clock), **self.takers},
            contracts=contracts,
            clock=self.clock,
            decide=self._decide,
            alarm=self.alarms.append,
            poll=POLL,
            deadlines=DEADLINES,
            lease=lambda: self.lease,
        )
        return self.executor

    def load(self, _run_id: str) -> Contract | BadContract:
        return self.promised

    def _decide(self, known: Record, action: Action, at: datetime) -> Decision:
        decision = decide_outcome(known, action, context(), at, shape={})
        self._deciding = [action]
        self.told.extend(telling.update.headline for telling in decision.tell)
        return decision

    def _note(self) -> None:
        self.moves += self._deciding
        self._deciding = []

    async def grant(self, *, lasts: timedelta = timedelta(hours=1), is_first: bool = False) -> Action:
        """Store a granted relaunch, planned from the world as it is now."""
        assert isinstance(self.promised, Contract)
        world: Any = self.world
        launch = None if is_first else instance()
        seen = await self.world.read(self.promised, launch, "")
        plan = plan_relaunch(self.promised, seen, launch, world, Redactor())
        assert isinstance(plan, RelaunchPlan)
        return await self.grant_plan(plan, lasts=lasts, launch=launch)

    async def grant_plan(
        self, plan: Plan, *, lasts: timedelta = timedelta(hours=1), launch: Instance | None = None
    ) -> Action:
        """Store a granted plan of any kind."""
        now = self.clock.now()
        granted = request(state=RequestState.GRANTED, plan=plan)
        yes = Grant(request=7, run_id=RUN, digest=plan.digest, by=ADA, at=now, expires_at=now + lasts)
        action = Action(number=1, run_id=RUN, plan=plan, grant=yes)
        known = record(granted)
        run = known.run.model_copy(update={"metrics_cursor": "old"})
        decision = Decision(
            run=run, instances=() if launch is None else (launch,), requests=(granted,), actions=(action,)
        )
        async with self.store._store.transaction() as tx:
            await tx.apply(decision, RUN, now)
        return action

    async def action(self) -> Action:
        found = await self.record()
        return found.actions[0]

    async def record(self) -> Record:
        found = await self.store._store.record(RUN)
        assert found is not None
        return found

    async def work(self, *, until: Callable[[], bool] | None = None, polls: int = 200) -> None:
        """Let the executor run until its action is over, or something else is so, while time passes at every pause."""
        running = asyncio.create_task(self.executor.run())
        try:
            await self._pass_time(running, until or (lambda: False), polls)
        finally:
            running.cancel()
            await asyncio.wait((running,))
        if not running.cancelled() and (error := running.exception()) is not None:
            raise error

    def _is_over(self) -> bool:
        return bool(self.moves) and self.moves[-1].state is not ActionState.GRANTED and not self.executor._busy

    async def _pass_time(self, running: asyncio.Task[None], is_done: Callable[[], bool], polls: int) -> None:
        while not (running.done() or is_done() or self._is_over()):
            if self.clock._sleepers:
                if polls == 0:
                    return
                polls -= 1
                self.clock.advance(POLL)
            await asyncio.sleep(0.0002 if not self.clock._sleepers else 0)


@asynccontextmanager
async def a_bench(directory: Path) -> AsyncIterator[Bench]:
    clock = FakeClock(AT)
    store = await Store.open(f"sqlite:///{directory}/hero.db", clock, Redactor())
    event.listen(store._engine.sync_engine, "connect", _hurry)
    yield Bench(store, clock)
    await store.close()


def _hurry(connection: Any, _record: object) -> None:
    """Leave out the flushes: what dies here is the code, not the machine."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous = OFF")
    cursor.close()


LOST = Uncertain(detail="no answer in 180 s")
FAILED = Uncertain(detail="the submit command failed with exit code 1: client is too old", is_over=True)
NO = Refused(detail="client is too old")
