"""The owner's run-history commands, as real programs: run after the commit, with each outcome on record."""

import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.dispatcher import Dispatcher
from bot.historian import Historian
from bot.model.chronicle import HistoryWritten, Launched, TrackerSeen
from bot.model.delivery import ChannelName
from bot.model.record import Decision
from bot.model.value import JobId, RunId
from bot.redaction import Redactor
from bot.settings import HistorySettings, load_settings
from bot.store.store import Store
from tests.fakes.clock import FakeClock
from tests.fakes.snapshots import AT, RUN, contract
from tests.unit.handlers.scene import PEOPLE, RULES

SECRET = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz012345"
WRITES = "import sys; open('history.txt', 'a').write('|'.join(sys.argv[1:]) + chr(10)); print('history/runs/x.md')"
LIFE = (
    Launched(instance=0, job_id=JobId("/ann/job-0"), is_by_hero=False, facts=()),
    TrackerSeen(url="https://wandb.ai/a/h/runs/w1", id="w1", name="hero; touch $(pwned) `x` *"),
    Launched(instance=1, job_id=JobId("/ann/job-1"), is_by_hero=True, facts=()),
)


class Desk:
    """A historian over the real store and dispatcher."""

    def __init__(self, store: Store, clock: FakeClock, directory: Path) -> None:
        self.store = store
        self.clock = clock
        self.directory = directory
        contracts: Any = self
        channels: Any = {ChannelName.SLACK: object()}
        self.dispatcher = Dispatcher(
            store=store,
            contracts=contracts,
            launchers={},
            channels=channels,
            people=PEOPLE,
            rules=RULES,
            redactor=Redactor((SECRET,)),
            clock=clock,
            check_soon=lambda _run: None,
            alarm=lambda _error: None,
            lease=lambda: None,
        )

    def load(self, _run_id: RunId) -> Any:
        return contract(checkout="/src/exp7_models_dna")

    def run_ids(self) -> tuple[RunId, ...]:
        return (RUN,)

    def historian(self, new: tuple[str, ...] = (), add: tuple[str, ...] = (), deadline_s: float = 60) -> Historian:
        contracts: Any = self
        settings = HistorySettings(new=new, add=add, directory=self.directory, deadline=timedelta(seconds=deadline_s))
        return Historian(
            settings,
            store=self.store,
            contracts=contracts,
            dispatcher=self.dispatcher,
            redactor=Redactor((SECRET,)),
            clock=self.clock,
            alarm=lambda error: pytest.fail(f"{error}"),
        )

    async def lives(self, *happened: Any) -> None:
        async with self.store.transaction() as tx:
            await tx.apply(Decision(happened=happened), RUN, self.clock.now())

    async def outcomes(self) -> list[tuple[str, int, bool, str]]:
        found = [each.happening for each in await self.store.chronicle(RUN)]
        return [(h.command, h.about, h.is_done, h.detail) for h in found if isinstance(h, HistoryWritten)]

    async def told(self) -> list[str]:
        return [each.update.headline for each in await self.store.due_deliveries(ChannelName.SLACK)]

    def written(self) -> list[str]:
        file = self.directory / "history.txt"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    clock = FakeClock(AT)
    store = await Store.open(f"sqlite:///{tmp_path / 'hero.db'}", clock, Redactor((SECRET,)))
    yield Desk(store, clock, tmp_path)
    await store.close()


def program(script: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", script, *arguments)


NEW = program(WRITES, "new", "--url", "{wandb_url}", "--name", "{wandb_name}", "--exp", "{experiment}", "{job_id}")
ADD = program(WRITES, "add", "{job_id}", "{run_id}-{instance}")


async def test_the_commands_are_run_once_each_without_a_shell_and_their_outcome_is_on_record(desk: Desk) -> None:
    await desk.lives(*LIFE)
    historian = desk.historian(NEW, ADD)

    first, second = await historian.catch_up(), await historian.catch_up()

    assert (first, second) == (2, 0)
    assert desk.written() == [
        "new|--url|https://wandb.ai/a/h/runs/w1|--name|hero; touch $(pwned) `x` *|--exp|exp7_models_dna|/ann/job-0",
        f"add|/ann/job-1|{RUN}-1",
    ]
    assert await desk.outcomes() == [("new", 2, True, "history/runs/x.md"), ("add", 3, True, "history/runs/x.md")]
    assert await desk.told() == []


async def test_what_was_due_when_hero_died_is_run_after_the_restart(desk: Desk) -> None:
    await desk.lives(*LIFE)
    await desk.historian(NEW).catch_up()

    assert await desk.historian(NEW, ADD).catch_up() == 1
    assert [line.partition("|")[0] for line in desk.written()] == ["new", "add"]


async def test_nothing_is_run_where_nothing_is_set_up(desk: Desk) -> None:
    await desk.lives(*LIFE)

    assert await desk.historian().catch_up() == 0


@pytest.mark.parametrize(
    ("command", "detail"),
    [
        (
            program(f"import sys; print('wrong: {SECRET}', file=sys.stderr); sys.exit(3)"),
            "exit code 3: wrong: [redacted]",
        ),
        (("/no/such/program",), "could not be started: "),
        (program("import time; time.sleep(600)"), "was ended after 0.5 s"),
    ],
)
async def test_a_command_that_fails_is_tried_three_times_and_then_told_and_holds_nothing_up(
    desk: Desk, command: tuple[str, ...], detail: str
) -> None:
    await desk.lives(*LIFE)
    historian = desk.historian(command, ADD, deadline_s=0.5 if "sleep" in command[-1] else 60)

    for _ in range(5):
        await historian.catch_up()
        desk.clock.advance(timedelta(minutes=20))

    outcomes = await desk.outcomes()
    assert [(name, about, done) for name, about, done, _ in outcomes] == [("new", 2, False)] * 3
    assert all(said.startswith(detail) for *_, said in outcomes)
    assert await desk.told() == [f"{RUN}: the [history] command `new` failed, and is not tried again"]
    assert SECRET not in str([each.payload for each in await desk.store.chronicle(RUN)])


async def test_a_name_that_looks_like_an_option_is_not_handed_on(desk: Desk) -> None:
    await desk.lives(LIFE[0], TrackerSeen(url="https://wandb.ai/a/h/runs/w1", id="w1", name="--delete-everything"))

    await desk.historian(NEW).catch_up()

    assert desk.written() == []
    ((_, _, is_done, said),) = await desk.outcomes()
    assert not is_done
    assert "would be taken for an option" in said


async def test_heros_own_secrets_are_not_in_the_environment_of_the_command(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERO_SLACK__BOT_TOKEN", SECRET)
    await desk.lives(*LIFE)

    await desk.historian(program("import os; print(sorted(n for n in os.environ if n.startswith('HERO_')))")).catch_up()

    assert [said for *_, said in await desk.outcomes()] == ["[]"]


def test_a_placeholder_that_there_is_not_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"\{wandb\} is nothing that is filled in; there are wandb_url, wandb_name"):
        HistorySettings(new=("history", "{wandb}"))


def test_the_directory_is_relative_to_the_configuration_file(tmp_path: Path) -> None:
    file = tmp_path / "hero.toml"
    file.write_text('[history]\nnew = ["history", "{job_id}"]\ndirectory = "notes"\n')

    settings = load_settings(file)

    assert settings.history.directory == tmp_path / "notes"
    assert settings.history.new == ("history", "{job_id}")
