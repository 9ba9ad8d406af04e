"""What will be trained, told before anything runs: by the file that is launched with, or by the owner's own command.

Implements ``bot.preparing.ConfigReadings``. What the contract names and cannot be read is Unknown, and nothing else is
asked in its place: a number from further away would be a guess.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import Any

from bot.clock import Clock
from bot.errors import DeadlineError, RefusedError, ServiceError, UnrecognisedError
from bot.model.askedsteps import asked_steps, steps_of
from bot.model.contract import Basis, Contract
from bot.model.drift import ConfigShape, shape_of
from bot.model.durations import say_duration
from bot.model.launched import UNSET, LaunchedConfig
from bot.model.preflight import StepCount
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.snapshot import Snapshot
from bot.model.value import RunId
from bot.redaction import Redactor
from bot.secret_names import is_secret_name
from bot.sources.config.files import read_file
from bot.sources.config.parse import SERVICE, parse_config
from bot.sources.config.source import address_of, launched
from bot.sources.gaps import unknown_of
from bot.sources.iris.program import child_environment, run_program
from bot.threads import BoundedThreads

COMMAND_DEADLINE = timedelta(seconds=60)
"""What the owner's command may take: an import of a training framework takes half of it."""
_OUTPUT_BYTES = 64 * 1024
_SHOWN_CHARS = 300
_FILES = frozenset({".json", ".yaml", ".yml", ".toml"})
_NUMBER = re.compile(r"(?<![\w.+\-/])\d[\d_]*(?:\.\d+)?(?:[eE]\+?\d+)?(?![\w/%]|[.,]\d)")
_DIGITS = re.compile(r"\d")

type Recorded = Callable[[RunId], Awaitable[ConfigShape | None]]
"""What is remembered of the newest launch of a run whose configuration was read; None when there is none."""


class BeforeLaunch:
    """Reads what the contract's ``[config]`` names of a launch to come; changes nothing itself."""

    def __init__(
        self,
        clock: Clock,
        redactor: Redactor,
        *,
        recorded: Recorded | None,
        threads: BoundedThreads | None = None,
        deadline: timedelta = timedelta(seconds=20),
        command_deadline: timedelta = COMMAND_DEADLINE,
        options: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        """Take what is fixed for all runs.

        Args:
            clock: for the moment of the readings.
            redactor: a configuration, or what a command prints, may hold secrets.
            recorded: what is on record of other runs; None when there is no database.
            threads: where files are read and parsed.
            deadline: of one file.
            command_deadline: of the contract's ``final_step_command``.
            options: by protocol, for fsspec.
        """
        self._clock = clock
        self._redactor = redactor
        self._recorded = recorded
        self._threads = threads or BoundedThreads(SERVICE, 4)
        self._deadline = deadline
        self._command_deadline = command_deadline
        self._options = options or {}

    async def coming(self, contract: Contract) -> Reading[LaunchedConfig | None]:
        """Read the configuration that the command launches with; Known(None) when the contract names none."""
        at = self._clock.now()
        if contract.config.launch is None:
            return Known(value=None, at=at)
        try:
            return Known(value=await self._file(contract.config.launch, contract), at=at)
        except ServiceError as error:
            return self._unknown(error)

    async def steps(self, contract: Contract, seen: Snapshot) -> Reading[StepCount | None]:
        """Return how many steps will be trained; Known(None) when nothing that is launched tells.

        The file that is launched with says so, else the contract's own command, else the launch command's argument,
        else what the launch before resolved.
        """
        at = self._clock.now()
        try:
            found = await self._of_file(contract) or await self._of_owner(contract)
        except ServiceError as error:
            return self._unknown(error)
        return Known(value=found or _resolved_before(seen), at=at)

    async def reference(self, contract: Contract) -> Reading[ConfigShape | None]:
        """Return the configuration that has to be preserved; Known(None) when the contract names none."""
        at = self._clock.now()
        named = contract.config.reference
        if named is None:
            return Known(value=None, at=at)
        if not is_file(named):
            return await self._of_record(RunId(named))
        try:
            return Known(value=shape_of(await self._file(named, contract), room=None), at=at)
        except ServiceError as error:
            return self._unknown(error)

    async def _of_file(self, contract: Contract) -> StepCount | None:
        """Return what the launch's file says; None when it does not say."""
        if contract.config.launch is None:
            return None
        config = await self._file(contract.config.launch, contract)
        told = config.value("final_step")
        if told is None or told == UNSET:
            return None
        key, steps = config.key("final_step"), config.count("final_step")
        if steps is None:
            raise UnrecognisedError(SERVICE, f"{key} = {told[:80]} of {config.origin} is no whole number above zero")
        return StepCount(steps=steps, origin=f"{key} of {config.origin}", basis=Basis.MEASURED)

    async def _of_owner(self, contract: Contract) -> StepCount | None:
        """Return what the owner's command prints, or what the launch command itself asks for."""
        if contract.config.final_step_command:
            steps = await self._run(contract)
            return StepCount(steps=steps, origin="[config] final_step_command", basis=Basis.MEASURED)
        asked = asked_steps(contract.command, contract.config.keys.get("final_step"))
        if asked is None:
            return None
        if asked.steps is None:
            said = self._redactor.text(asked.said)[:80]
            raise UnrecognisedError(SERVICE, f"the command's {asked.option} {said!r} is no whole number above zero")
        return StepCount(steps=asked.steps, origin=f"the command's {asked.option}", basis=contract.basis_of("command"))

    async def _of_record(self, run_id: RunId) -> Reading[ConfigShape | None]:
        at = self._clock.now()
        if self._recorded is None:
            detail = f"{run_id} is a run id, and there is no database with its launches; name a file of it"
            return Unknown(reason=Gap.NOT_CONFIGURED, detail=detail, at=at)
        shape = await self._recorded(run_id)
        if shape is None:
            detail = f"no launch of a run {run_id} whose configuration was read is on record; name a file of it"
            return Unknown(reason=Gap.REFUSED, detail=detail, at=at)
        return Known(value=shape.model_copy(update={"origin": f"{shape.origin}, as launched by {run_id}"}), at=at)

    async def _file(self, named: str, contract: Contract) -> LaunchedConfig:
        """Read one configuration.

        Raises:
            ServiceError: it is not there, may not be read, or is none.
        """
        address = address_of(named, contract)
        shown = self._redactor.text(address)

        def read() -> LaunchedConfig:
            found = read_file(address, self._options)
            if found is None:
                raise RefusedError(SERVICE, f"{shown} does not exist")
            return launched(parse_config(found.raw, shown), shown, contract, self._redactor)

        return await self._threads.call(read, deadline=self._deadline, key=f"{contract.run_id} {named}")

    async def _run(self, contract: Contract) -> int:
        """Run the owner's command and return what it says.

        Raises:
            ServiceError: it could not be started, failed, hung, or printed something else.
        """
        argv = contract.config.final_step_command
        # Python alone would write into the checkout whose changes are looked at meanwhile.
        environment = child_environment({"PYTHONDONTWRITEBYTECODE": "1", **contract.environment})
        quiet = _quiet(self._redactor, argv, environment)
        what = f"[config] final_step_command ({quiet(PurePosixPath(argv[0]).name)})"
        try:
            ended = await run_program(
                argv,
                deadline=self._command_deadline,
                environment=environment,
                directory=Path(contract.checkout),
                limit_bytes=_OUTPUT_BYTES,
                leaves_nothing=True,  # it answers a question, over and over; what it began would pile up
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            raise RefusedError(SERVICE, f"{what} cannot be started in {contract.checkout}: {why}") from error
        if ended.exit_code is None:
            raise DeadlineError(SERVICE, f"{what} gave no answer in {say_duration(self._command_deadline)}")
        if ended.exit_code != 0:
            said = _shown(quiet(ended.stderr)) or _shown(quiet(ended.stdout)) or "it said nothing"
            raise RefusedError(SERVICE, f"{what} ended with exit code {ended.exit_code}: {said}")
        if ended.is_cut:
            raise UnrecognisedError(SERVICE, f"{what} printed more than {_OUTPUT_BYTES} bytes")
        steps = self._printed(ended.stdout, contract)
        if steps is None:
            said = _shown(quiet(ended.stdout)) or "nothing"
            raise UnrecognisedError(
                SERVICE, f"{what} printed {said!r}; one whole number, or a JSON object that holds it, is expected"
            )
        return steps

    def _printed(self, stdout: str, contract: Contract) -> int | None:
        """Return the number of steps that a command printed; None when that is not clear."""
        line = _last_line(stdout)
        if line.startswith("{") or line == "}":
            return self._of_object(line if line.startswith("{") else stdout.strip(), contract)
        found = _NUMBER.findall(line)
        if len(found) != 1 or _DIGITS.search(_NUMBER.sub("", line)):
            return None  # several numbers, or parts of words that hold one, as a progress bar's 10.1k
        return steps_of(found[0])

    def _of_object(self, text: str, contract: Contract) -> int | None:
        try:
            config = launched(parse_config(text.encode(), "its output.json"), "its output", contract, self._redactor)
        except UnrecognisedError:
            return None
        if config.value("final_step") is not None:
            return config.count("final_step")
        return config.model_copy(update={"words": {"final_step": ("final_step",)}}).count("final_step")

    def _unknown(self, error: ServiceError) -> Unknown:
        found = unknown_of(error, self._clock.now())
        return found.model_copy(update={"detail": self._redactor.text(found.detail)})


def is_file(reference: str) -> bool:
    """Whether the contract's ``reference`` names a file, and not a run."""
    return "/" in reference or PurePosixPath(reference).suffix.lower() in _FILES


def _resolved_before(seen: Snapshot) -> StepCount | None:
    """Return what the launch before resolved, as read now or as remembered; a relaunch may be another, so inferred."""
    shape = seen.instance.launched if seen.instance else None
    kept = LaunchedConfig(origin=shape.origin, values=shape.values, words=shape.words) if shape else None
    for config in (seen.config.value if isinstance(seen.config, Known) else None, kept):
        if config is not None and (steps := config.count("final_step")) is not None:
            origin = f"{config.key('final_step')} of {config.origin}, as the launch before resolved it"
            return StepCount(steps=steps, origin=origin, basis=Basis.INFERRED)
    return None


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _shown(text: str) -> str:
    """Return the last line of a text that holds no secrets, as far as people want to read it."""
    said = " ".join(_last_line(text).split())
    return f"{said[:_SHOWN_CHARS]}…" if len(said) > _SHOWN_CHARS else said


def _quiet(redactor: Redactor, argv: Sequence[str], environment: Mapping[str, str]) -> Callable[[str], str]:
    """Return what scrubs a command's output, whole texts only: also of the secrets that the command was given."""
    given = {value for name, value in environment.items() if is_secret_name(name)}
    given |= {word for word, plain in zip(argv, redactor.argv(argv), strict=True) if word != plain}
    own = Redactor(given)
    return lambda text: redactor.text(own.text(text))
