"""``hero status`` beside a bot that runs, that does not, and that has never run."""

import asyncio
import json
import math
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.clock import SystemClock
from bot.commands.checks import show_checks
from bot.commands.explain import explain, parse_moment
from bot.commands.init import init
from bot.commands.log import show_log
from bot.commands.sight import look
from bot.commands.status import show_runs, show_status, status_row
from bot.errors import ConfigurationError
from bot.model.audit import AuditEntry
from bot.model.history import VerdictChange
from bot.model.incident import open_incident
from bot.model.record import Decision
from bot.model.run import Instance, Progress, Run, RunState
from bot.model.value import CheckId, JobId, RunId
from bot.model.verdict import Fail, Finding, Pass, Severity, Verdict
from bot.redaction import Redactor
from bot.settings import Settings, load_settings
from bot.store.store import Store
from bot.tenure import NAME, Tenure
from tests.fakes.clock import START, FakeClock
from tests.fakes.decisions import a_request

RUN = RunId("my-run")
CADENCE = timedelta(minutes=15)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    init(tmp_path, is_forced=False)
    (tmp_path / "runs" / "example.toml.sample").rename(tmp_path / "runs" / "my-run.toml")
    return tmp_path


@pytest.fixture
def settings(home: Path) -> Settings:
    return load_settings(home / "hero.toml")


@pytest.fixture
async def store(settings: Settings, fake_clock: FakeClock) -> AsyncIterator[Store]:
    store = await Store.open(settings.bot.database, fake_clock, Redactor())
    yield store
    await store.close()


async def remember(store: Store, *, loss: float = 2.5) -> None:
    progress = Progress(step=400, step_at=START, loss=loss, tokens_per_second=1e6, checkpoint_step=300, steps_per_s=2.0)
    finding = Finding(
        check=CheckId("numerics.nonfinite"), severity=Severity.CRITICAL, summary="loss is NaN", advice="stop it"
    )
    async with store.transaction() as tx:
        decision = Decision(
            run=Run(run_id=RUN, state=RunState.RUNNING, progress=progress, last_checked_at=START),
            instances=(
                Instance(run_id=RUN, number=0, job_id=JobId("/local/my-run-0"), submitted_at=None, launched_at=START),
            ),
            incidents=(open_incident(1, RUN, finding, START),),
            requests=(a_request(1, RUN),),
            audit=(AuditEntry(at=START, run_id=RUN, who="hero", what="request_asked", detail="R1"),),
        )
        await tx.apply(decision, RUN, START)


async def row(settings: Settings, clock: FakeClock) -> dict[str, Any]:
    sight = await look(settings, clock)
    (seen,) = sight.runs
    return status_row(seen, sight, CADENCE)


async def test_a_status_holds_what_is_remembered_and_how_old_it_is(
    settings: Settings, store: Store, fake_clock: FakeClock
) -> None:
    await remember(store)
    await Tenure(store, fake_clock).begin()
    fake_clock.advance(timedelta(seconds=20))

    status = await row(settings, fake_clock)

    assert status["state"] == "running"
    assert (status["step"], status["final_step"], status["last_checkpoint"]) == (400, 10_000, 300)
    assert (status["loss"], status["throughput"]) == (2.5, 1e6)
    assert status["eta"] == (START + timedelta(seconds=4800)).isoformat()
    assert status["monitor"] == {
        "state": "ok", "bot": "running", "checked_at": START.isoformat(), "age_s": 20, "unknown": [],
    }  # fmt: skip
    assert [incident["check"] for incident in status["incidents"]] == ["numerics.nonfinite"]
    assert [request["name"] for request in status["requests"]] == ["R1"]


async def test_a_bot_that_looks_too_seldom_is_stale_and_one_that_is_dead_is_not_running(
    settings: Settings, store: Store, fake_clock: FakeClock
) -> None:
    await remember(store)
    await store.acquire_lease(NAME, "elsewhere|1|1|x", timedelta(hours=1))
    fake_clock.advance(2 * CADENCE + timedelta(seconds=1))
    stale = await row(settings, fake_clock)
    fake_clock.advance(timedelta(hours=1))
    dead = await row(settings, fake_clock)

    assert stale["monitor"]["state"] == "stale"
    assert dead["monitor"]["state"] == "not_running"
    assert dead["state"] == "running", "what is remembered of the run is not changed by that"


async def test_a_contract_that_cannot_be_read_blocks_its_run_in_the_status(
    home: Path, settings: Settings, store: Store, fake_clock: FakeClock
) -> None:
    await remember(store)
    (home / "runs" / "my-run.toml").write_text("dri = 7\n")

    status = await row(settings, fake_clock)

    assert (status["state"], status["monitor"]["state"]) == ("blocked", "blocked")
    assert any("command: is missing" in problem for problem in status["problems"])


def test_a_status_whose_loss_is_nan_is_json_all_the_same(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = load_settings(home / "hero.toml")

    async def prepare() -> None:
        store = await Store.open(settings.bot.database, SystemClock(), Redactor())
        await remember(store, loss=math.nan)
        await store.close()

    asyncio.run(prepare())
    show_status(home / "hero.toml", "my-run", as_json=True)
    status = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    show_status(home / "hero.toml", None, as_json=False)
    show_runs(home / "hero.toml", as_json=False)
    show_log(home / "hero.toml", "my-run", limit=10, as_json=False)
    text = capsys.readouterr().out

    assert status[0]["loss"] == "NaN"
    assert "my-run: running" in text
    assert "no bot is at work" in text
    assert "R1 waits for ann" in text
    assert "request_asked: R1" in text


def test_a_status_makes_no_database_and_says_that_the_bot_has_never_run(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show_status(home / "hero.toml", None, as_json=False)

    assert "has never run here" in capsys.readouterr().out
    assert not (home / "hero.db").exists()


def test_a_run_that_there_is_not_is_an_error_that_names_those_there_are(home: Path) -> None:
    message = r"your-run: no such run.*runs: my-run"
    with pytest.raises(ConfigurationError, match=message):
        show_status(home / "hero.toml", "your-run", as_json=True)
    with pytest.raises(ConfigurationError, match=message):
        show_log(home / "hero.toml", "your-run", limit=1, as_json=True)


async def test_a_database_of_another_hero_is_left_as_it_is(home: Path, settings: Settings) -> None:
    """A status of a newer Hero must not upgrade the file under an older bot that is at work."""
    file = home / "hero.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        connection.commit()
    before = file.read_bytes()
    with pytest.raises(ConfigurationError, match="older Hero; `hero run` upgrades it"):
        await look(settings, SystemClock())
    assert file.read_bytes() == before

    with closing(sqlite3.connect(file)) as connection:
        connection.execute("INSERT INTO alembic_version VALUES ('9999')")
        connection.commit()
    with pytest.raises(ConfigurationError, match="newer Hero"):
        await look(settings, SystemClock())


async def test_any_past_minute_can_be_explained(
    home: Path, settings: Settings, store: Store, fake_clock: FakeClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verdict that held at a minute is the last change until then, however much came after."""
    check = CheckId("progress.stalled")
    finding = Finding(check=check, severity=Severity.WARNING, summary="no new step for 40 min", advice="look")
    moments = (START, START + timedelta(hours=1))
    verdicts: tuple[Verdict, ...] = (Fail(finding=finding), Pass())
    for at, verdict in zip(moments, verdicts, strict=True):
        change = VerdictChange(run_id=RUN, check=check, at=at, verdict=verdict, seen=f"seen at {at:%H:%M}")
        async with store.transaction() as tx:
            await tx.apply(Decision(run=Run(run_id=RUN), verdicts=(change,)), RUN, at)

    said: dict[str, list[dict[str, Any]]] = {}
    for asked in ("2020-01-01T00:00", (START + timedelta(minutes=59)).isoformat(), "2099-01-01T00:00"):
        await asyncio.to_thread(explain, home / "hero.toml", RUN, check=None, at=asked, as_json=True)
        said[asked] = json.loads(capsys.readouterr().out)

    assert [[row["verdict"] for row in rows] for rows in said.values()] == [[], ["fail"], ["pass"]]
    assert [rows[0]["seen"] for rows in said.values() if rows] == [f"seen at {at:%H:%M}" for at in moments]


@pytest.mark.parametrize("text", ["yesterday", "25:00", ""])
def test_a_time_that_is_none_is_a_usage_error(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is no time; write it as"):
        parse_moment(text, "UTC", START)


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("2026-11-29T22:21", "2026-11-29T22:21:59.999999+00:00"),
        ("2026-11-29 22:21Z", "2026-11-29T22:21:59.999999+00:00"),
        ("2026-11-29T22:21+01:00", "2026-11-29T21:21:59.999999+00:00"),
        ("2026-11-29T22:21:30", "2026-11-29T22:21:30+00:00"),
        ("22:21", "2026-11-28T22:21:59.999999+00:00"),
        ("02:21", "2026-11-29T02:21:59.999999+00:00"),
    ],
)
def test_a_minute_is_meant_to_its_end_and_without_a_date_it_is_the_last_one(text: str, until: str) -> None:
    now = datetime(2026, 11, 29, 3, 0, tzinfo=UTC)

    assert parse_moment(text, "UTC", now).isoformat() == until


def test_a_check_that_there_is_not_is_a_usage_error_with_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigurationError, match=r"There is no check progress\.staled; did you mean"):
        show_checks("progress.staled", as_json=False)
    with pytest.raises(ConfigurationError, match="There is no check nosuch; `checks` lists those there are"):
        explain(None, RUN, check="nosuch", at=None, as_json=False)

    show_checks("progress.stalled", as_json=True)

    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == ["progress.stalled"]
