"""``hero doctor`` against every service: what is well is said to be, and what is not comes with its fix."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from bot.channels.github.records import Delivered, Records
from bot.clock import SystemClock
from bot.commands.doctor import diagnose, settings_in_use, show_diagnosis
from bot.commands.exits import Exit
from bot.commands.own_probes import probe_checkpoints, probe_database, probe_heartbeat, probe_http
from bot.commands.probing import Probe, ask_all
from bot.commands.service_probes import judge_age, probe_finelog, probe_iris
from bot.model.value import PersonName
from bot.redaction import Redactor
from bot.settings import (
    BotSettings,
    FinelogSettings,
    GitHubSettings,
    HeartbeatSettings,
    IrisSettings,
    PersonSettings,
    Settings,
    SlackSettings,
    WandbSettings,
)
from bot.store.store import Store
from bot.tenure import NAME
from tests.fakes.clock import START
from tests.fakes.finelog import finelog_server
from tests.fakes.github import FakeGitHub
from tests.fakes.iris_cluster import IrisCluster, iris_program
from tests.fakes.slack import FakeSlack
from tests.fakes.snapshots import contract

CLOCK = SystemClock()


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as fake:
        fake.add_channel("C1", "runs")
        fake.add_user("U1", "Ada")
        yield fake
        assert fake.mistakes == []


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub() as fake:
        fake.add_user("ada", 7, permission="write")
        yield fake


@pytest.fixture
def settings(tmp_path: Path, slack: FakeSlack, github: FakeGitHub) -> Settings:
    """Slack and GitHub, and one local run whose DRI is Ada."""
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "my-run.toml").write_text(
        'dri = "ada"\ncommand = "python train.py"\noutput_root = "out"\n'
        '[orchestrator]\nkind = "local"\ndirectory = "jobs"\n'
    )
    return Settings(
        bot=BotSettings(database=f"sqlite:///{tmp_path}/hero.db", runs=runs, http="127.0.0.1:0"),
        slack=SlackSettings(
            bot_token=SecretStr(slack.bot_token),
            app_token=SecretStr(slack.app_token),
            channel="C1",
            base_url=slack.base_url,
            deadline=timedelta(seconds=5),
        ),
        github=GitHubSettings(
            token=SecretStr(github.token),
            repository=github.repository,
            base_url=github.url,
            deadline=timedelta(seconds=5),
        ),
        people={PersonName("ada"): PersonSettings(slack="U1", github="ada")},
    )


def by_name(probes: tuple[Probe, ...]) -> dict[str, Probe]:
    found = {probe.connection: probe for probe in probes}
    assert len(found) == len(probes), "each connection has one line"
    return found


async def test_all_that_is_well_is_said_to_be(settings: Settings) -> None:
    probes = by_name(await diagnose(settings, CLOCK))

    assert [probe for probe in probes.values() if not probe.ok] == []
    assert set(probes) >= {
        *("configuration", "database", "contracts", "ada on slack", "ada on github"),
        *("slack token", "slack scopes", "slack app token", "slack channel"),
        *("github token", "github repository", "github issues", "checkpoints my-run", "iris", "finelog", "heartbeat"),
    }


async def test_where_finished_runs_are_sealed_is_said(settings: Settings) -> None:
    elsewhere = settings.github.model_copy(update={"source_repository": "hero-org/nowhere"})

    here = by_name(await diagnose(settings, CLOCK))["github seal"]
    missing = by_name(await diagnose(settings.model_copy(update={"github": elsewhere}), CLOCK))["github seal"]

    assert here.ok
    assert f"a tag in {settings.github.repository} ([github] repository)" in here.detail
    assert "contents: write" in here.detail
    assert not missing.ok
    assert "hero-org/nowhere cannot be read" in missing.detail
    assert "source_repository" in missing.fix


async def test_how_comments_arrive_and_whether_the_webhook_ever_delivered_is_said(settings: Settings) -> None:
    hooked = settings.github.model_copy(update={"webhook_secret": SecretStr("a secret that is long enough")})

    async def seen(among: Settings) -> Probe:
        return by_name(await diagnose(among, CLOCK))["github comments"]

    assert (await seen(settings))[1:] == (True, "are read every 1 min; there is no webhook", "")
    settings = settings.model_copy(update={"github": hooked})
    never = await seen(settings)
    assert "no delivery of the webhook was seen yet" in never.detail
    assert "https://YOUR-HOST/github/webhook" in never.fix

    store = await Store.open(settings.bot.database, CLOCK, Redactor())
    records = Records(store)
    delivered = Delivered(at=START, event="issue_comment", count=7)
    await records.save_delivered(delivered)
    well = await seen(settings)
    assert well.detail.startswith("7 deliveries of the webhook were seen, the last at 2026-11-29 03:00 UTC; they are")
    await records.save_delivered(delivered.model_copy(update={"missed_at": START + timedelta(hours=1)}))
    assert "Recent Deliveries" in (await seen(settings)).fix
    await store.close()


async def test_each_thing_that_is_wrong_comes_with_its_fix(
    settings: Settings, slack: FakeSlack, github: FakeGitHub, tmp_path: Path
) -> None:
    slack.workspace.channels["C1"].is_member = False
    slack.add_user("U1", "Ada", is_restricted=True)
    github.add_user("ada", 7, permission="read")
    (tmp_path / "runs" / "other.toml").write_text('dri = "bob"\n')
    (tmp_path / "runs" / "third.toml").write_text("dri = \n")
    iris = IrisSettings(controller_url="http://127.0.0.1:1", cli="/nowhere/iris", deadline=timedelta(seconds=5))

    probes = by_name(await diagnose(settings.model_copy(update={"iris": iris}), CLOCK))

    bad = {name: probe for name, probe in probes.items() if not probe.ok}
    assert set(bad) == {
        *("ada on slack", "ada on github", "slack channel", "iris controller", "iris client", "finelog"),
        *("contract other", "contract third"),
    }
    assert "/invite @hero" in bad["slack channel"].fix
    assert "a guest" in bad["ada on slack"].detail
    assert "give ada write access" in bad["ada on github"].fix
    assert "controller_url" in bad["iris controller"].fix
    assert "command: is missing" in bad["contract other"].detail
    assert all(probe.fix for probe in bad.values())


async def test_what_would_fail_or_leak_at_night_is_seen_in_the_contract_at_noon(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "toy.toml").write_text(
        'dri = "ada"\ncommand = "python train.py"\noutput_root = "out"\ncheckout = "sorce"\n'
        'environment = { HF_TOKEN = "hunter2", SEED = "7", REPO = "https://ada:hunter2@host/repo", API_KEY = "" }\n'
        '[orchestrator]\nkind = "local"\ndirectory = "jobs"\n'
    )
    settings = Settings(
        bot=BotSettings(database=f"sqlite:///{tmp_path}/hero.db", runs=runs),
        wandb=WandbSettings(entity="team"),
        people={PersonName("ada"): PersonSettings(console=True)},
    )

    probes = by_name(await diagnose(settings, CLOCK))

    assert [name for name, probe in probes.items() if not probe.ok] == ["checkout toy"]
    assert f"{tmp_path}/sorce is no directory" in probes["checkout toy"].detail
    assert f"relative to {tmp_path}" in probes["checkout toy"].fix
    assert probes["environment toy"].detail.endswith(": HF_TOKEN, REPO")
    assert "Hero's own environment" in probes["environment toy"].fix
    assert "api_key_file" in probes["wandb"].fix
    assert "hunter2" not in repr(probes)


def test_settings_in_use_are_shown_as_they_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "hero.toml").write_text('[bot]\ncadence = "10s"\nstatus_every = 5400\n')

    show_diagnosis(tmp_path / "hero.toml", as_json=False)

    said = capsys.readouterr().out
    assert "  bot.cadence = 10s\n" in said
    assert "  bot.status_every = 1h30m\n" in said


async def test_the_database_is_probed_in_place_and_never_made_or_upgraded(tmp_path: Path) -> None:
    settings = Settings(bot=BotSettings(database=f"sqlite:///{tmp_path}/hero.db"))
    (before,) = await probe_database(settings, CLOCK)
    made = (tmp_path / "hero.db").exists()
    store = await Store.open(settings.bot.database, CLOCK, Redactor())
    database, backup = await probe_database(settings, CLOCK)
    await store.close()
    nowhere = Settings(bot=BotSettings(database=f"sqlite:///{tmp_path}/no/hero.db"))
    (missing,) = await probe_database(nowhere, CLOCK)

    assert (before.ok, made) == (True, False)
    assert (database.ok, backup.ok) == (True, True)
    assert (missing.ok, missing.fix) == (False, "create it, or set [bot] database")


async def test_an_address_that_another_program_has_is_told_unless_a_hero_runs_here(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        own = settings.bot.model_copy(update={"http": address})
        taken = settings.model_copy(update={"bot": own})
        (alone,) = await probe_http(taken, CLOCK)
        store = await Store.open(settings.bot.database, CLOCK, Redactor())
        await store.acquire_lease(NAME, "elsewhere|1|x|y", timedelta(minutes=5))
        await store.close()
        (beside,) = await probe_http(taken, CLOCK)
    (free,) = await probe_http(taken, CLOCK)

    assert (alone.ok, alone.fix) == (False, "stop what listens there, or set [bot] http to another HOST:PORT")
    assert f"{address} cannot be had: " in alone.detail
    assert (beside.ok, beside.detail) == (True, f"{address} is taken, and Hero runs")
    assert (free.ok, free.detail) == (True, f"{address} is free")


async def test_a_root_that_may_not_be_read_is_told_from_one_that_is_empty(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("no directory")
    empty, blocked = (
        contract(checkout=str(tmp_path), output_root=name, checkpoint_roots=(name,)) for name in ("empty", "file/below")
    )

    fine, bad = await probe_checkpoints((empty, blocked), CLOCK)

    assert fine.ok
    assert "none is complete yet" in fine.detail
    assert not bad.ok


@pytest.mark.parametrize(("status", "ok"), [(200, True), (404, False)])
async def test_the_heartbeats_address_is_asked(status: int, ok: bool) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(status)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        (probe,) = await probe_heartbeat(HeartbeatSettings(url="https://beat.example/x"), client)

    assert asked == ["https://beat.example/x"]
    assert probe.ok is ok
    assert str(status) in probe.detail


async def test_one_answer_that_never_comes_does_not_keep_the_others_waiting() -> None:
    async def well() -> tuple[Probe, ...]:
        return (Probe("well", ok=True, detail=""),)

    async def hangs() -> tuple[Probe, ...]:
        await asyncio.Event().wait()
        return ()

    probes = await ask_all({"hangs": hangs, "well": well}, timedelta(milliseconds=50))

    assert [(probe.connection, probe.ok) for probe in probes] == [("hangs", False), ("well", True)]
    assert "no answer in" in probes[0].detail


async def test_a_real_controller_answers_and_the_real_client_tells_its_age(iris_cluster: IrisCluster) -> None:
    settings = IrisSettings(controller_url=iris_cluster.url, cli=str(iris_program()))

    controller, client = await probe_iris(settings, (), CLOCK)

    assert (controller.connection, controller.ok) == ("iris controller", True)
    assert "days old" in client.detail


async def test_a_real_finelog_says_which_tables_it_has_and_what_is_missing_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with finelog_server(tmp_path) as running:
        settings = FinelogSettings(url=running.url, deadline=timedelta(seconds=20))
        (well,) = await probe_finelog(settings, (), CLOCK)
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        (undecoded,) = await probe_finelog(settings, (), CLOCK)

    assert well.ok, well
    assert f"{running.url} holds training metrics in levanter.metrics" in well.detail
    assert not undecoded.ok
    assert undecoded.fix == "pip install hero-bot[finelog]"


@pytest.mark.parametrize(
    ("status", "answer", "seen", "fix"),
    [
        (200, {"namespaces": [{"namespace": "log"}]}, "there are: log", "needs a newer Hero"),
        (200, {"jobs": []}, "this is no Finelog that Hero knows", "correct [finelog] url"),
        (401, {}, "a login stands before it", "[finelog] url or token"),
        (404, {}, "there is no Finelog at this address", "correct [finelog] url"),
        (503, {}, "HTTP 503", "see that Finelog runs"),
    ],
)
async def test_a_finelog_that_is_none_or_strange_comes_with_its_fix(
    status: int, answer: dict[str, object], seen: str, fix: str
) -> None:
    async def say(_: web.Request) -> web.Response:
        return web.json_response(answer, status=status)

    app = web.Application()
    app.router.add_post("/finelog.stats.StatsService/ListNamespaces", say)
    async with TestServer(app) as server:
        (found,) = await probe_finelog(FinelogSettings(url=str(server.make_url("/"))), (), CLOCK)

    assert not found.ok
    assert seen in found.detail
    assert fix in found.fix


async def test_an_iris_run_without_an_address_of_finelog_is_a_note_and_no_fault() -> None:
    run = contract()

    (noted,) = await probe_finelog(FinelogSettings(), (run,), CLOCK)

    assert noted.ok
    assert run.run_id in noted.detail
    assert "[finelog] url" in noted.fix


@pytest.mark.parametrize(("days", "ok", "warns"), [(9, True, False), (10, True, True), (14, False, True)])
def test_a_client_that_may_soon_not_submit_is_told_of_in_time(days: int, ok: bool, warns: bool) -> None:
    """The controller refuses submissions of a client that is older than 14 days."""
    probe = judge_age("iris", START, START + timedelta(days=days), timedelta(days=10))

    assert (probe.ok, bool(probe.fix)) == (ok, warns)


def test_a_configuration_that_cannot_be_used_is_the_doctors_first_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "hero.toml"
    file.write_text('[slack]\nbot_token = "xoxb-1-secret"\n')

    code = show_diagnosis(file, as_json=True)

    out = capsys.readouterr().out
    assert code is Exit.USAGE
    assert "HERO_SLACK__BOT_TOKEN" in out
    assert "xoxb-1-secret" not in out


def test_settings_are_shown_without_their_secrets(settings: Settings) -> None:
    shown = {key: str(value) for key, value in settings_in_use(settings)}

    assert shown["slack.channel"] == "C1"
    assert shown["people.ada.slack"] == "U1"
    assert not any(secret in str(shown) for secret in settings.secrets)
