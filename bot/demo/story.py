"""``hero demo``: the whole job in a minute, on a real process, without any account.

A small trainer is launched, loses its machine, and Hero does what it does for a hero run: it notices, explains, asks
the DRI and waits; on the yes it relaunches from the newest complete checkpoint and sees the loss go on. Everything in
it is the real Hero; only the trainer is small and the trouble is ordered.
"""

import asyncio
import json
import math
import signal
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource
from rich.console import Console
from rich.panel import Panel
from rich.status import Status
from rich.table import Table

from bot.actions.local import LocalLauncher
from bot.actions.relaunch import plan_relaunch, shape_of
from bot.app import run_bot
from bot.building import Parts
from bot.channels.console import ConsoleChannel
from bot.clock import SystemClock
from bot.contracts import BadContract
from bot.demo.keyboard import Keyboard
from bot.errors import HeroError
from bot.model.action import ActionState, Done
from bot.model.contract import Contract
from bot.model.delivery import ChannelName
from bot.model.plan import Grant, RequestState
from bot.model.planned import NoPlan, RelaunchPlan
from bot.model.reading import Known
from bot.model.record import Decision, Record
from bot.model.run import Instance, RunState
from bot.model.snapshot import LogTail, Metrics, Snapshot
from bot.model.value import JobId, PersonName, RunId
from bot.redaction import Redactor
from bot.settings import BotSettings, PersonSettings, Settings

type Mode = Literal["ask", "auto", "deny"]

RUN = RunId("demo")
YOU = PersonName("you")
STEPS = 160
CHECKPOINT_EVERY = 20
HARM_AT = 75
_STEP_S = 0.06
_LIMIT_S = 85.0
_LAST_WORDS = "Received preemption notice: this spot machine will be reclaimed now"
_TOLERANCE = 0.002
"""Manage-hero-run, "Resume loss mismatch": during catch-up the loss may differ by so much from the earlier lineage."""
_LAST_ANSWER = timedelta(seconds=5)
"""How long after the end of the input an answer that was typed before it may still be on its way."""
INTERRUPTED = 130
"""What a shell reports for Ctrl-C."""


class DemoSettings(Settings):
    """Settings that no environment variable reaches: the demo speaks to nobody but the terminal."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is pydantic's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - left out on purpose
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take what is given here and nothing else."""
        return (init_settings,)


def run_demo(mode: Mode, directory: Path | None) -> int:
    """Play the demo.

    Args:
        mode: ``ask`` waits for what the user types; ``auto`` answers ``approve`` as the DRI, ``deny`` answers ``deny``.
        directory: where the files go and stay; None for a temporary one that is removed.

    Returns:
        0 when the story ended as it should; 1 when it did not; 130 when it was interrupted.
    """
    console = Console(highlight=False)
    with ExitStack() as stack:
        if directory is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hero-demo-")))
        directory = directory.resolve()
        directory.mkdir(parents=True, exist_ok=True)
        if (directory / "hero.db").exists():
            console.print(f"{directory} holds an earlier demo; name another directory.")
            return 1
        log = stack.enter_context((directory / "hero.log").open("w", encoding="utf-8"))
        keyboard = stack.enter_context(Keyboard()) if mode == "ask" else None
        story = Story(mode=mode, directory=directory, console=console, keyboard=keyboard)
        story.write_contract()
        stack.callback(story.end_jobs)  # before the directory goes: without it nothing would find them again
        asyncio.run(run_bot(story.settings(), stop=story.stop, console=console, log_stream=log, started=story.play))
        return story.conclude()


@dataclass
class Story:
    """What happens, and what came of it."""

    mode: Mode
    directory: Path
    console: Console
    keyboard: Keyboard | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    record: Record | None = None
    """How it ended; None while it has not, and for ever when it was interrupted."""
    launched: tuple[Contract, RelaunchPlan] | None = None

    def settings(self) -> Settings:
        """Hero as it would be configured on one box, with a cadence of a second in place of minutes."""
        return DemoSettings(
            bot=BotSettings(
                database=f"sqlite:///{self.directory / 'hero.db'}",
                runs=self.directory / "runs",
                http="127.0.0.1:0",
                cadence=timedelta(seconds=1),
                poll=timedelta(seconds=0.3),
            ),
            console=True,
            people={YOU: PersonSettings(console=True)},
        )

    def write_contract(self) -> None:
        """Write the run's contract, as its owner would."""
        output = self.directory / "output"
        command = [
            *(sys.executable, "-m", "bot.demo.trainer", "--output", str(output), "--steps", str(STEPS)),
            *("--checkpoint-every", str(CHECKPOINT_EVERY), "--step-seconds", str(_STEP_S)),
            *("--crash-at", str(HARM_AT), "--last-words", _LAST_WORDS),
        ]
        runs = self.directory / "runs"
        runs.mkdir(exist_ok=True)
        (runs / f"{RUN}.toml").write_text(
            f"""\
# What the owner of this run promised at launch.
dri = "{YOU}"
command = {json.dumps(command)}
checkout = {json.dumps(str(Path(__file__).parents[2]))}
output_root = {json.dumps(str(output))}
final_step = {STEPS}
final_step_source = "the trainer's --steps"

[orchestrator]
kind = "local"
directory = {json.dumps(str(self.directory / "jobs"))}

[metrics]
file = {json.dumps(str(output / "metrics.jsonl"))}

[cadence]          # minutes for a real run
check = "1s"
after_submit = "1s"
stabilise = "2s"
""",
            encoding="utf-8",
        )

    async def play(self, parts: Parts) -> None:
        """Launch, wait for the question, answer as the mode says, wait for the end, and stop Hero."""
        contract = parts.contracts.load(RUN)
        assert not isinstance(contract, BadContract), contract  # noqa: S101 - we wrote it ourselves
        self._say_hello()
        try:
            async with asyncio.timeout(_LIMIT_S if self.mode != "ask" else None):
                await self._launch(parts, contract)
                with self.console.status("training; Hero looks every second …") as status:
                    await self._until_asked(parts, status)
                await self._answer(parts)
                await self._until_over(parts)
        except TimeoutError:
            self.console.print(f"The demo did not come to its end within {_LIMIT_S:g} s.", style="bold red")
        self.record = await parts.store.record(RUN)
        await _until_told(parts)
        self.stop.set()

    def _say_hello(self) -> None:
        self.console.print(
            Panel(
                "A small trainer starts on this machine and will lose its machine on the way.\n"
                f"You are its DRI: Hero will ask you before it touches the run. Files: {self.directory}",
                title="hero demo",
                width=min(self.console.width, 100),
            )
        )

    async def _launch(self, parts: Parts, contract: Contract) -> None:
        """Launch the trainer: whoever typed `hero demo` has said yes to that."""
        at = parts.clock.now()
        launcher, redactor = LocalLauncher(parts.clock), Redactor()
        empty = Snapshot(
            run_id=RUN,
            at=at,
            instance=None,
            jobs=Known(value=(), at=at),
            log=Known(value=LogTail(lines=(), is_cut=False), at=at),
            metrics=Known(value=Metrics(rows=()), at=at),
            checkpoints=Known(value=(), at=at),
        )
        plan = plan_relaunch(contract, empty, None, launcher, redactor)
        assert not isinstance(plan, NoPlan), plan  # noqa: S101 - a local launch needs nothing that could be missing
        self.launched = (contract, plan)
        outcome = await launcher.submit(contract, plan, _own_grant(plan, at), fence=_no_fence)
        if not isinstance(outcome, Done):
            raise HeroError(f"the demo's trainer could not be started: {outcome.detail}")
        instance = Instance(
            run_id=RUN,
            number=0,
            job_id=JobId(outcome.detail),
            submitted_at=None,
            launched_at=at,
            command=plan.command,
            shape=shape_of(contract, redactor),
            from_step=0,
        )
        async with parts.store.transaction(parts.tenure.lease) as tx:
            record = await tx.record(RUN)
            await tx.apply(Decision(run=record.run, instances=(instance,)), RUN, at)
        parts.scheduler.check_soon(RUN)

    async def _until_asked(self, parts: Parts, status: Status) -> None:
        """Wait until the question stands where the DRI reads it."""
        while True:
            record = await parts.store.record(RUN)
            if record is not None:
                progress = record.run.progress
                loss = f"{progress.loss:.4f}" if progress.loss is not None else "…"
                status.update(f"{record.run.state}, step ~{progress.step or 0}/{STEPS}, loss {loss}")
                asked = record.open_request
                if asked and record.posted_at(ChannelName.CONSOLE, f"request:{asked.number}"):
                    return
            await parts.clock.sleep(timedelta(seconds=0.2))

    async def _answer(self, parts: Parts) -> None:
        channel = parts.channels[ChannelName.CONSOLE]
        record = await parts.store.record(RUN)
        asked = record.open_request if record else None
        if self.mode == "ask" or asked is None or not isinstance(channel, ConsoleChannel):
            self.console.print("Type approve or deny, then Enter. /hero status and /hero help work too.", style="bold")
            return
        denial = f"deny {asked.name} because this is the other path of the demo"
        line = f"approve {asked.name}" if self.mode == "auto" else denial
        self.console.print(f"> {line}", style="bold")
        channel.type(line)

    async def _until_over(self, parts: Parts) -> None:
        """Wait until the run has completed, its relaunch was denied or has failed, or nobody is there to decide."""
        alone_since: float | None = None
        while True:
            record = await parts.store.record(RUN)
            if record is not None and self._is_over(record):
                return
            is_alone = self.keyboard is not None and self.keyboard.has_ended
            if not is_alone or record is None or record.open_request is None:
                alone_since = None
            elif alone_since is None:
                alone_since = parts.clock.monotonic()
            elif parts.clock.monotonic() - alone_since >= _LAST_ANSWER.total_seconds():
                self.console.print(
                    "The input has ended without an answer, so nothing is relaunched. Run this in a terminal, or with "
                    "--auto or --deny.",
                    style="bold red",
                )
                return
            await parts.clock.sleep(timedelta(seconds=0.2))

    def _is_over(self, record: Record) -> bool:
        if record.run.state is RunState.COMPLETED:
            return True
        ended = {RequestState.DENIED, RequestState.EXPIRED}
        decided = any(r.state in ended for r in record.requests)
        failed = any(a.state is ActionState.FAILED for a in record.actions)
        return record.open_request is None and (decided or failed)

    def end_jobs(self) -> None:
        """End what still trains, whatever the way out: who has said yes to it by `hero demo` is done with it."""
        if self.launched is None:
            return
        # One Ctrl-C too many would leave behind what the first one was to end; this takes seconds at most.
        before = [(number, signal.signal(number, signal.SIG_IGN)) for number in (signal.SIGINT, signal.SIGTERM)]
        try:
            asyncio.run(_end_jobs(self._launches(), *self.launched))
        finally:
            for number, handler in before:
                signal.signal(number, handler)

    def conclude(self) -> int:
        """Say what was seen, and whether the story ended as it should."""
        if self.record is None:
            return INTERRUPTED
        launches = self._launches()
        denied = any(r.state is RequestState.DENIED for r in self.record.requests)
        joined = join_launches(self.directory / "output" / "metrics.jsonl")
        table = Table(title="what happened", show_header=False, title_justify="left")
        for label, value in self._facts(launches, denied=denied, joined=joined):
            table.add_row(label, value)
        self.console.print(table)
        if denied:
            return 0 if len(launches) == 1 else 1
        is_well = self.record.run.state is RunState.COMPLETED and joined is not None and joined.worst <= _TOLERANCE
        return 0 if is_well and len(launches) == 2 else 1  # noqa: PLR2004 - the first launch and the relaunch

    def _launches(self) -> list[str]:
        return sorted(path.name for path in (self.directory / "jobs").glob(f"{RUN}-*") if path.is_dir())

    def _facts(self, launches: list[str], *, denied: bool, joined: "Joined | None") -> list[tuple[str, str]]:
        record = self.record
        assert record is not None  # noqa: S101 - conclude has looked
        facts = [("launches", ", ".join(launches)), ("state", record.run.state)]
        if denied:
            facts.append(("your answer", "deny: nothing was relaunched"))
        if joined is not None:
            steps = f"steps {joined.first} to {joined.last} were trained twice"
            verdict = (
                "the loss goes on as before" if joined.worst <= _TOLERANCE else "the loss does NOT go on as before"
            )
            facts.append(("resume", f"{steps}; largest difference of the loss {joined.worst:.2g}: {verdict}"))
        facts.append(("last step", f"{record.run.progress.step} of {STEPS}"))
        return facts


@dataclass(frozen=True)
class Joined:
    """Two launches, joined by the steps that both logged."""

    first: int
    last: int
    worst: float
    """The largest absolute difference of the loss at one step."""


def join_launches(metrics: Path) -> Joined | None:
    """Compare the losses of steps that were logged twice; None when no step was."""
    if not metrics.exists():
        return None
    once: dict[int, float] = {}
    differences: dict[int, float] = {}
    for line in metrics.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        step, loss = row["step"], row["loss"]
        if step in once:
            differences[step] = abs(loss - once[step]) if math.isfinite(loss) else math.inf
        else:
            once[step] = loss
    if not differences:
        return None
    return Joined(first=min(differences), last=max(differences), worst=max(differences.values()))


async def _no_fence() -> None:
    """The demo's Hero is alone with its database."""


def _own_grant(plan: RelaunchPlan, at: datetime) -> Grant:
    """Return the yes of whoever typed `hero demo`."""
    return Grant(request=0, run_id=RUN, digest=plan.digest, by=YOU, at=at, expires_at=at + timedelta(minutes=1))


async def _end_jobs(launches: list[str], contract: Contract, plan: RelaunchPlan) -> None:
    clock = SystemClock()
    launcher = LocalLauncher(clock)
    for name in launches:
        stop = plan.model_copy(update={"stop": JobId(f"/local/{name}")})
        await launcher.stop(contract, stop, _own_grant(stop, clock.now()))


async def _until_told(parts: Parts) -> None:
    """Wait a moment for the last messages to be shown."""
    for _ in range(50):
        if not (await parts.store.counts())["deliveries_due"]:
            return
        await parts.clock.sleep(timedelta(seconds=0.1))
