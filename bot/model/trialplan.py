"""The plans of a trial: what is agreed, the cut-over, the go, and the way back.

Source: the deploy checklist (docs/procedures.md). A plan that launches or stops holds the plan of that launch or stop
as a part of itself: a yes to the whole is a yes to its parts and to nothing else (``Grant.for_part``).
"""

from typing import ClassVar, Literal

from pydantic import AwareDatetime, Field

from bot.model.planned import PlanBase, PlannedCheckpoint, RelaunchPlan, StopPlan
from bot.model.value import PersonName, RunId, Value


class PlannedFork(Value):
    """The tracker's run that the child goes on with: the old run's history up to a row, under the child's id."""

    entity: str
    project: str
    parent_id: str
    child_id: str
    fork_step: int
    """The tracker's ``_step`` of the last row that is taken over."""
    global_step: int
    """The trainer's step in that row: one below the handoff checkpoint's, verified in the old run's history."""
    lineage: dict[str, str] = {}
    """What else is written into the child's configuration in the tracker: a launcher may check there what it launches,
    e.g. ``hero_handoff_checkpoint`` and ``hero_launch_commit``."""


class TrialPlan(PlanBase):
    """What is agreed before anything is touched ("Agree the plan"). Carrying it out changes nothing in the world."""

    LATER: ClassVar[frozenset[str]] = frozenset({"control_names", "child_names", "first_step"})

    kind: Literal["trial"] = "trial"
    child_run_id: RunId
    child_root: str
    """The child's checkpoint tree, as its contract writes it."""
    handoff: PlannedCheckpoint
    """The checkpoint that the child starts from, and that nobody may remove before the trial is closed."""
    handoff_is_temporary: bool = False
    """Whether it is an hourly one, by agreement; else it is permanent."""
    window_steps: int
    """The control: so many steps of the old run from the window's first on."""
    first_step: int | None = None
    """The first step that the child logs, where it is not the handoff's: the window begins there."""
    gates: tuple[str, ...]
    """As they are written; see docs/trial.md."""
    control_names: dict[str, str] = {}
    """What the old run calls the gated figures, by the gates' word, and how its metrics file is read
    (``bot.model.agreed_names``). The rows of the trial are read by these names whatever ``[metrics]`` says later."""
    child_names: dict[str, str] = {}
    """What the child calls them."""
    quiet: bool
    alpha: float
    fork: PlannedFork | None
    """None where the run has no tracker."""
    coverage_gaps: tuple[str, ...] = ()
    starts_at: AwareDatetime | None = None
    """The cut-over is asked for from then on; None: as soon as all is ready."""
    rollback_by: AwareDatetime | None = None
    submitter: PersonName
    automatic_rollback: bool = False
    """Whether a yes to this plan is also the yes, in advance, to the rollback of a failed trial."""

    @property
    def window_first(self) -> int:
        """The first step that is compared."""
        return self.handoff.step if self.first_step is None else self.first_step

    @property
    def window_last(self) -> int:
        """The last step that is compared."""
        return self.window_first + self.window_steps - 1


class CutOverPlan(PlanBase):
    """Fork the tracker's history, stop the old job, launch the child."""

    kind: Literal["cutover"] = "cutover"
    trial: str
    """Digest of the agreed plan."""
    fork: PlannedFork | None
    handoff: PlannedCheckpoint
    stop: StopPlan
    """The old run's job."""
    launch: RelaunchPlan
    """The child's launch; its ``run_id`` is the child's."""
    number: int = 0
    """Which launch of the child that is; 0 for its first."""
    startup_limit_s: int = Field(gt=0)
    """How long restore, compilation and prefetch may take before it counts as a hang."""
    startup_limit_source: str
    """Where that limit is from: a key of the launched configuration, or the contract."""
    review: str
    """Who reviewed it, and when."""

    @property
    def parts(self) -> tuple[PlanBase, ...]:
        return (self.stop, self.launch)


class GoPlan(PlanBase):
    """Accept the child: it stays, and the ordinary recovery policy holds for it from then on. Changes nothing else."""

    kind: Literal["go"] = "go"
    child_run_id: RunId
    instance: str
    """The child's launch, as ``JOB_ID@SUBMITTED``."""
    verdict: tuple[str, ...]
    """Every gate with what it says; a line of what could not be told begins with ``NOT CLEAR``."""
    coverage_gaps: tuple[str, ...] = ()


class RollbackPlan(PlanBase):
    """Stop the child, then launch the old run again: its SHA, its id, its command, its newest complete checkpoint.

    Never another fork of the tracker's history. Where the old run lives already, by another hand, only the child is
    stopped.
    """

    LATER: ClassVar[frozenset[str]] = frozenset({"unseen", "keeps"})

    kind: Literal["rollback"] = "rollback"
    trial: str
    """Digest of the agreed plan."""
    child_run_id: RunId
    stop: StopPlan | None
    """The child's job; None when it has none that lives."""
    launch: RelaunchPlan | None
    """The old run's; None when its own job lives already (``keeps``)."""
    keeps: str = ""
    """The launch of the old run that lives already, as ``JOB_ID@SUBMITTED``, and is left as it is."""
    unseen: str = ""
    """Why it is not certain that the child trains nowhere, though the orchestrator shows no job of it: it was launched,
    and nobody saw it end. A yes to this plan accepts that."""

    @property
    def parts(self) -> tuple[PlanBase, ...]:
        return (*((self.stop,) if self.stop else ()), *((self.launch,) if self.launch else ()))
