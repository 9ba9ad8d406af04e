"""Trials under way, as a run's record holds them: for what looks after the checkpoint that they hand over."""

from bot.model.conduct import Stage, Trial
from bot.model.planned import PlannedCheckpoint
from bot.model.run import Run
from bot.model.trialplan import TrialPlan
from bot.model.value import PersonName, RunId
from tests.fakes.clock import START
from tests.fakes.snapshots import RUN

CHILD = RunId("hero-ragged-step54k")


def a_trial(path: str, step: int, stage: Stage = Stage.PLANNED, *, run_id: RunId = RUN) -> Trial:
    """Return a trial that hands over the checkpoint at ``path``, agreed with the request R3."""
    plan = TrialPlan(
        run_id=run_id,
        child_run_id=CHILD,
        child_root=f"gs://bucket/users/ada/{CHILD}/checkpoints",
        handoff=PlannedCheckpoint(step=step, path=path),
        window_steps=200,
        gates=("loss mean <= +0.002",),
        quiet=True,
        alpha=0.05,
        fork=None,
        submitter=PersonName("ada"),
    )
    return Trial(plan=plan, request=3, agreed_by=PersonName("ada"), agreed_at=START).reached(stage, START)


def on_trial(path: str, step: int, stage: Stage = Stage.PLANNED, *, run_id: RunId = RUN) -> Run:
    """Return a run with such a trial."""
    return Run(run_id=run_id, trial=a_trial(path, step, stage, run_id=run_id))
