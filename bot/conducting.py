"""Looks at the trial of a run after each check of it, and hands on what its stage needs to know.

One look reads, judges with pure functions, and goes to ``handlers/trial/``, which decides. Nothing here changes
anything but the report, which is a picture of what was read.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta

import structlog

from bot.actions.both_runs import BothRuns, changed_since_launch, was_never_launched
from bot.actions.ports import Launcher, Rehearses
from bot.actions.rollback import RollbackPlanner
from bot.actions.trial_plans import live_jobs, plan_cutover
from bot.clock import Clock
from bot.comparing import Compared, Comparer, launched_at
from bot.contracts import BadContract, Contracts
from bot.model.conduct import Stage, Trial
from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.incident import Incident
from bot.model.job import Job
from bot.model.planned import NoPlan
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.record import Record
from bot.model.rehearsal import Rehearsal
from bot.model.roles import with_roles
from bot.model.series import History
from bot.model.trial import Comparison, Outcome
from bot.model.trialplan import CutOverPlan
from bot.model.value import JobId
from bot.model.verdict import Severity
from bot.redaction import Redactor
from bot.showing import On, Reports, Showing, Shown, TrackerReports
from bot.store.store import Store
from checks.trial.control import ControlSays
from checks.trial.guards.guard import Group
from checks.trial.guards.judging import judge_guards
from checks.trial.trajectory import TrajectorySays
from handlers.trial.look import TrialLook

log = structlog.get_logger()

type HandOn = Callable[[Contract, TrialLook], Awaitable[None]]

_REPLAYED = 2
"""After so many windows of replayed steps a comparison with the old trajectory that is still open stays so."""
_REPLAY_LIMIT = timedelta(hours=24)
_UNTOLD_LIMIT = timedelta(hours=1)
"""So long after the rollback, rows that cannot be told from the old ones stay so: no step was trained twice."""
_STAGED = (Group.PLAN, Group.RECORD)
_NOTHING = History({})
_JOBS_SAID = 3
_OLD_HAS_ENDED = frozenset({Stage.OLD_STOPPED, Stage.LAUNCHED, Stage.RUNNING, Stage.GO, Stage.NO_GO})
"""At these the old run was stopped for the child, and is not to live beside it."""
_ABOUT_HERO = "monitor."
"""Checks of Hero's own sight: what they find says nothing of the child."""


class Conductor:
    """Looks at one trial at a time; keeps nothing between two looks but what is in the store."""

    def __init__(
        self,
        *,
        rehearser: Rehearses,
        both: BothRuns,
        rollbacks: RollbackPlanner,
        launchers: Mapping[str, Launcher],
        comparer: Comparer,
        reports: Reports,
        tracker_reports: TrackerReports | None,
        contracts: Contracts,
        store: Store,
        clock: Clock,
        redactor: Redactor,
        hand_on: HandOn,
        deadline: timedelta,
    ) -> None:
        """Take the parts.

        Args:
            rehearser: reads what the guards judge.
            both: reads the two runs.
            rollbacks: plans the way back.
            launchers: by the contract's ``[orchestrator] kind``; asked for jobs.
            comparer: of the two runs' rows.
            reports: where the comparison is shown.
            tracker_reports: None where the tracker has none of its own.
            contracts: read anew at every look.
            store: what is on record of both runs.
            clock: for times.
            redactor: plans are made as they may be stored and shown.
            hand_on: gets the look; commits what follows from it.
            deadline: of one look.
        """
        self._rehearser = rehearser
        self._both = both
        self._launchers = launchers
        self._rollbacks = rollbacks
        self._comparer = comparer
        self._showing = Showing(reports, tracker_reports, clock, most=deadline / 4)
        self._contracts = contracts
        self._store = store
        self._clock = clock
        self._redactor = redactor
        self._hand_on = hand_on
        self._deadline = deadline

    async def run(self, contract: Contract) -> None:
        """Look once at the trial of a run, if one is under way.

        Raises:
            StoreError: the database refused.
        """
        record = await self._store.record(contract.run_id)
        trial = record.run.trial if record else None
        if record is None or trial is None or trial.is_over:
            return
        began = self._clock.monotonic()
        on = await self._on(contract, record, trial)
        look = await self._look(on)
        seconds = round(self._clock.monotonic() - began, 3)
        log.info("trial_looked_at", run_id=contract.run_id, stage=trial.stage, duration_s=seconds)
        await self._hand_on(contract, look)

    async def compared(self, contract: Contract, record: Record) -> Reading[Comparison]:
        """Hold the child against its control once more, as a go does before it is done.

        Raises:
            StoreError: the database refused.
        """
        trial = record.run.trial
        if trial is None or trial.is_over:
            return self._unread("the run has no trial that is under way")
        on = await self._on(contract, record, trial)
        try:
            async with asyncio.timeout(self._deadline.total_seconds()):
                found = await self._hold(on, await self._child_jobs(on))
        except TimeoutError:
            detail = f"it took longer than {say_duration(self._deadline)}"
            return Unknown(reason=Gap.TIMEOUT, detail=detail, at=self._clock.now())
        if isinstance(found, str):
            return Unknown(reason=Gap.UNREACHABLE, detail=found, at=self._clock.now())
        return Known(value=found.found, at=self._clock.now())

    async def _on(self, contract: Contract, record: Record, trial: Trial) -> On:
        child = self._contracts.load(trial.plan.child_run_id)
        return On(
            contract=with_roles(contract, record.run.roles),
            record=record,
            trial=trial,
            child=None if isinstance(child, BadContract) else child,
            beside=await self._store.record(trial.plan.child_run_id),
        )

    async def _look(self, on: On) -> TrialLook:
        """Look within the deadline; what is cut off or breaks is a look that has seen nothing.

        The report comes after that, with deadlines of its own: whatever becomes of it, the verdict stands.
        """
        bare = TrialLook(at=self._clock.now(), stage=on.trial.stage)
        try:
            async with asyncio.timeout(self._deadline.total_seconds()):
                seen = await self._at_stage(on, await self._with_old(on, bare))
        except TimeoutError:
            return self._blind(on, bare, f"looking at it took longer than {say_duration(self._deadline)}")
        except Exception as error:
            log.exception("trial_look_broke", run_id=on.record.run_id, stage=on.trial.stage)
            return self._blind(on, bare, f"Hero's own code broke at it: {type(error).__name__}")
        return await self._showing.show(on, seen) if isinstance(seen, Shown) else seen

    def _blind(self, on: On, bare: TrialLook, why: str) -> TrialLook:
        """Return a look that has seen nothing, and says so of all that its stage would have told."""
        gaps = {"comparison_gap": why}
        if on.trial.stage is Stage.GO:
            gaps["pins_gap"] = why
        if on.trial.stage in _OLD_HAS_ENDED:
            gaps["old_gap"] = why
        return self._not_replayed(on, bare.model_copy(update=gaps), why)

    async def _at_stage(self, on: On, bare: TrialLook) -> TrialLook | Shown:
        looks: Mapping[Stage, Callable[[On, TrialLook], Awaitable[TrialLook | Shown]]] = {
            Stage.PLANNED: self._staged,
            Stage.RECORDED: self._rehearsed,
            Stage.REHEARSED: self._controlled,
            Stage.CONTROL_COMPLETE: self._ready,
            Stage.FORKED: self._ready,
            Stage.OLD_STOPPED: self._shown,
            Stage.LAUNCHED: self._shown,
            Stage.RUNNING: self._compared,
            Stage.GO: self._accepted,
            Stage.NO_GO: self._back,
            Stage.ROLLED_BACK: self._replayed,
        }
        return await looks[on.trial.stage](on, bare)

    # Before the cut-over

    async def _rehearse(self, on: On) -> Rehearsal:
        return await self._rehearser.rehearse(on.contract, on.record, on.trial.plan)

    async def _staged(self, on: On, bare: TrialLook) -> TrialLook:
        return await self._guards(on, bare, _STAGED)

    async def _rehearsed(self, on: On, bare: TrialLook) -> TrialLook:
        return await self._guards(on, bare, tuple(Group))

    async def _controlled(self, on: On, bare: TrialLook) -> TrialLook:
        return bare.model_copy(update={"control": await self._control(on)})

    async def _accepted(self, on: On, bare: TrialLook) -> TrialLook:
        return bare.model_copy(update=_pins(await self._rehearse(on)))

    async def _guards(self, on: On, bare: TrialLook, groups: tuple[Group, ...]) -> TrialLook:
        rehearsed = await self._rehearse(on)
        says = judge_guards(rehearsed, groups=groups)
        return bare.model_copy(update={"guards": says, **_pins(rehearsed)})

    async def _control(self, on: On) -> ControlSays | None:
        jobs = await self._jobs(on.contract, on.record.instance.job_id if on.record.instance else None)
        return await self._comparer.control(on.contract, on.trial.plan, jobs)

    async def _ready(self, on: On, bare: TrialLook) -> TrialLook | Shown:
        """Rehearse once more and plan the cut-over, once it is time for it."""
        start = on.trial.plan.starts_at
        if on.record.active_action is not None or (start is not None and self._clock.now() < start):
            return bare
        rehearsed = await self._rehearse(on)
        says = judge_guards(rehearsed, groups=tuple(Group))
        plan = plan_cutover(rehearsed, on.trial, says, self._redactor)
        look = bare.model_copy(update={"guards": says, "control": await self._control(on), "cutover": plan})
        # So that whoever is asked has the address of the report before the child's first step.
        return await self._shown(on, look) if isinstance(plan, CutOverPlan) else look

    # From the cut-over on

    async def _jobs(self, contract: Contract | None, job_id: JobId | None) -> Reading[tuple[Job, ...]]:
        launcher = self._launchers.get(contract.orchestrator.kind) if contract is not None else None
        if contract is None or launcher is None or job_id is None:
            return self._unread("there is nothing to ask")
        return await launcher.jobs(contract, job_id)

    async def _child_jobs(self, on: On) -> Reading[tuple[Job, ...]]:
        job_id = on.trial.child_instance.rpartition("@")[0]
        if on.child is not None and (changed := changed_since_launch(on.child, on.record)):
            return Unknown(reason=Gap.UNRELIABLE, detail=changed, at=self._clock.now())
        return await self._jobs(on.child, JobId(job_id) if job_id else None)

    async def _with_old(self, on: On, bare: TrialLook) -> TrialLook:
        """Return the look with what the old run's own job does: once it was stopped nobody is to launch it by hand.

        Source: deploy checklist, "Execute the trial": never two coordinators.
        """
        if on.trial.stage not in _OLD_HAS_ENDED:
            return bare
        job_id = on.record.instance.job_id if on.record.instance else on.contract.orchestrator.job_id
        jobs = await self._jobs(on.contract, job_id)
        if isinstance(jobs, Unknown):
            return bare.model_copy(update={"old_gap": f"whether the old run's job lives: {jobs.detail}"})
        lives = next((job.instance_id for job in jobs.value if not job.state.is_terminal), "")
        return bare.model_copy(update={"old_lives": lives})

    async def _shown(self, on: On, bare: TrialLook) -> Shown:
        """Publish where the comparison will be shown, with the control alone."""
        rows = await self._comparer.rows_of(on.contract, on.trial.plan)
        control = rows.value.history if isinstance(rows, Known) else _NOTHING
        gaps = (f"the old run's rows: {rows.detail}",) if isinstance(rows, Unknown) else ()
        return Shown(bare, control, _NOTHING, None, gaps)

    async def _compared(self, on: On, bare: TrialLook) -> TrialLook | Shown:
        jobs = await self._child_jobs(on)
        said = _say_child(on, jobs, self._clock.now())
        look = bare.model_copy(update={"child": jobs, "stuck": _stuck(on), "child_said": said})
        compared = await self._hold(on, jobs)
        if isinstance(compared, str):
            return look.model_copy(update={"comparison_gap": compared})
        look = look.model_copy(
            update={
                "comparison": compared.found,
                "child_step": compared.child.newest_step,
                "is_past_window": compared.is_past_window,
            }
        )
        return Shown(look, compared.control.history, compared.child.history, compared.found)

    async def _hold(self, on: On, jobs: Reading[tuple[Job, ...]]) -> Compared | str:
        if on.child is None:
            return "the child's contract cannot be used"
        incidents = await self._incidents(on)
        return await self._comparer.compare(on.contract, on.child, on.trial, jobs, incidents)

    async def _incidents(self, on: On) -> tuple[Incident, ...]:
        """Return the child's incidents since it was launched, those that are over too."""
        since = on.trial.reached_at(Stage.LAUNCHED) or on.trial.agreed_at
        return await self._store.incidents_since(on.trial.plan.child_run_id, since)

    # The way back

    async def _back(self, on: On, bare: TrialLook) -> TrialLook:
        """Plan the way back from both runs as they are now; or see that there is nothing to come back from."""
        if on.record.active_action is not None:
            return bare
        plan = await self._rollbacks.plan(on.contract, on.record)
        lives = await self._never_stopped(on) if isinstance(plan, NoPlan) and not plan.is_unknown else ""
        return bare.model_copy(update={"rollback": plan, "never_stopped": lives})

    async def _never_stopped(self, on: On) -> str:
        """Name the old run's job when it is known to live on, and the child to have none; empty otherwise."""
        job = (await self._both.old(on.contract)).seen.job
        if job is None or job.state.is_terminal:
            return ""
        if on.child is None:
            # Without its contract nothing of the child can be asked; one that was never submitted has no job.
            return job.job_id if was_never_launched(on.trial.plan.child_run_id, on.record, on.beside) else ""
        beside = live_jobs((await self._both.child(on.child, on.record)).seen)
        return job.job_id if isinstance(beside, Known) and not beside.value else ""

    def _unread(self, why: str) -> Unknown:
        return Unknown(reason=Gap.NOT_CONFIGURED, detail=why, at=self._clock.now())

    async def _replayed(self, on: On, bare: TrialLook) -> TrialLook:
        """Hold the steps that the old run has replayed against those that it had logged before."""
        instance = on.record.instance
        if instance is None or instance.from_step is None:
            return self._not_replayed(on, bare, "from which step it was launched is not on record")
        steps = on.trial.plan.window_steps
        jobs = await self._jobs(on.contract, instance.job_id)
        found = await self._comparer.trajectory(on.contract, instance.from_step, _REPLAYED * steps, jobs)
        if isinstance(found, str):
            return self._not_replayed(on, bare, found)
        says, newest = found
        if newest is None:
            is_long = self._is_late(on, _UNTOLD_LIMIT)
        else:
            is_long = newest >= instance.from_step + _REPLAYED * steps
        return bare.model_copy(update={"trajectory": says, "is_long_enough": is_long or self._is_late(on)})

    def _not_replayed(self, on: On, bare: TrialLook, why: str) -> TrialLook:
        """Return that the replay could not be looked at; after a day that is all that will ever be known of it."""
        look = bare.model_copy(update={"comparison_gap": why})
        if not self._is_late(on):
            return look
        detail = f"{why}; it was looked for {say_duration(_REPLAY_LIMIT)}"
        says = TrajectorySays(outcome=Outcome.CANNOT_TELL, detail=detail)
        return look.model_copy(update={"trajectory": says, "is_long_enough": True})

    def _is_late(self, on: On, limit: timedelta = _REPLAY_LIMIT) -> bool:
        since = on.trial.reached_at(Stage.ROLLED_BACK) if on.trial.stage is Stage.ROLLED_BACK else None
        return since is not None and self._clock.now() - since > limit


def _pins(rehearsed: Rehearsal) -> dict[str, object]:
    """Return what pins the old run, or why that is not known, as fields of the look."""
    if isinstance(rehearsed.pins, Known):
        return {"pins": rehearsed.pins.value}
    return {"pins_gap": rehearsed.pins.detail}


def _say_child(on: On, jobs: Reading[tuple[Job, ...]], now: datetime) -> tuple[str, ...]:
    """Say what the orchestrator shows of the child, and how old its newest step is by its own last check."""
    if isinstance(jobs, Unknown):
        return (f"NOT KNOWN: the child's job ({jobs.detail})",)
    progress = on.beside.run.progress if on.beside else None
    lines = [f"{job.job_id}: {job.state}{_say_attempts(job)}" for job in jobs.value[:_JOBS_SAID]]
    if progress is not None and progress.step is not None and progress.step_at is not None:
        lines.append(f"newest step: {progress.step}, {say_duration(now - progress.step_at)} old")
    return tuple(lines)


def _say_attempts(job: Job) -> str:
    if isinstance(job.tasks, Unknown):
        return f", its tasks are not known ({job.tasks.detail})"
    newest = [each.current_attempt.attempt for each in job.tasks.value if each.current_attempt is not None]
    return f", {len(job.tasks.value)} tasks, newest attempt {max(newest)}" if newest else ""


def _stuck(on: On) -> tuple[str, ...]:
    """Say what is critically wrong with the child by its own checks: a hang, a loss that is no number, a lost job.

    That somebody has acknowledged it makes it no less so; what was found before the old run was stopped is not of this
    launch.
    """
    since = launched_at(on.trial)
    found = on.beside.incidents if on.beside else ()
    return tuple(
        f"I{each.number} {each.check}: {each.finding.summary}"
        for each in found
        if each.is_open
        and each.finding.severity is Severity.CRITICAL
        and not each.check.startswith(_ABOUT_HERO)
        and each.opened_at >= since
    )
