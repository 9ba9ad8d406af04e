"""Stops and submits Iris jobs. Submitting is always the contract's own command, through the CLI, once."""

import re
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

from bot.actions.iris_command import prepare_submission
from bot.actions.ports import Fence, Submission, Unlaunchable
from bot.actions.submission_lock import SubmissionLocks, SubmissionUnderWayError
from bot.clock import Clock
from bot.errors import RefusedError, ServiceError
from bot.model.action import Done, Refused, StepOutcome, Uncertain
from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.job import Job
from bot.model.plan import Grant
from bot.model.planned import RelaunchPlan, StopPlan
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

_TOO_OLD = "client is too old"
"""What a controller says to a client below its minimum (marin-iris 0.2.20 and 0.2.227, run)."""


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

    async def stop(self, contract: Contract, plan: RelaunchPlan | StopPlan, grant: Grant) -> StepOutcome:  # noqa: ARG002 - the port's
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

    @property
    def submit_deadline(self) -> timedelta:
        """From the settings."""
        return self._settings.submit_deadline

    async def submit(self, contract: Contract, plan: RelaunchPlan, grant: Grant, *, fence: Fence) -> StepOutcome:
        """Run the approved command once; Done when it ended well and named the planned job and no other."""
        if not grant.covers(plan, self._clock.now()):
            return Refused(detail="the approval is not for this plan, or has expired; nothing was submitted")
        submission = _as_approved(contract, plan)
        if isinstance(submission, Refused):
            return submission
        with ExitStack() as held:
            try:
                lock = held.enter_context(self._locks.hold(contract.run_id))
            except SubmissionUnderWayError:
                return Uncertain(detail="an earlier submission of this run is still under way on this machine")
            except OSError as error:
                return Refused(detail=f"the submission lock cannot be made ({error}); nothing was submitted")
            await fence()
            return await self._run(submission, contract, lock)

    async def _run(self, submission: Submission, contract: Contract, lock: int) -> StepOutcome:
        try:
            ended = await run_program(
                submission.command,
                deadline=self._settings.submit_deadline,
                environment=child_environment(contract.environment),
                directory=Path(contract.checkout),
                limit_bytes=_OUTPUT_BYTES,
                pass_fds=(lock,),
            )
        except OSError as error:
            return Refused(detail=f"{submission.command[0]!r} cannot be run in {contract.checkout}: {error.strerror}")
        return self._judge(ended, submission.job_id)

    async def is_submitting(self, contract: Contract) -> bool:
        """Whether a process of an earlier submission still lives, also one that outlived a killed Hero."""
        return self._locks.is_held(contract.run_id)

    def _judge(self, ended: Finished, planned: JobId) -> StepOutcome:
        """Say what the end of the command tells.

        No failure is proof that nothing was accepted, whatever was printed: a launch script may submit and fail
        afterwards with any message. So the controller is asked.
        """
        printed = tuple(self._redactor.text(job_id) for job_id in _printed_ids(ended))
        said = self._redactor.text(last_message(ended.stderr))
        stranger = next((job_id for job_id in printed if job_id != planned), None)
        match ended.exit_code:
            case None:
                limit = say_duration(self._settings.submit_deadline)
                return Uncertain(detail=f"the submission did not end in {limit} and was cut off: {said}")
            case int(code) if code < 0:
                return Uncertain(detail=f"the submission was ended by signal {-code}: {said}")
            case 0 if stranger is not None:
                detail = f"the submit command printed {stranger}, which is not the planned {planned}"
            case 0 if not printed:
                detail = f"the submit command ended well, but did not print the planned {planned}: {said}"
            case 0:
                return Done(detail=planned)
            case code:
                before = f"printed {', '.join(printed)}, then " if printed else ""
                detail = f"the submit command {before}failed with exit code {code}: {said}"
                if _TOO_OLD in ended.stderr:
                    detail += " — upgrade marin-iris where the submit command runs, then ask again"
        return Uncertain(detail=detail, is_over=True)


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


def _printed_ids(ended: Finished) -> tuple[str, ...]:
    """What looks like a job id: the last line of stdout that is one and no more, and the last log line about one."""
    alone = [line.strip() for line in ended.stdout.splitlines() if _JOB_ID.fullmatch(line.strip())]
    logged = _SUBMITTED.findall(ended.stderr) or _SUBMITTED.findall(ended.stdout)
    return tuple(dict.fromkeys((*alone[-1:], *logged[-1:])))
