"""What is carried out of the agreement on a trial and of the go: nothing in the world; only that it still holds.

Source: deploy checklist, "Agree the plan" and "Decide" (docs/procedures.md).
"""

from bot.actions.both_runs import BothRuns, changed_since_launch, launches_of, unasked
from bot.actions.ports import Fence, Judges
from bot.actions.trial_agreement import plan_trial
from bot.actions.trial_plans import handoff_fault
from bot.clock import Clock
from bot.contracts import BadContract
from bot.model.action import Action, Done, Refused, StepName, StepOutcome, Waiting
from bot.model.contract import Contract
from bot.model.job import JobState
from bot.model.planned import NoPlan
from bot.model.reading import Unknown
from bot.model.record import Record
from bot.model.trial import Outcome
from bot.model.trialplan import CutOverPlan, GoPlan, TrialPlan
from bot.model.value import JobId
from bot.redaction import Redactor
from bot.render.trial import grave_lines, verdict_words


class AgreeSteps:
    """The one step of a trial's agreement and of its go."""

    def __init__(self, *, runs: BothRuns, judges: Judges, clock: Clock, redactor: Redactor) -> None:
        """Take the parts.

        Args:
            runs: reads both runs.
            judges: compares them anew before a go is done.
            clock: for whether a grant still counts.
            redactor: plans are rebuilt scrubbed, as they were asked.
        """
        self._runs = runs
        self._judges = judges
        self._clock = clock
        self._redactor = redactor

    async def take(
        self,
        step: StepName,
        action: Action,
        contract: Contract,
        *,
        is_resumed: bool,  # noqa: ARG002 - the port's; looking is safe to repeat
        fence: Fence,  # noqa: ARG002 - the port's; nothing is changed
    ) -> StepOutcome:
        """See that what was agreed still holds; ``contract`` is the old run's."""
        plan = action.plan
        if step is not StepName.VERIFY or not isinstance(plan, TrialPlan | GoPlan):
            msg = f"action {action.number} agrees on nothing, or has no step {step}"
            raise AssertionError(msg)
        if not action.grant.covers(plan, self._clock.now()):
            return Refused(detail="the approval is no longer valid: it has expired or is for another plan")
        if isinstance(plan, GoPlan):
            return await self._go(action, plan, contract)
        return await self._agree(plan, contract)

    async def _agree(self, plan: TrialPlan, contract: Contract) -> StepOutcome:  # noqa: PLR0911 - one return a case
        """See that both contracts still make that plan, and that the handoff checkpoint is there and complete."""
        child = self._runs.contract(plan.child_run_id)
        if isinstance(child, BadContract):
            return Refused(detail="; ".join(child.problems))
        seen = (await self._runs.old(contract)).seen
        fault = handoff_fault(seen, plan.handoff)
        if isinstance(fault, Unknown):
            gap = f"whether the handoff checkpoint is there is not known: {fault.detail}"
            return Waiting(detail=gap, is_unknown=True)
        if fault.value:
            return Refused(detail=fault.value)
        # A newer checkpoint, saved since it was asked, does not change what was agreed.
        trial = contract.trial.model_copy(update={"handoff_step": plan.handoff.step})
        match plan_trial(contract.model_copy(update={"trial": trial}), child, seen, self._redactor):
            case NoPlan(is_unknown=True, reason=reason):
                return Waiting(detail=reason, is_unknown=True)
            case NoPlan(reason=reason):
                return Refused(detail=reason)
            case TrialPlan() as rebuilt if rebuilt.digest != plan.digest:
                names = [name for name in TrialPlan.model_fields if getattr(rebuilt, name) != getattr(plan, name)]
                changed = "; ".join(f"{name}: {getattr(plan, name)} → {getattr(rebuilt, name)}" for name in names)
                return Refused(detail=f"the contracts do not say any more what was agreed: {changed}")
            case TrialPlan():
                return Done(detail="both contracts say what was agreed, and the handoff checkpoint is complete")

    async def _go(self, action: Action, plan: GoPlan, contract: Contract) -> StepOutcome:
        """See that the child's very launch that was judged lives, the old run does not, and the gates say the same.

        A child that has reached its end well meanwhile lives no more and is the one that was judged: it is accepted
        when the gates pass, since no further row can tell what is open.
        """
        record = await self._runs.record(action.run_id)
        if record is None:
            return Refused(detail="nothing is on record of this run")
        outcome = await self._child_lives(plan, record)
        if not isinstance(outcome, Done):
            return outcome
        barred = await self._old_lives(plan, contract, record)
        return barred or await self._judged(plan, contract, record, is_over=outcome.has_succeeded) or outcome

    async def _old_lives(self, plan: GoPlan, contract: Contract, record: Record) -> StepOutcome | None:
        """Return that the old run lives beside the child, or may; None when all of it has ended."""
        made = launches_of(plan.child_run_id, record)
        stopped = made[-1].plan.stop.stop if made and isinstance(made[-1].plan, CutOverPlan) else None
        if stopped is None:
            return Waiting(detail="which job of the old run was stopped is not on record", is_unknown=True)
        beside = JobId(plan.instance.rsplit("@", 1)[0])
        return await self._runs.another_lives(contract, stopped, beside=beside)

    async def _judged(self, plan: GoPlan, contract: Contract, record: Record, *, is_over: bool) -> StepOutcome | None:
        """Return why the gates do not say any more what the yes was given to; None when they do.

        Args:
            plan: with what they said.
            contract: the old run's.
            record: what is remembered of the old run.
            is_over: whether the child has ended well: then they have to pass.
        """
        found = await self._judges.compared(contract, record)
        if isinstance(found, Unknown):
            return Waiting(detail=f"the two runs cannot be compared: {found.detail}", is_unknown=True)
        if found.value.outcome is Outcome.FAIL:
            return Refused(detail=f"a gate fails by now: {grave_lines(found.value)[0]}")
        grave = grave_lines(found.value)
        if is_over and (grave or found.value.outcome is not Outcome.PASS):
            return Refused(detail=f"the child has ended, and not every gate passes: {'; '.join(grave[:1])}")
        words = verdict_words(found.value)
        if words == plan.verdict:
            return None
        new = "; ".join(line for line in words if line not in plan.verdict)
        return Refused(detail=f"the gates say something else now: {new or 'there are fewer of them'}")

    async def _child_lives(  # noqa: PLR0911 - one return a case
        self, plan: GoPlan, record: Record
    ) -> StepOutcome:
        """See that the child's very launch that was judged is alive, or has reached its end well."""
        child = self._runs.contract(plan.child_run_id)
        if isinstance(child, BadContract):
            return Waiting(detail="; ".join(child.problems), is_unknown=True)
        if changed := changed_since_launch(child, record):
            return Waiting(detail=changed, is_unknown=True)
        launcher = self._runs.launcher(child)
        if launcher is None:
            return unasked(child)
        job_id = JobId(plan.instance.rsplit("@", 1)[0])
        jobs = await launcher.jobs(child, job_id)
        if isinstance(jobs, Unknown):
            return Waiting(detail=f"whether {job_id} lives cannot be asked: {jobs.detail}", is_unknown=True)
        job = jobs.value[0] if jobs.value else None
        if job is None or job.instance_id != plan.instance:
            shown = job.instance_id if job else "none"
            return Refused(detail=f"the child that was judged is {plan.instance}, and the orchestrator shows {shown}")
        if job.state is JobState.SUCCEEDED:
            return Done(detail=f"{plan.instance} has succeeded: it reached its end well", has_succeeded=True)
        if job.state.is_terminal:
            return Refused(detail=f"the child that was judged is {job.state}: {job.error}".rstrip(": "))
        return Done(detail=f"{plan.instance} is {job.state}")
