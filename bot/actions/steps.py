"""What each step of a relaunch does, and how it answers "was it done?" from the outside."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import assert_never

from bot.actions.checklist import with_checklist
from bot.actions.ports import Checklist, Fence, Launcher
from bot.actions.relaunch import differences, plan_relaunch
from bot.actions.restore import NotYet, Restored, WrongRestore, judge_restore
from bot.actions.stopping import stop_job, without_pods
from bot.clock import Clock
from bot.model.action import Action, Done, Refused, StepName, StepOutcome, Uncertain, Waiting
from bot.model.contract import Contract
from bot.model.job import Job, JobState
from bot.model.planned import NoPlan, PlannedCheckpoint, RelaunchPlan
from bot.model.reading import Gap, Known, Unknown
from bot.model.record import Record
from bot.model.run import Instance
from bot.model.snapshot import Snapshot
from bot.model.value import JobId, RunId
from bot.redaction import Redactor
from bot.sources.snapshots import SnapshotReader
from bot.store.store import Store
from checks.job import ENDED_ID
from checks.kin import diagnostic_words

_MOST_SUBMITS = 2
"""How often the command of one approval is started at most; what never ends is no better for a third time."""

EXPIRED = "the approval has expired; nothing was submitted"
"""Why nothing is submitted once the yes has run out."""

type Barred = Callable[[], Awaitable[StepOutcome | None]]
"""Says why nothing may be submitted, by the world as it is now; None when it may."""

_VERIFIED_FOR = timedelta(minutes=1)
"""So long after it was rebuilt a plan still counts as compared when its submission begins."""


class Steps:
    """The steps, over every kind of orchestrator."""

    def __init__(
        self,
        *,
        launchers: Mapping[str, Launcher],
        checklist: Checklist,
        reader: SnapshotReader,
        store: Store,
        clock: Clock,
        redactor: Redactor,
        settle: timedelta,
    ) -> None:
        """Take the parts.

        Args:
            launchers: by the contract's ``[orchestrator] kind``.
            checklist: judged once more before anything is done.
            reader: reads the world anew.
            store: for what is on record of the run.
            clock: for times.
            redactor: plans are rebuilt scrubbed, as they were asked.
            settle: how long an uncertain submission must stay unknown to the orchestrator before it counts as never
                made; after one that was cut off at least its deadline, since a request on its way may still arrive.
        """
        self._launchers = launchers
        self._checklist = checklist
        self._reader = reader
        self._store = store
        self._clock = clock
        self._redactor = redactor
        self._settle = settle
        self._absent_since: dict[int, float] = {}

    async def take(
        self,
        step: StepName,
        action: Action,
        contract: Contract,
        *,
        is_resumed: bool,
        fence: Fence,
        barred: Barred | None = None,
    ) -> StepOutcome:
        """Do one step, or look once at what it waits for.

        Args:
            step: which one.
            action: with the step's intent already committed.
            contract: as it is on disk now.
            is_resumed: whether the intent was committed earlier, so that the step may have happened already.
            fence: awaited right before the world is changed.
            barred: for a launch that is a part of a larger plan: says why it may not be submitted, in place of
                rebuilding it as a relaunch. Awaited before each submission, once none is known.
        """
        kind = contract.orchestrator.kind
        if kind not in self._launchers:
            missing = f"[{kind}] is not configured in hero.toml any more, so nothing can be asked or done there"
            return Uncertain(detail=missing) if step is StepName.SUBMIT else Waiting(detail=missing)
        if step is StepName.SUBMIT:
            return await self._submit(action, contract, is_resumed=is_resumed, fence=fence, barred=barred)
        return await self._take(step, action, contract, fence)

    async def _take(self, step: StepName, action: Action, contract: Contract, fence: Fence) -> StepOutcome:
        match step:
            case StepName.VERIFY:
                return await self._verify(action, contract)
            case StepName.STOP:
                return await self._stop(action, contract, fence)
            case StepName.CONFIRM:
                return await self._confirm(action, contract)
            case StepName.STABILISE:
                return await self._stabilise(action, contract)
            case StepName.RESTORE:
                return await self.restore(action, contract)
            case StepName.SUBMIT | StepName.DELETE | StepName.TAG | StepName.FORK:
                msg = f"a relaunch has no step {step} here"
                raise AssertionError(msg)
            case _:
                assert_never(step)

    async def _verify(self, action: Action, contract: Contract, *, has_stopped: bool = False) -> StepOutcome:
        """Rebuild the plan from the world as it is now; any difference voids the grant (law 2).

        Args:
            action: what was granted.
            contract: as it is now.
            has_stopped: the old job was ended for it already; that it is gone is no difference.
        """
        plan = action.relaunch
        record = await self._store.record(action.run_id)
        if why := self._not_granted(action, record):
            return Refused(detail=why)
        instance = record.instance if record else None
        past = record.jobs if record else ()
        seen = await self._reader.read(contract, instance, record.run.metrics_cursor if record else "", past)
        judged = await self._checklist.judge(contract, record, seen)
        rebuilt = with_checklist(
            plan_relaunch(contract, seen, instance, self._launcher(contract), self._redactor), judged
        )
        if has_stopped and isinstance(rebuilt, RelaunchPlan):
            rebuilt = rebuilt.model_copy(update={"stop": plan.stop, "instance": plan.instance})
        match rebuilt:
            case NoPlan(is_unknown=True, reason=reason):
                return Waiting(detail=reason)
            case NoPlan(reason=reason):
                return Refused(detail=reason, asks_anew=has_stopped)
            case RelaunchPlan() if rebuilt.digest != plan.digest:
                changed = "; ".join(differences(plan, rebuilt))
                why = f"what would be done has changed since it was asked: {changed}"
                return Refused(detail=why, asks_anew=has_stopped)
            case RelaunchPlan() if plan.stop is not None and not has_stopped and _trains(seen, record):
                return Refused(detail=f"{plan.stop} makes progress again; it is not stopped on an old yes")
            case RelaunchPlan():
                return Done(detail="the world is as it was when the plan was asked")

    def _not_granted(self, action: Action, record: Record | None) -> str:
        if not action.grant.covers(action.plan, self._clock.now()):
            return "the approval is no longer valid: it has expired or is for another plan"
        if held := record.held_by_trial if record else "":
            return held
        why = _not_allowed_any_more(action, record)
        return why and f"{why}; the DRI is asked"

    async def _stop(self, action: Action, contract: Contract, fence: Fence) -> StepOutcome:
        """Stop the old job and, where Kubernetes is read, see its pods gone: one that lives on is a second writer."""
        plan = action.relaunch
        ended = await stop_job(self._launcher(contract), contract, plan, action.grant, fence, clock=self._clock)
        if not isinstance(ended, Done):
            return ended
        old = JobId(plan.instance.rsplit("@", 1)[0] or plan.job_id)
        return await without_pods(self._reader, contract, old, ended)

    async def _submit(  # noqa: PLR0911 - one return a case
        self, action: Action, contract: Contract, *, is_resumed: bool, fence: Fence, barred: Barred | None
    ) -> StepOutcome:
        """Submit exactly once.

        A submission that may have happened is looked up. It is made again only when it was cut off, the orchestrator
        has positively said for a while that it knows of none, and nothing of it is still under way on this machine.
        One that ended by itself, and that the orchestrator does not know, has failed.
        """
        plan = action.relaunch
        found = await self._find_submission(action, contract)
        match found:
            case Done(detail=job_id) if not is_resumed:
                return Refused(detail=f"somebody else has launched {job_id} meanwhile; nothing was submitted")
            case Done():
                return found
            case Waiting():
                return Uncertain(detail=found.detail) if is_resumed else found
            case None if is_resumed and not self._has_settled(action, contract):
                return Uncertain(detail=f"asking the orchestrator whether {plan.job_id} was submitted before the break")
            case None if (forbidden := await self._forbidden(action, contract, barred)) is not None:
                return forbidden
            case None:
                pass
        match await self._another(action, contract):
            case Waiting() as gap:
                return Uncertain(detail=gap.detail) if is_resumed else gap
            case str() as names if names:
                return Refused(detail=f"another job of the run is alive: {names}; nothing was submitted")
        self._absent_since.pop(action.number, None)
        outcome = await self._launcher(contract).submit(contract, plan, action.grant, fence=fence)
        if isinstance(outcome, Done) and outcome.detail != plan.job_id:
            stranger = f"the submission named {outcome.detail}, which is not the planned {plan.job_id}"
            return Uncertain(detail=stranger, is_over=True)
        return outcome

    def _why_not_submitted(self, action: Action, contract: Contract) -> str:
        """Say why a job that does not exist may not be submitted (again); nothing when it may."""
        plan = action.relaunch
        if action.submit_failure:
            return f"{action.submit_failure}; the orchestrator knows no new {plan.job_id}"
        if action.submits >= _MOST_SUBMITS:
            return "the submit command was started twice without the orchestrator knowing of it; ask again"
        if not action.grant.covers(plan, self._clock.now()):
            return EXPIRED
        if contract.command_sha256 != plan.command_sha256 or contract.config_digest != plan.config_digest:
            return "the contract has changed since the approval; nothing was submitted"
        return ""

    async def _forbidden(self, action: Action, contract: Contract, barred: Barred | None) -> StepOutcome | None:
        """Return why nothing may be submitted now; None when it may, by the world as it is now."""
        if reason := self._why_not_submitted(action, contract):
            return Refused(detail=reason)
        if barred is not None:
            return await barred()
        has_stopped = action.relaunch.stop is not None
        record = await self._store.record(action.run_id)
        # The other run of a trial may be launched by hand at any time; only the checklist looks at that one.
        is_paired = record is not None and (record.trial_of is not None or record.run.trial is not None)
        if action.submits or not (has_stopped or is_paired or self._is_verified_long_ago(action)):
            return None
        verified = await self._verify(action, contract, has_stopped=has_stopped)
        return None if isinstance(verified, Done) else verified

    def _is_verified_long_ago(self, action: Action) -> bool:
        """Whether the world may have changed since the plan was rebuilt, as while Hero was down."""
        verified = action.record(StepName.VERIFY)
        if verified is None or verified.outcome_at is None:
            return False
        return self._clock.now() - verified.outcome_at > _VERIFIED_FOR

    async def _find_submission(self, action: Action, contract: Contract) -> Done | Waiting | None:
        """Return the new job as Done, None when there is positively none, Waiting when nobody can say."""
        plan = action.relaunch
        launcher = self._launcher(contract)
        if await launcher.is_submitting(contract):
            self._absent_since.pop(action.number, None)
            return Waiting(detail="an earlier submission is still under way on this machine")
        jobs = await launcher.jobs(contract, plan.job_id)
        match jobs:
            case Unknown(detail=detail):
                self._absent_since.pop(action.number, None)
                return Waiting(detail=f"whether {plan.job_id} was submitted cannot be asked: {detail}")
            case Known(value=(job, *_)) if job.instance_id != plan.instance:
                return Done(detail=plan.job_id)
            case Known():
                self._absent_since.setdefault(action.number, self._clock.monotonic())
                return None

    def _has_settled(self, action: Action, contract: Contract) -> bool:
        since = self._absent_since.get(action.number)
        is_cut_off = action.submits > 0 and not action.submit_failure
        late = self._launcher(contract).submit_deadline if is_cut_off else timedelta()
        return since is not None and self._clock.monotonic() - since >= max(self._settle, late).total_seconds()

    async def _confirm(self, action: Action, contract: Contract) -> StepOutcome:
        """See exactly one live job of the run: the new one."""
        job = await self._new_job(action, contract)
        if not isinstance(job, Job):
            return job
        if job.state.is_terminal and job.state is not JobState.SUCCEEDED:
            return Refused(detail=f"{job.job_id} ended at once: {_say_end(job)}", has_ended=True)
        return await self._beside(action, contract, job) or Done(detail=f"exactly one live job: {job.instance_id}")

    async def _beside(self, action: Action, contract: Contract, job: Job) -> Waiting | Refused | None:
        """Say that the job is not known to be the only live one of the run; None when it is."""
        old = action.relaunch.instance.rsplit("@", 1)[0]
        if old and old != job.job_id:
            before = await self._launcher(contract).jobs(contract, JobId(old))
            match before:
                case Unknown(detail=detail):
                    return Waiting(detail=f"whether {old} still lives cannot be asked: {detail}", is_unknown=True)
                case Known(value=(other, *_)) if not other.state.is_terminal:
                    return Refused(detail=f"two jobs of the run live: {old} and {job.job_id}; stop one by hand now")
                case Known():
                    pass
        match await self._another(action, contract):
            case Waiting() as gap:
                return gap
            case str() as names if names:
                return Refused(detail=f"two jobs of the run live: {names} and {job.job_id}; stop one by hand now")
            case _:
                return None

    async def _another(self, action: Action, contract: Contract) -> str | Waiting:
        """Name the live jobs of the run beside the planned one; nothing when there are none, Waiting when unknown.

        Diagnostics do not count, as far as their names tell. The job that the plan replaces was looked at before.
        """
        plan = action.relaunch
        record = await self._store.record(action.run_id)
        past = record.jobs if record else ()
        found = await self._reader.neighbours(contract, plan.job_id, past)
        if isinstance(found, Unknown):
            if found.reason is Gap.NOT_CONFIGURED:
                return ""
            gap = f"whether another job of the run is alive cannot be asked: {found.detail}"
            return Waiting(detail=gap, is_unknown=True)
        others = [job.job_id for job in found.value if not job.state.is_terminal]
        return ", ".join(name for name in others if not diagnostic_words(name, plan.job_id, contract.run_id))

    async def _stabilise(self, action: Action, contract: Contract) -> StepOutcome:
        """See that it has not died a while after the submission (babysit-job: 120 s)."""
        job = await self._new_job(action, contract)
        if not isinstance(job, Job):
            return job
        if job.state is JobState.SUCCEEDED:
            return Done(detail=f"{job.job_id} has already succeeded", has_succeeded=True)
        if job.state.is_terminal:
            return Refused(detail=f"{job.job_id} ended soon after its launch: {_say_end(job)}", has_ended=True)
        confirmed = action.record(StepName.CONFIRM)
        begun = confirmed.outcome_at if confirmed and confirmed.outcome_at else self._clock.now()
        left = begun + contract.cadence.stabilise - self._clock.now()
        if left > timedelta():
            return Waiting(detail=f"{job.job_id} is {job.state}; its first minutes are not over")
        return Done(detail=f"{job.job_id} is still {job.state}")

    async def restore(
        self, action: Action, contract: Contract, *, handoff: PlannedCheckpoint | None = None
    ) -> StepOutcome:
        """See that it loaded the planned checkpoint and that its training loop has begun.

        Args:
            action: of which the plan is that launch.
            contract: of the run that was launched.
            handoff: another run's checkpoint, from which it begins where the plan names none of its own.
        """
        job = await self._new_job(action, contract)
        if not isinstance(job, Job):
            return job
        if job.state.is_terminal and job.state is not JobState.SUCCEEDED:
            return Refused(detail=f"{job.job_id} ended before it trained: {_say_end(job)}", has_ended=True)
        record = await self._store.record(action.run_id)
        instance = record.instance if record else None
        seen = await self._reader.read(contract, _as_new(instance, job, action.run_id), action.metrics_cursor)
        rows = seen.metrics.value.rows if isinstance(seen.metrics, Known) else ()
        judged = judge_restore(action.relaunch, contract, seen, tuple(row.step for row in rows), handoff=handoff)
        match judged:
            case Restored(detail=detail):
                has_succeeded = job.state is JobState.SUCCEEDED
                return Done(detail=detail, has_succeeded=has_succeeded, step=rows[-1].step)
            case WrongRestore(detail=detail):
                return Refused(detail=f"the lineage is not what was approved: {detail}")
            case NotYet(detail=detail, is_unknown=is_unknown):
                return Waiting(detail=detail, is_unknown=is_unknown)

    async def _new_job(self, action: Action, contract: Contract) -> Job | StepOutcome:
        """Return the planned job, never one that was merely printed; what is in the way of knowing it as an outcome."""
        plan = action.relaunch
        job_id = plan.job_id
        jobs = await self._launcher(contract).jobs(contract, job_id)
        if isinstance(jobs, Unknown):
            return Waiting(detail=f"{job_id} cannot be read: {jobs.detail}", is_unknown=True)
        if not jobs.value:
            return Waiting(detail=f"the orchestrator does not know {job_id}", is_unseen=True)
        job = jobs.value[0]
        if job.instance_id == plan.instance:
            return Waiting(detail=f"the orchestrator still shows the old {job_id}", is_unseen=True)
        return job

    def _launcher(self, contract: Contract) -> Launcher:
        return self._launchers[contract.orchestrator.kind]


def _not_allowed_any_more(action: Action, record: Record | None) -> str:
    """Say why a yes in advance does not hold for this action any more; empty for any other yes."""
    allowance = record.run.allowance if record else None
    if record is None or allowance is None or all(use.request != action.grant.request for use in allowance.uses):
        return ""
    ended = [each for each in record.incidents if each.is_open and each.finding.check == ENDED_ID]
    return allowance.why_void(ended[-1].finding.crash if ended else None)


def _trains(seen: Snapshot, record: Record | None) -> bool:
    """Whether the job has logged a step beyond the last one that was known."""
    rows = seen.metrics.value.rows if isinstance(seen.metrics, Known) else ()
    last = record.run.progress.step if record else None
    return any(last is None or row.step > last for row in rows)


def _say_end(job: Job) -> str:
    """State, exit codes and errors of a job that ended, from its tasks: its own exit code lies."""
    codes: list[str] = []
    if isinstance(job.tasks, Known):
        codes = [f"task {t.index} exit {t.exit_code}" for t in job.tasks.value if t.exit_code is not None]
    return f"{job.state} ({', '.join(codes) or 'exit codes unknown'}) {job.error}".strip()


def _as_new(instance: Instance | None, job: Job, run_id: RunId) -> Instance:
    """Return the instance with what the orchestrator says of its submission, so that older lines are left out."""
    if instance is None:  # a run of which no launch is on record yet
        at = job.submitted_at
        return Instance(run_id=run_id, number=0, job_id=job.job_id, submitted_at=at, launched_at=at)
    return instance.model_copy(update={"job_id": job.job_id, "submitted_at": job.submitted_at})
