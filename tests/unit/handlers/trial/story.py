"""A trial told from its first line: decisions are applied to a record as the store would, one after the other."""

from datetime import datetime, timedelta
from typing import Any

from bot.model.action import CHANGING, STEPS, Action, ActionState, Done, StepName, StepOutcome
from bot.model.conduct import Stage, Trial
from bot.model.job import JobState
from bot.model.plan import Grant, Plan, Request, RequestState
from bot.model.planned import PlannedCheckpoint, RelaunchPlan, StopPlan
from bot.model.reading import Known
from bot.model.record import Decision, Record
from bot.model.rehearsal import GuardSays
from bot.model.run import Instance, Run, RunState
from bot.model.trial import Comparison, Happened, Judged, Outcome, Quiet, Window
from bot.model.trialplan import CutOverPlan, PlannedFork, RollbackPlan, TrialPlan
from bot.model.update import UpdateKind
from bot.model.value import JobId, RunId
from checks.trial.control import ControlSays
from handlers.context import Context
from handlers.outcome import decide_outcome
from handlers.trial import decide_trial
from handlers.trial.look import TrialLook
from tests.fakes import snapshots
from tests.fakes.decisions import a_plan
from tests.fakes.snapshots import AT, JOB, RUN
from tests.unit.handlers.scene import ADA, POSTED, context, record

CHILD = RunId("hero-next")
CHILD_JOB = JobId("/me/hero-next")
CHILD_INSTANCE = f"{CHILD_JOB}@2026-11-29T05:00:00+00:00"
GATE = "loss mean <= +0.002"
HANDOFF = PlannedCheckpoint(step=40, path="/out/checkpoints/step-40")


def agreed(**fields: Any) -> TrialPlan:
    given: dict[str, Any] = {
        "run_id": RUN,
        "child_run_id": CHILD,
        "child_root": "/next/checkpoints",
        "handoff": HANDOFF,
        "window_steps": 20,
        "gates": (GATE,),
        "quiet": True,
        "alpha": 0.05,
        "fork": PlannedFork(entity="e", project="p", parent_id=RUN, child_id=CHILD, fork_step=43, global_step=39),
        "coverage_gaps": ("evaluations",),
        "submitter": ADA,
        "automatic_rollback": True,
    }
    return TrialPlan(**given | fields)


def launch_of(run_id: RunId, **fields: Any) -> RelaunchPlan:
    return a_plan(run_id).model_copy(update={"job_id": CHILD_JOB if run_id == CHILD else JOB, **fields})


def cutover(plan: TrialPlan) -> CutOverPlan:
    return CutOverPlan(
        run_id=RUN,
        trial=plan.digest,
        fork=plan.fork,
        handoff=HANDOFF,
        stop=StopPlan(run_id=RUN, stop=JobId(JOB), instance=f"{JOB}@2026-11-28T00:00:00+00:00"),
        launch=launch_of(CHILD),
        startup_limit_s=900,
        startup_limit_source="trainer.watchdog",
        review="bob, 2026-11-29 03:00 UTC",
    )


def rollback(plan: TrialPlan, **launch: Any) -> RollbackPlan:
    resumed = PlannedCheckpoint(step=60, path="/out/checkpoints/step-60")
    return RollbackPlan(
        run_id=RUN,
        trial=plan.digest,
        child_run_id=CHILD,
        stop=StopPlan(run_id=CHILD, stop=CHILD_JOB, instance=CHILD_INSTANCE),
        launch=launch_of(RUN, resume_from=resumed, **launch),
    )


def guard(outcome: Outcome = Outcome.PASS, name: str = "record.main") -> GuardSays:
    return GuardSays(
        guard=name, title="t", outcome=outcome, detail=f"it is {outcome}", fix="" if outcome == "pass" else "mend"
    )


def compared(outcome: Outcome, *, quiet: Outcome = Outcome.PASS) -> Comparison:
    from bot.model.gate import parse_gate  # noqa: PLC0415 - read where it is needed

    judged = Judged(gate=parse_gate(GATE), outcome=outcome, reasons=(f"because {outcome}",), delta=0.001)
    said = Quiet(outcome=quiet, reasons=("1 retries" if quiet == "fail" else "none of each",), happened=Happened())
    worst = Outcome.FAIL if Outcome.FAIL in {outcome, quiet} else outcome
    return Comparison(
        window=Window(first_step=40, steps=20),
        alpha=0.05,
        outcome=worst,
        gates=(judged,),
        quiet=said,
        others=(),
        notes=(),
    )


class Story:
    """The old run's record, and everything that was told and asked of it."""

    def __init__(self, plan: TrialPlan | None = None, **contract: Any) -> None:
        self.plan = plan or agreed()
        self.context: Context = context(**contract)
        self.at: datetime = AT
        self.record: Record = record(
            run=Run(run_id=RUN, state=RunState.RUNNING, last_checked_at=AT),
            instances=(
                snapshots.instance().model_copy(
                    update={
                        "config_digest": self.context.contract.config_digest,
                        "shape": self.context.contract.shape(),
                    }
                ),
            ),
            posted=POSTED,
            next_request=1,
            next_action=1,
        )
        self.told: list[str] = []
        self.child_instances: list[Instance] = []
        self.kinds: list[UpdateKind] = []

    @property
    def trial(self) -> Trial:
        assert self.record.run.trial is not None
        return self.record.run.trial

    def stage(self) -> Stage:
        return self.trial.stage

    def open(self) -> Request | None:
        return self.record.open_request

    def apply(self, decision: Decision) -> Decision:
        """Take a decision over as the store does: by number, the newest of each."""
        requests = {r.number: r for r in (*self.record.requests, *decision.requests)}
        actions = {a.number: a for a in (*self.record.actions, *decision.actions)}
        own = [i for i in decision.instances if i.run_id == self.record.run_id]
        self.child_instances += [i for i in decision.instances if i.run_id == CHILD]
        instances = {i.number: i for i in (*self.record.instances, *own)}
        self.record = self.record.model_copy(
            update={
                "run": decision.run or self.record.run,
                "requests": tuple(requests[n] for n in sorted(requests)),
                "actions": tuple(actions[n] for n in sorted(actions)),
                "instances": tuple(instances[n] for n in sorted(instances)),
                "next_request": max(requests, default=0) + 1,
                "next_action": max(actions, default=0) + 1,
            }
        )
        self.told += [t.update.headline for t in decision.tell]
        self.kinds += [t.update.kind for t in decision.tell]
        return decision

    def look(self, **fields: Any) -> Decision:
        """One look at the trial, with what is given and nothing else."""
        self.at += timedelta(minutes=1)
        seen = TrialLook(at=self.at, stage=self.stage(), **fields)
        return self.apply(decide_trial(self.record, seen, self.context, self.at))

    def grant(self, plan: Plan) -> Action:
        """A yes of the DRI to the open question for exactly this plan."""
        asked = self.open()
        assert asked is not None
        assert asked.plan == plan
        granted = asked.model_copy(
            update={"state": RequestState.GRANTED, "decided_by": ADA, "decided_at": self.at, "decided_via": "slack:1"}
        )
        grant = Grant(
            request=asked.number,
            run_id=RUN,
            digest=plan.digest,
            by=ADA,
            at=self.at,
            expires_at=self.at + timedelta(hours=1),
        )
        action = Action(number=self.record.next_action, run_id=RUN, plan=plan, grant=grant)
        self.apply(Decision(requests=(granted,), actions=(action,)))
        return action

    def agree(self) -> None:
        """The DRI agrees to the plan, and it still holds."""
        request = Request(
            number=self.record.next_request,
            run_id=RUN,
            plan=self.plan,
            reason="ada asked for it",
            incident=None,
            dri=ADA,
            asked_at=self.at,
            expires_at=self.at + timedelta(hours=24),
        )
        self.apply(Decision(requests=(request,)))
        self.grant(self.plan)
        self.carry_out()

    def carry_out(
        self, upto: StepName | None = None, last: StepOutcome | None = None, *, is_tried: bool = True
    ) -> None:
        """Carry the action under way out, to its end or up to a step that ends otherwise.

        Args:
            upto: the last step.
            last: how that ends.
            is_tried: whether the steps that change the world got so far as to do it.
        """
        action = self.record.active_action
        assert action is not None
        for step in STEPS[action.plan.kind]:
            if (done := action.record(step)) is not None and done.is_done:
                continue
            action = self._commit(action.begun(step, self.at))
            if is_tried and step in CHANGING:
                action = action.model_copy(update={"tries": {**action.tries, step: 1}})
            outcome = last if step is upto and last is not None else Done(detail=_detail(step, action))
            ended = action.ended(step, outcome, self.at)
            update: dict[str, object] = {"noted": outcome.detail}
            if outcome.kind == "refused":
                update["state"] = ActionState.VOID if step is StepName.VERIFY else ActionState.FAILED
            elif ended.next_step is None:
                update["state"] = ActionState.DONE
            action = self._commit(ended.model_copy(update=update))
            if step is upto:
                return

    def _commit(self, action: Action) -> Action:
        self.at += timedelta(seconds=1)
        self.apply(decide_outcome(self.record, action, self.context, self.at, shape={}))
        return action

    def prepare(self) -> CutOverPlan:
        """Everything up to the question for the cut-over."""
        self.agree()
        self.look(guards=(guard(),))
        self.look(guards=(guard(),))
        self.look(control=ControlSays(outcome=Outcome.PASS, detail="recorded up to step 59"))
        plan = cutover(self.plan)
        self.look(guards=(guard(),), cutover=plan)
        return plan

    def cut_over(self) -> None:
        """Everything up to the child's training."""
        self.grant(self.prepare())
        self.carry_out()

    def child(self, state: JobState = JobState.RUNNING, instance: str = CHILD_INSTANCE) -> Any:
        job_id, _, at = instance.rpartition("@")
        job = snapshots.job(job_id=JobId(job_id), state=state, submitted_at=datetime.fromisoformat(at))
        return Known(value=(job,), at=self.at)


def _detail(step: StepName, action: Action) -> str:
    match step:
        case StepName.SUBMIT:
            return str(action.relaunch.job_id)
        case StepName.CONFIRM:
            instance = CHILD_INSTANCE if action.plan.kind == "cutover" else f"{JOB}@2026-11-29T06:00:00+00:00"
            return f"exactly one live job: {instance}"
        case _:
            return f"{step} is done"
