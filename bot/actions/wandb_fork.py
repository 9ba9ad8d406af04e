"""Forks a run's history in W&B, exactly once (deploy checklist, "Execute the trial", 1).

W&B refuses ``fork_from`` beside ``resume``, so no call says "only if there is none": what is there is looked at right
before, under a lock, and what came of it right after. The child is begun and finished without a row of its own; its
trainer goes on with it by ``resume`` at the row behind the fork (wandb 0.31, run).
"""

from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import structlog

from bot.actions.submission_lock import SubmissionLocks, SubmissionUnderWayError
from bot.actions.wandb_program import WandbProgram
from bot.clock import Clock
from bot.errors import RefusedError, ServiceError
from bot.model.action import Done, Refused, StepOutcome, Uncertain
from bot.model.contract import MetricsContract
from bot.model.durations import say_duration
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.tracker import TrackerState
from bot.model.trialplan import PlannedFork
from bot.model.value import RunId
from bot.redaction import Redactor
from bot.settings import WandbSettings
from bot.sources.gaps import unknown_of
from bot.sources.iris.program import Finished
from bot.sources.wandb.client import WandbClient
from bot.sources.wandb.failure import SERVICE, NoSuchRunError
from bot.sources.wandb.state import FORK_KEY, SeenRun, fork_mark, parse_run
from bot.threads import BoundedThreads

log = structlog.get_logger()

PROGRAM = Path(__file__).with_name("wandb_fork_program.py")
DEADLINE = timedelta(seconds=90)
"""For the SDK's part: a fork takes a second or two, and wandb-core may have to repeat a request."""


class WandbForker:
    """Implements ``bot.actions.ports.Forker``."""

    def __init__(
        self,
        settings: WandbSettings,
        clock: Clock,
        *,
        locks: Path,
        redactor: Redactor,
        deadline: timedelta = DEADLINE,
        threads: BoundedThreads | None = None,
    ) -> None:
        """Take the parts.

        Args:
            settings: for the server, the key, and the deadline of a look.
            clock: for when a look was.
            locks: a directory on this machine for lock files.
            redactor: for what the SDK says.
            deadline: how long the SDK may take; then it is killed, and the fork is uncertain.
            threads: for looks.
        """
        self._settings = settings
        self._clock = clock
        self._client = WandbClient(settings)
        self._threads = threads or BoundedThreads(SERVICE, settings.threads)
        self._locks = SubmissionLocks(locks)
        self._redactor = redactor
        self._program = WandbProgram(settings, deadline=deadline, redactor=redactor)

    async def find(self, fork: PlannedFork) -> Reading[TrackerState | None]:
        """Ask for the child's run; Known(None) only when W&B has none and no earlier try can still make one."""
        at = self._clock.now()
        fork = self._placed(fork)
        # Before the question: a try that ends while it is asked must not be taken for one that left nothing.
        if self._locks.is_held(_lock_name(fork)):
            detail = f"an earlier try to fork {fork.child_id} is still under way on this machine"
            return Unknown(reason=Gap.BUSY, detail=detail, at=at)
        try:
            seen = await self._look(fork, fork.child_id)
        except NoSuchRunError:
            return Known(value=None, at=at)
        except ServiceError as error:
            return unknown_of(error, at)
        return Known(value=seen.tracked(()), at=at)

    async def create(self, fork: PlannedFork) -> StepOutcome:
        """Look that there is no such run and that its parent is there, fork once, and look again."""
        fork = self._placed(fork)
        if not fork.project:
            return Refused(detail="no project is named; give [tracker] project in the contract; nothing was forked")
        with ExitStack() as held:
            try:
                lock = held.enter_context(self._locks.hold(_lock_name(fork)))
            except SubmissionUnderWayError:
                return Uncertain(detail=f"an earlier try to fork {fork.child_id} is still under way on this machine")
            except OSError as error:
                return Refused(detail=f"the lock of the fork cannot be made ({error}); nothing was forked")
            return await self._before(fork) or await self._create(fork, lock)

    def _placed(self, fork: PlannedFork) -> PlannedFork:
        """Return the fork with the settings' entity and project where the plan names none."""
        place = {"entity": fork.entity or self._settings.entity, "project": fork.project or self._settings.project}
        return fork.model_copy(update={name: value or "" for name, value in place.items()})

    async def _before(self, fork: PlannedFork) -> StepOutcome | None:
        """Return how it ends without anything being sent; None when it may be sent."""
        try:
            child = await self._look(fork, fork.child_id)
        except NoSuchRunError:
            child = None
        except ServiceError as error:
            return self._not_begun(error)
        if child is not None:
            return _as_planned(fork, child) or Refused(
                detail=f"{child.path} is there already, and is {_origin(child)}; nothing was forked"
            )
        try:
            parent = await self._look(fork, fork.parent_id)
        except NoSuchRunError:
            return Refused(detail=f"W&B has no run {_path(fork, fork.parent_id)} to fork; nothing was forked")
        except ServiceError as error:
            return self._not_begun(error)
        if parent.history_step < fork.fork_step:
            detail = f"the history of {parent.path} goes to row {parent.history_step}, and not to {fork.fork_step}"
            return Refused(detail=f"{detail}; nothing was forked")
        return None

    async def _create(self, fork: PlannedFork, lock: int) -> StepOutcome:
        order = {
            "entity": fork.entity,
            "project": fork.project,
            "parent": fork.parent_id,
            "child": fork.child_id,
            "step": fork.fork_step,
            "config": {**fork.lineage, FORK_KEY: fork_mark(fork.parent_id, fork.fork_step)},
        }
        try:
            ended = await self._program.run(PROGRAM, order, repeats=True, pass_fds=(lock,))
        except OSError as error:
            return Refused(detail=f"the SDK cannot be started: {error.strerror or error}; nothing was forked")
        failure = self._judge(ended)
        if failure is not None:
            log.warning("tracker_fork_uncertain", child=fork.child_id, detail=failure.detail)
            return failure
        return await self._after(fork)

    def _judge(self, ended: Finished) -> Uncertain | None:
        """Return what a failure means; none is proof that nothing was forked, whatever was printed."""
        said = self._program.said(ended)
        match ended.exit_code:
            case 0:
                return None
            case None:
                limit = say_duration(self._program.deadline)
                return Uncertain(detail=f"the fork did not end in {limit} and was cut off: {said}")
            case int(code) if code < 0:
                return Uncertain(detail=f"the fork was ended by signal {-code}: {said}")
            case code:
                return Uncertain(detail=f"the SDK failed with exit code {code}: {said}", is_over=True)

    async def _after(self, fork: PlannedFork) -> StepOutcome:
        try:
            child = await self._look(fork, fork.child_id)
        except ServiceError as error:
            detail = f"the SDK has forked {fork.child_id}, and it cannot be seen yet: {error.detail}"
            return Uncertain(detail=self._redactor.text(detail))
        return _as_planned(fork, child) or Uncertain(
            detail=f"the SDK has forked {fork.child_id}, and W&B shows it as {_origin(child)}"
        )

    def _not_begun(self, error: ServiceError) -> StepOutcome:
        said = self._redactor.text(str(error))
        if isinstance(error, RefusedError):
            return Refused(detail=f"{said}; nothing was forked")
        return Uncertain(detail=f"W&B could not be asked before the fork, so it was not begun: {said}")

    async def _look(self, fork: PlannedFork, run_id: str) -> SeenRun:
        """Ask for one run of the project, anew.

        Raises:
            NoSuchRunError: there is none.
            ServiceError: there is no answer.
        """

        def ask() -> SeenRun:
            if not fork.project:
                raise RefusedError(SERVICE, "no project is named; give [tracker] project in the contract")
            return parse_run(self._client.run(fork.entity or None, fork.project, run_id), MetricsContract())

        return await self._threads.call(ask, deadline=self._settings.deadline)


def _as_planned(fork: PlannedFork, child: SeenRun) -> Done | None:
    origin = child.fork
    if origin is None or (origin.run_id, origin.step) != (fork.parent_id, fork.fork_step):
        return None
    return Done(detail=f"{child.url} goes on from row {fork.fork_step} of {fork.parent_id}")


def _origin(child: SeenRun) -> str:
    return f"forked off row {child.fork.step} of {child.fork.run_id}" if child.fork else "no fork"


def _path(fork: PlannedFork, run_id: str) -> str:
    return "/".join(filter(None, (fork.entity, fork.project, run_id)))


def _lock_name(fork: PlannedFork) -> RunId:
    """Return a name for the lock file; ids of W&B may hold what no file name may."""
    return RunId(f"fork-{''.join(c if c.isalnum() or c in '-_.' else '_' for c in fork.child_id)}")
