"""Runs the owner's own run-history commands: at least once each, after the commit of what they are about.

What is due follows from the run's record, and each outcome goes on it; so a restart loses nothing, and a crash between
a run and its outcome runs the command once more. It is the owner's own bookkeeping, set up by them: it needs no grant,
and a failure is a warning that holds nothing up.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import PurePath

import structlog

from bot.clock import Clock
from bot.contracts import BadContract, Contracts
from bot.dispatcher import Dispatcher
from bot.errors import LeaseLostError, StoreError
from bot.model.bookkeeping import HistoryJob, next_history_job
from bot.model.chronicle import HistoryWritten
from bot.model.contract import Contract
from bot.model.value import RunId
from bot.redaction import Redactor, redact_or_withhold
from bot.settings.history import HistorySettings, filled_in
from bot.sources.iris.program import child_environment, run_program
from bot.store.store import Store

log = structlog.get_logger()

_EVERY = timedelta(seconds=10)
_SAID_MOST = 300
_OUTPUT_BYTES = 65_536
_EXPERIMENT = re.compile(r"exp[0-9]+_\w+")


class Historian:
    """Looks through the records for what is due, for ever."""

    def __init__(
        self,
        settings: HistorySettings,
        *,
        store: Store,
        contracts: Contracts,
        dispatcher: Dispatcher,
        redactor: Redactor,
        clock: Clock,
        alarm: Callable[[StoreError], None],
    ) -> None:
        """Take the parts.

        Args:
            settings: the commands.
            store: the records.
            contracts: for what kind of run it is.
            dispatcher: puts the outcome on record, and tells a failure.
            redactor: for what a command says.
            clock: now.
            alarm: hears that the database refuses.
        """
        self._settings = settings
        self._store = store
        self._contracts = contracts
        self._dispatcher = dispatcher
        self._redactor = redactor
        self._clock = clock
        self._alarm = alarm

    async def run(self) -> None:
        """Do what is due, for ever; waits for ever when no command is set up."""
        while True:
            try:
                await self.catch_up()
            except LeaseLostError:
                raise
            except StoreError as error:
                self._alarm(error)
            await self._clock.sleep(_EVERY)

    async def catch_up(self) -> int:
        """Run everything that is due now, one command after the other; return how many were run."""
        if not (self._settings.new or self._settings.add):
            return 0
        count = 0
        for run_id in [run.run_id for run in await self._store.runs()]:
            contract = self._contracts.load(run_id)
            while not isinstance(contract, BadContract) and (job := await self._due(run_id)) is not None:
                done, detail = await self._write(contract, job)
                written = HistoryWritten(command=job.command, about=job.about, is_done=done, detail=detail)
                await self._dispatcher.history_written(run_id, written, is_given_up=job.is_last_try and not done)
                count += 1
        return count

    async def _due(self, run_id: RunId) -> HistoryJob | None:
        entries = await self._store.chronicle(run_id)
        return next_history_job(
            entries, self._clock.now(), makes_new=bool(self._settings.new), adds=bool(self._settings.add)
        )

    async def _write(self, contract: Contract, job: HistoryJob) -> tuple[bool, str]:
        """Run one command; return whether it succeeded, and its last words."""
        values = _values(contract, job)
        template = self._settings.new if job.command == "new" else self._settings.add
        argv = filled_in(template, values)
        taken = [
            word for word, given in zip(argv, template, strict=True) if given.startswith("{") and word[:1] in {"", "-"}
        ]
        if taken:
            return False, f"not run: {taken[0]!r} would be taken for an option or is empty, instead of a value"
        with structlog.contextvars.bound_contextvars(run_id=contract.run_id, command=job.command, about=job.about):
            try:
                finished = await run_program(
                    argv,
                    deadline=self._settings.deadline,
                    environment=child_environment(),
                    directory=self._settings.directory,
                    limit_bytes=_OUTPUT_BYTES,
                )
            except (OSError, ValueError) as error:
                log.warning("history_not_written", reason=str(error))
                return False, f"could not be started: {error}"
            if finished.exit_code is None:
                return False, f"was ended after {self._settings.deadline.total_seconds():g} s"
            said = self._last_words(finished.stdout if finished.exit_code == 0 else finished.stderr or finished.stdout)
            log.info("history_written", exit_code=finished.exit_code)
            return (
                finished.exit_code == 0,
                said if finished.exit_code == 0 else f"exit code {finished.exit_code}: {said}",
            )

    def _last_words(self, output: str) -> str:
        lines = [line.strip() for line in redact_or_withhold(self._redactor, output).splitlines() if line.strip()]
        return lines[-1][-_SAID_MOST:] if lines else "it said nothing"


def _values(contract: Contract, job: HistoryJob) -> dict[str, str]:
    experiment = _EXPERIMENT.fullmatch(PurePath(contract.checkout).name)
    return {
        "wandb_url": job.tracker_url,
        "wandb_name": job.tracker_name or contract.tracker.name or contract.run_id,
        "job_id": job.job_id,
        "experiment": experiment[0] if experiment else "no_experiment",
        "run_id": contract.run_id,
        "kind": contract.effective_kind,
        "instance": str(job.instance),
    }
