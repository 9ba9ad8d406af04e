"""The trial of a change to a live run: what is agreed of it, and what comparing the two runs found.

``bot.model.gate`` has the gates, ``checks/trial/`` compares, ``hero trial compare`` shows it; a trial that is under way
is in ``bot.model.conduct``.
"""

import math
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, BeforeValidator, Field, PrivateAttr, StringConstraints, ValidationError

from bot.model.durations import Duration
from bot.model.gate import Gate, parse_gate
from bot.model.part import Part
from bot.model.value import PersonName, RunId, Value

WINDOW_STEPS = 200
"""The matched control window by default (deploy checklist, "Agree the plan")."""
ALPHA = 0.05
"""How likely all gates together may be to fail two runs that are the same, however often one looks."""


def _read_gate(raw: object) -> object:
    return parse_gate(raw) if isinstance(raw, str) else raw


class AgreedHandoff(Value):
    """The checkpoint of a trial that is agreed and not closed: nobody may remove it."""

    child_run_id: RunId
    step: int
    path: str
    is_temporary: bool = False
    is_cut_over: bool = False
    """Whether the old run was stopped for the child already."""


class TrialContract(Part):
    """The trial of a change of this run: what is agreed of it. The child has a contract of its own.

    How a trial goes, and how a gate is written, is in ``docs/trial.md``.
    """

    child_run_id: RunId | None = None
    """The run id under which the changed code goes on."""
    child_root: str | None = None
    """The checkpoint tree of the child; empty at the first cut-over."""
    handoff_step: int | None = Field(default=None, ge=0)
    """N of the checkpoint ``step-N`` that the child starts from: the window is the steps from N on."""
    first_step: int | None = Field(default=None, ge=0)
    """The first step that the child logs: N, as Levanter does, or N + 1 for a trainer that logs a step before it saves
    it. The window begins there."""
    handoff_hourly: bool = False
    """Whether it is agreed that the newest complete hourly checkpoint is handed over; else the newest permanent one."""
    fork_step: int | None = Field(default=None, ge=0)
    """The tracker's ``_step`` whose row has ``global_step`` N-1: where the child's history is forked off."""
    window_steps: int = Field(default=WINDOW_STEPS, ge=1)
    """How many steps are compared."""
    gates: tuple[Annotated[Gate, BeforeValidator(_read_gate)], ...] = ()
    """What must hold, one line a gate: ``["loss mean <= +0.002", "tokens_per_second mean >= -1%"]``."""
    quiet: bool = True
    """Whether it is a gate too that there was no crash, retry, watchdog or alert."""
    alpha: float = Field(default=ALPHA, gt=0, lt=0.5)
    """How likely all gates together may be to fail two runs that are the same, however often one looks."""
    coverage_gaps: tuple[str, ...] = ()
    """What the trial can't show, in words: evaluations, the child's own save and resume, retries."""
    starts_at: AwareDatetime | None = None
    """When the cut-over is planned."""
    rollback_by: AwareDatetime | None = None
    """Until when a rollback is possible within working hours."""
    submitter: PersonName | None = None
    """Who owns the submission, by the name in ``[people]``; without it the DRI. Hero submits in their name."""
    automatic_rollback: bool = False
    """Whether the DRI's yes to the plan is also their yes to roll a failed trial back at once, without being asked."""
    startup_limit: Duration | None = None
    """How long restore, compilation and prefetch may take, where the launched configuration states no watchdog."""
    look: Duration = timedelta(seconds=60)
    """How often the two runs are looked at from the cut-over on."""
    inventory: tuple[str, ...] = ()
    """Directories of git checkouts in which what pins the old run's id, or a changed metric key, is searched."""
    changed_metrics: tuple[str, ...] = ()
    """The metric keys that the change touches, as the tracker writes them."""
    issue: int | None = Field(default=None, ge=1)
    """Number of the trial's issue, when it is not the run's."""
    thread: Annotated[str, StringConstraints(min_length=1)] | None = None
    """Where it is talked about, when it is not the run's thread."""

    _agreed: AgreedHandoff | None = PrivateAttr(default=None)  # no key of the file: it is agreed by a request

    @property
    def agreed(self) -> AgreedHandoff | None:
        """The handoff of the trial that is under way, where whoever judges has told it; None without such a trial."""
        return self._agreed

    def with_agreed(self, handoff: AgreedHandoff | None) -> "TrialContract":
        """Return the same table, and the handoff of the trial that is under way, as checks expect it."""
        told = self.model_copy()
        told._agreed = handoff  # noqa: SLF001 - of the copy, which nobody else has yet
        return told


class Window(Value):
    """The steps that are compared."""

    first_step: int = Field(ge=0)
    steps: int = Field(default=WINDOW_STEPS, ge=1)

    @property
    def last_step(self) -> int:
        return self.first_step + self.steps - 1


class Outcome(StrEnum):
    """What a gate says. Only what was shown to hold passes."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    CANNOT_TELL = "cannot_tell"


def worst(outcomes: tuple[Outcome, ...]) -> Outcome:
    """Return what several gates say together: one that fails fails all, and none at all passes nothing."""
    if Outcome.FAIL in outcomes:
        return Outcome.FAIL
    return Outcome.PASS if outcomes and set(outcomes) == {Outcome.PASS} else Outcome.CANNOT_TELL


class SideRows(Value):
    """What there is of one figure in the window on one side; nothing of it is averaged away."""

    rows: int
    steps: int
    """Different ones."""
    last_step: int | None
    same_again: int
    """Rows that repeat a step with the same value; they count once."""
    contradictions: int
    """Steps with several rows of different values; such a step is left out."""
    steps_back: int
    """How often a row's step is below the one before it."""
    not_finite: int
    """Steps at which the figure is NaN or infinite."""
    other_executions: int
    """Rows of the window by other executions of the same run, left out."""


class Doubt(Value):
    """The judge's own error rate: how often it would fail two runs that are the same, over every look of the window."""

    trials: int
    swapped: float
    """With the two runs' names swapped at random in each block of steps; at most alpha is meant."""
    control: float | None
    """With neighbouring rows of the control as the two runs, swapped likewise; None where it has too few."""


class Judged(Value):
    """One gate, judged."""

    gate: Gate
    outcome: Outcome
    reasons: tuple[str, ...]
    """Why; never empty."""
    delta: float | None = None
    """The child's mean less the control's, or the worst or the quantile's difference; a share of the control's mean
    when the gate is relative. Positive is higher, but for a worst or a quantile ``within``, which is a distance."""
    low: float | None = None
    """The interval in which the true difference lies, whenever one looks; None: open to that side, or not known."""
    high: float | None = None
    margin: float | None = None
    """How much room is left to the limit, in the unit of ``delta``; below zero the limit is passed."""
    pairs: int = 0
    """Steps with a finite value on both sides."""
    covered: int = 0
    """Of the expected steps."""
    expected: int = 0
    """Steps of the window at which the figure should have been logged."""
    stride: int | None = None
    """It is logged every so many steps."""
    blocks: int = 0
    """Of so many blocks of steps the interval is made."""
    mean_delta: float | None = None
    """Of the pairs, in the figure's own unit."""
    max_delta: float | None = None
    """The difference that is largest in size, in the figure's own unit, with its sign."""
    max_step: int | None = None
    """Where."""
    failed_first_at: int | None = None
    """The last step of the first look that would have failed it: an early abort."""
    control: SideRows | None = None
    child: SideRows | None = None
    doubt: Doubt | None = None

    @property
    def coverage(self) -> float:
        return self.covered / self.expected if self.expected else 0.0


class Happened(Value):
    """What went wrong with the child beside its figures. None: nobody said, so nothing passes."""

    crashes: int | None = Field(default=None, ge=0)
    retries: int | None = Field(default=None, ge=0)
    watchdogs: int | None = Field(default=None, ge=0)
    alerts: int | None = Field(default=None, ge=0)


class Quiet(Value):
    """The gate "no crash, retry, watchdog, alert", judged."""

    outcome: Outcome
    reasons: tuple[str, ...]
    happened: Happened


class Moved(Value):
    """A figure that no gate is about."""

    metric: str
    pairs: int
    mean_delta: float
    max_delta: float
    max_step: int
    share: float | None
    """The mean difference as a share of the control's mean; None where that is zero."""


class Comparison(Value):
    """The child against the control at the same steps."""

    window: Window
    alpha: float
    outcome: Outcome
    gates: tuple[Judged, ...]
    quiet: Quiet | None
    """None where it was not agreed on."""
    others: tuple[Moved, ...]
    notes: tuple[str, ...]
    """What is odd about the two runs' rows, and no reason of one gate."""


def read_comparison(text: str) -> Comparison | None:
    """Return a comparison that was stored as JSON; None for none, and for one of another version of Hero."""
    try:
        return Comparison.model_validate_json(text) if text else None
    except ValidationError:
        return None


def finite(value: float) -> float | None:
    """Return a number, or None for one that is not finite."""
    return value if math.isfinite(value) else None
