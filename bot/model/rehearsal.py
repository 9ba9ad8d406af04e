"""What is read before a cut-over, and what the guards of a trial say of it. Guards read nothing themselves."""

from datetime import timedelta

from pydantic import AwareDatetime

from bot.model.conduct import Review, Stage
from bot.model.contract import Contract
from bot.model.hours import WorkingHours
from bot.model.planned import NoPlan, RelaunchPlan
from bot.model.reading import Reading
from bot.model.run import Instance
from bot.model.snapshot import Snapshot
from bot.model.trial import Outcome
from bot.model.trialplan import TrialPlan
from bot.model.value import PersonName, Value

SERVICES = ("iris", "kubernetes", "storage", "wandb", "finelog")
"""What a trial may need, by the names of ``Rehearsal.services``; there is a guard for each."""


class MainState(Value):
    """The checkout that the child is launched from, held against the remote's main branch as fetched just now."""

    directory: str
    head: str
    """The full SHA that is checked out."""
    main: str
    """``origin/main``, or what the contract's ``[code]`` names."""
    main_sha: str
    fetched_at: AwareDatetime
    source_sha: str | None
    """The child's, in full; None when its contract names none, or none that is here."""
    is_on_main: bool | None
    """Whether that commit is an ancestor of the fetched main, or its tip; None when it cannot be said."""
    dirty: tuple[str, ...]
    """Paths that differ from ``head`` and could change what is trained."""
    contract_on_main: bool | None = None
    """Whether the launch record (the child's contract file, or the script it runs) lies in main as it lies here; None
    where no such file is below this checkout."""
    contract_path: str = ""
    """Which file that is, relative to the checkout."""


class Boundary(Value):
    """What the old run's history in the tracker says at the row where it would be forked."""

    fork_step: int
    """The tracker's ``_step`` of that row."""
    global_step: int | None
    """The trainer's step in it; None when the row has none."""
    next_global_step: int | None = None
    """The trainer's step of the next row that has one; None when there is no such row."""


class Pin(Value):
    """A place downstream that names the old run's id, or a metric key that the change touches."""

    where: str
    """``owner/name: path:line``, or the address of a report."""
    what: str
    """The id or the key."""


class Limits(Value):
    """How long a start-up and a step may take, by the configuration that is launched."""

    startup: timedelta | None
    startup_source: str
    step: timedelta | None
    step_source: str


class Alive(Value):
    """Whether a service that the trial needs can be used, as its name in messages and what it answered."""

    service: str
    said: str


class Rehearsal(Value):
    """Everything that was read; both runs side by side."""

    at: AwareDatetime
    stage: Stage
    plan: TrialPlan
    contract: Contract
    """The old run's."""
    child: Contract | None
    """The child's; None when its file is missing or cannot be used: then ``child_problems`` says why."""
    child_problems: tuple[str, ...] = ()
    people: frozenset[PersonName]
    """Everybody in ``[people]``."""
    review: Review | None
    instance: Instance | None
    """The old run's current launch on record."""
    seen: Snapshot
    """Of the old run: jobs, neighbours, pods, checkpoints, code (the rollback checkout), configuration, tracker."""
    child_seen: Snapshot | None
    """Of the child: jobs, neighbours, pods, its tree, code, its run in the tracker (MISSING before the fork)."""
    is_recovery: bool
    """Whether the child was launched before: its tree is kept then, and its newest complete checkpoint verified."""
    main: Reading[MainState]
    boundary: Reading[Boundary | None]
    """Known(None) where no tracker is used, or where the contract does not state ``fork_step``."""
    pins: Reading[tuple[Pin, ...]]
    searched: tuple[str, ...] = ()
    """Where pins were looked for; empty when nothing is configured."""
    limits: Reading[Limits]
    credentials: tuple[Reading[Alive], ...]
    """One for each service that this trial needs: Iris, Kubernetes, object store, W&B, Finelog."""
    services: tuple[str, ...]
    """Their names, in the same order; of ``SERVICES``."""
    launch: RelaunchPlan | NoPlan
    """The child's launch as it would be now; the old run's job is not counted as a rival here."""
    rollback: RelaunchPlan | NoPlan
    """The old run's relaunch as it would be once its job and the child's have ended."""
    refusal: str
    """What the launch's own guard says of a launch right now, with the old run alive; empty: it would let it pass. It
    names every live job of either run."""
    is_refusal_unknown: bool = False
    """Whether it refuses only because what lives is not known."""
    is_submitting: bool | None = None
    """Whether a submission of one of the two runs may be under way (``Launcher.is_submitting``, of both contracts);
    None: nobody asked."""
    agreed_at: AwareDatetime | None = None
    """When the plan was agreed to; None as long as it was not."""
    dri_hours: WorkingHours | None = None
    """When the DRI works (``Person.hours``); None where ``[people.DRI]`` states no hours."""
    dri_zone: str | None = None
    """The DRI's zone, else Hero's own, as ``Europe/Berlin``; None when neither is known."""


class GuardSays(Value):
    """One guard's word."""

    guard: str
    """Its id."""
    title: str
    outcome: Outcome
    """``CANNOT_TELL`` when something it needs could not be read: nothing follows from that."""
    detail: str
    fix: str = ""
    """What to do; empty when it passes."""

    @property
    def line(self) -> str:
        """How people read it."""
        mark = {Outcome.PASS: "✓", Outcome.FAIL: "✗", Outcome.CANNOT_TELL: "?"}[self.outcome]
        return f"{mark} {self.guard}: {self.detail}{f' → {self.fix}' if self.fix else ''}"
