"""What an action needs of an orchestrator; implemented once for each kind in this folder."""

from typing import Protocol

from bot.model.action import StepOutcome
from bot.model.contract import Contract
from bot.model.job import Job
from bot.model.plan import Grant, RelaunchPlan
from bot.model.reading import Reading
from bot.model.value import JobId, Value


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

    async def stop(self, contract: Contract, plan: RelaunchPlan, grant: Grant) -> StepOutcome:
        """Ask the orchestrator to end ``plan.stop`` and nothing else; Done means accepted, not yet terminal.

        Safe to repeat.
        """
        ...

    async def submit(self, contract: Contract, plan: RelaunchPlan, grant: Grant) -> StepOutcome:
        """Submit once. Done carries the job id; whatever may have reached the orchestrator is Uncertain, not Refused.

        Never repeats by itself. The caller looks the job up before it ever calls this again.
        """
        ...

    async def is_submitting(self, contract: Contract) -> bool:
        """Whether a submission begun earlier, perhaps by a Hero that was killed, may still be under way here."""
        ...
