"""What an action needs of an orchestrator; implemented once for each kind in this folder."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol

from bot.model.action import Action, StepName, StepOutcome
from bot.model.contract import Contract
from bot.model.job import Job
from bot.model.plan import Grant
from bot.model.planned import RelaunchPlan, StopPlan
from bot.model.preflight import PreflightReport
from bot.model.reading import Reading
from bot.model.record import Record
from bot.model.rehearsal import Rehearsal
from bot.model.snapshot import Snapshot
from bot.model.tracker import TrackerState
from bot.model.trial import Comparison
from bot.model.trialplan import PlannedFork, TrialPlan
from bot.model.value import JobId, Value

type Fence = Callable[[], Awaitable[None]]
"""Awaited right before each change to the world: writes the action once more under the lease, and so raises when
another Hero has taken over, or when the database could not keep what comes of the change (field reports R29, R30)."""


class Submission(Value):
    """What a launch of a run would be."""

    job_id: JobId
    """The job that will exist afterwards; known before, so that a lost answer can be looked up."""
    command: tuple[str, ...]
    """argv as it will be run, with its secrets: never stored, shown or logged as it stands."""
    notes: tuple[str, ...] = ()
    """What Hero added to the contract's command, and why; for people."""


class Unlaunchable(Value):
    """Why the contract's command may not be submitted, each with its fix."""

    problems: tuple[str, ...]


class Launcher(Protocol):
    """Changes one orchestrator. Every method that does so takes the grant and acts only on the plan it covers."""

    def prepare(self, contract: Contract, *, number: int) -> Submission | Unlaunchable:
        """Return what launching instance ``number`` of the run would be. Pure."""
        ...

    async def jobs(self, contract: Contract, job_id: JobId) -> Reading[tuple[Job, ...]]:
        """Ask for a job and its children; Known(()) only when the orchestrator answered that there is none."""
        ...

    async def stop(self, contract: Contract, plan: RelaunchPlan | StopPlan, grant: Grant) -> StepOutcome:
        """Ask the orchestrator to end ``plan.stop`` and nothing else; Done means accepted, not yet terminal.

        Safe to repeat.
        """
        ...

    @property
    def submit_deadline(self) -> timedelta:
        """How long a submission may take; one that was cut off may arrive for as long again."""
        ...

    async def submit(self, contract: Contract, plan: RelaunchPlan, grant: Grant, *, fence: Fence) -> StepOutcome:
        """Submit once. Done carries ``plan.job_id``; Refused is proof that nothing was begun; the rest is Uncertain.

        The run's submission lock is taken first and ``fence`` awaited under it, right before the command is started:
        a Hero that slept between the two holds the lock, so that another one waits; one that slept before them has
        lost its lease. Never repeats by itself. The caller looks the job up before it ever calls this again.
        """
        ...

    async def is_submitting(self, contract: Contract) -> bool:
        """Whether a submission begun earlier, perhaps by a Hero that was killed, may still be under way here."""
        ...


class Checklist(Protocol):
    """The launch checklist, read and judged; see ``bot.preparing``."""

    async def judge(self, contract: Contract, record: Record | None, seen: Snapshot) -> PreflightReport:
        """Read what a launch of the run needs beside the snapshot, and judge it; the report holds no secrets."""
        ...


class StepTaker(Protocol):
    """Does the steps of one kind of action; the executor knows the order and keeps the ledger."""

    async def take(
        self, step: StepName, action: Action, contract: Contract, *, is_resumed: bool, fence: Fence
    ) -> StepOutcome:
        """Do one step, or look once at what it waits for.

        Args:
            step: which one.
            action: with the step's intent already committed.
            contract: as it is on disk now.
            is_resumed: whether the intent was committed earlier, so that the step may have happened already: the world
                is asked before anything is done again.
            fence: awaited right before the world is changed.
        """
        ...


class Rehearses(Protocol):
    """Reads what the guards of a trial judge; see ``bot.rehearsing``."""

    async def rehearse(self, contract: Contract, record: Record, plan: TrialPlan) -> Rehearsal:
        """Read both runs and everything beside them; it always ends with a rehearsal, with Unknowns where needed.

        Args:
            contract: the old run's.
            record: what is remembered of the old run.
            plan: what was agreed, or what is about to be.
        """
        ...


class Judges(Protocol):
    """Holds a trial's child against its control; see ``bot.conducting``."""

    async def compared(self, contract: Contract, record: Record) -> Reading[Comparison]:
        """Read both runs' rows and judge every gate now; Unknown where they cannot be compared.

        Args:
            contract: the old run's.
            record: what is remembered of the old run, with its trial.
        """
        ...


class Forker(Protocol):
    """Forks a run's history in its tracker, exactly once."""

    async def find(self, fork: PlannedFork) -> Reading[TrackerState | None]:
        """Ask for the child's run; Known(None) only when the tracker answered that it has none."""
        ...

    async def create(self, fork: PlannedFork) -> StepOutcome:
        """Create it once. Done, Refused when it is certain that nothing was created, else Uncertain.

        Never repeats by itself; the caller looks before it ever calls this again.
        """
        ...
