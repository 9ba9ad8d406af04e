"""Stops and submits Iris jobs. Submitting is always the contract's own command, through the CLI, once."""

import re
from pathlib import Path

from bot.actions.iris_command import prepare_submission
from bot.actions.ports import Submission, Unlaunchable
from bot.actions.submission_lock import SubmissionLocks, SubmissionUnderWayError
from bot.clock import Clock
from bot.errors import RefusedError, ServiceError
from bot.model.action import Done, Refused, StepOutcome, Uncertain
from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.job import Job
from bot.model.plan import Grant, RelaunchPlan
from bot.model.reading import Reading
from bot.model.value import JobId
from bot.redaction import Redactor
from bot.settings import IrisSettings
from bot.sources.iris.failure import NotFoundError, NoVerbError, last_message, says_no_such_job
from bot.sources.iris.program import Finished, child_environment, run_program
from bot.sources.iris.source import IrisOrchestrator

_SUBMITTED = re.compile(r"Job submitted: (/[^/\s]+/[^/\s]+)\s*$", re.MULTILINE)
_JOB_ID = re.compile(r"/[^/\s]+/[^/\s]+")
_OUTPUT_BYTES = 2**20

# Messages after which nothing was accepted (marin-iris 0.2.20 and 0.2.227, run).
_TOO_OLD = "client is too old"
_NOTHING_ACCEPTED = re.compile(
    r"is unschedulable|no scaling group provides|no matching scaling group|Job name cannot contain '/'"
    r"|Bundle size \S+ exceeds|No controller specified|No credentials to authenticate|Missing authentication"
    r"|Authentication failed|Identity verification failed|Unknown cluster|requires --enable-extra-resources"
)
_NEVER_STARTED = re.compile(r"^Usage: |^error: Failed to spawn", re.MULTILINE)
_RETRIED = re.compile(r"retrying in ")


class IrisLauncher:
    """The launcher for contracts of kind ``iris``."""

    def __init__(
        self, settings: IrisSettings, orchestrator: IrisOrchestrator, *, locks: Path, clock: Clock, redactor: Redactor
    ) -> None:
        """Take the parts.

        Args:
            settings: for the submission's deadline.
            orchestrator: the same controller, to ask and to stop.
            locks: a directory on this machine for the lock files of submissions.
            clock: for whether a grant still counts.
            redactor: for what the submitting program printed.
        """
        self._settings = settings
        self._orchestrator = orchestrator
        self._locks = SubmissionLocks(locks)
        self._clock = clock
        self._redactor = redactor

    def prepare(self, contract: Contract, *, number: int) -> Submission | Unlaunchable:
        """Return what launching instance ``number`` would be; pure."""
        return prepare_submission(contract, default_name=f"{contract.run_id}-r{number}")

    async def jobs(self, contract: Contract, job_id: JobId) -> Reading[tuple[Job, ...]]:
        """Ask for a job and its children; Known(()) only when the controller knows none such."""
        return await self._orchestrator.jobs(contract, job_id)

    async def stop(self, contract: Contract, plan: RelaunchPlan, grant: Grant) -> StepOutcome:  # noqa: ARG002 - the port's
        """Tell the controller to end exactly ``plan.stop`` and what is below it; no neighbour, whatever its name."""
        if not grant.covers(plan, self._clock.now()):
            return Refused(detail="the approval is not for this plan, or has expired; nothing was stopped")
        if plan.stop is None:
            return Done(detail="there is nothing to stop")
        try:
            await self._terminate(plan.stop)
        except ServiceError as error:
            if isinstance(error, NotFoundError) and says_no_such_job(error, plan.stop):
                return Done(detail=f"no such job any more: {plan.stop}")
            said = self._redactor.text(str(error))
            return Refused(detail=said) if isinstance(error, RefusedError) else Uncertain(detail=said)
        return Done(detail=f"{plan.stop} was told to end")

    async def _terminate(self, job_id: JobId) -> None:
        try:
            await self._orchestrator.ask("TerminateJob", {"job_id": job_id})
        except NoVerbError:
            await self._orchestrator.cli.stop(job_id)

    async def submit(self, contract: Contract, plan: RelaunchPlan, grant: Grant) -> StepOutcome:
        """Run the approved command once; Done carries the job id that it printed."""
        if not grant.covers(plan, self._clock.now()):
            return Refused(detail="the approval is not for this plan, or has expired; nothing was submitted")
        submission = _as_approved(contract, plan)
        if isinstance(submission, Refused):
            return submission
        try:
            with self._locks.hold(contract.run_id) as lock:
                ended = await run_program(
                    submission.command,
                    deadline=self._settings.submit_deadline,
                    environment=child_environment(contract.environment),
                    directory=Path(contract.checkout),
                    limit_bytes=_OUTPUT_BYTES,
                    pass_fds=(lock,),
                )
        except SubmissionUnderWayError:
            return Uncertain(detail="an earlier submission of this run is still under way on this machine")
        except OSError as error:
            return Refused(detail=f"{submission.command[0]!r} cannot be run in {contract.checkout}: {error.strerror}")
        return self._judge(ended)

    async def is_submitting(self, contract: Contract) -> bool:
        """Whether a process of an earlier submission still lives, also one that outlived a killed Hero."""
        return self._locks.is_held(contract.run_id)

    def _judge(self, ended: Finished) -> StepOutcome:
        job_id = _submitted_id(ended)
        said = self._redactor.text(last_message(ended.stderr))
        match ended.exit_code:
            case 0 if job_id:
                return Done(detail=job_id)
            case 0:
                return Uncertain(detail=f"the command ended well, but named no job: {said}")
            case None:
                limit = say_duration(self._settings.submit_deadline)
                return Uncertain(detail=f"the submission did not end in {limit} and was cut off: {said}")
            case _ if job_id:
                return Uncertain(detail=f"{job_id} was submitted, then the command failed: {said}")
            case code:
                return _judge_failure(code, said, ended.stderr)


def _judge_failure(exit_code: int, said: str, stderr: str) -> StepOutcome:
    """Refused only on proof that nothing was accepted; the rest is for the controller to answer."""
    if _RETRIED.search(stderr):
        return Uncertain(detail=f"the submission was tried more than once, and ended with: {said}")
    if _TOO_OLD in stderr:
        return Refused(detail=f"{said} — upgrade marin-iris where the submit command runs, then ask again")
    if _NOTHING_ACCEPTED.search(said) or _NEVER_STARTED.search(stderr):
        return Refused(detail=said)
    return Uncertain(detail=f"the submission ended with exit code {exit_code}: {said}")


def _as_approved(contract: Contract, plan: RelaunchPlan) -> Submission | Refused:
    """Return the submission that the plan stands for, as long as the contract still makes that one."""
    if contract.command_sha256 != plan.command_sha256:
        return Refused(detail="the contract's command is not the approved one any more; nothing was submitted")
    match prepare_submission(contract, default_name=plan.job_id.rsplit("/", 1)[-1]):
        case Unlaunchable(problems=problems):
            return Refused(detail="; ".join(problems))
        case Submission(job_id=job_id) if job_id != plan.job_id:
            return Refused(detail=f"the command makes {job_id}, but {plan.job_id} was approved")
        case submission:
            return submission


def _submitted_id(ended: Finished) -> JobId | None:
    """The job id alone on a line of stdout, or in the log line on stderr."""
    lines = [line.strip() for line in ended.stdout.splitlines()]
    printed = next((line for line in reversed(lines) if _JOB_ID.fullmatch(line)), None)
    logged = _SUBMITTED.findall(ended.stderr) or _SUBMITTED.findall(ended.stdout)
    return JobId(printed or logged[-1]) if printed or logged else None
