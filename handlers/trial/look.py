"""What was read and judged in one look at a trial, as far as its stage needs it."""

from pydantic import AwareDatetime

from bot.model.chart import Chart
from bot.model.conduct import Stage
from bot.model.job import Job
from bot.model.planned import NoPlan
from bot.model.reading import Reading
from bot.model.rehearsal import GuardSays, Pin
from bot.model.trial import Comparison
from bot.model.trialplan import CutOverPlan, RollbackPlan
from bot.model.value import Value
from checks.trial.control import ControlSays
from checks.trial.trajectory import TrajectorySays


class TrialLook(Value):
    """One look. What the stage has no use for was not read, and is None or empty."""

    at: AwareDatetime
    stage: Stage
    """At which the look was made."""
    guards: tuple[GuardSays, ...] = ()
    pins: tuple[Pin, ...] = ()
    """What pins the old run downstream, as far as it was found."""
    pins_gap: str = ""
    """Why that is not known; then none being found says nothing."""
    old_lives: str = ""
    """The old run's own job and its launch, when it lives although it was stopped for the child."""
    old_gap: str = ""
    """Why it is not known whether the old run's own job lives."""
    control: ControlSays | None = None
    cutover: CutOverPlan | NoPlan | None = None
    rollback: RollbackPlan | NoPlan | None = None
    never_stopped: str = ""
    """The old run's job, when it is seen to live on and the child to have none: nothing is to be rolled back."""
    child: Reading[tuple[Job, ...]] | None = None
    """The child's job and those below it."""
    child_said: tuple[str, ...] = ()
    """The child's job, its attempts and how old its newest step is, one line each."""
    stuck: tuple[str, ...] = ()
    """Why the child counts as hung or broken: its open incidents that say so."""
    comparison: Comparison | None = None
    comparison_gap: str = ""
    """Why there is none, though it is time for one."""
    child_step: int | None = None
    """The newest step that the child's current execution logged."""
    is_past_window: bool = False
    """Whether the child has logged a step beyond the window."""
    trajectory: TrajectorySays | None = None
    is_long_enough: bool = False
    """Whether the rolled-back run has replayed so much that a comparison which is still open will stay so."""
    report_url: str = ""
    report_gap: str = ""
    """Why the report could not be written this time."""
    tracker_report_url: str = ""
    chart: Chart | None = None
    """The two runs' loss."""
