"""``hero catchup``, ``hero audit`` and ``hero plot`` beside a bot that runs or does not."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bot.clock import SystemClock
from bot.commands.init import init
from bot.commands.look_back import draw_plot, show_audit, show_catchup
from bot.errors import ConfigurationError
from bot.model.audit import AuditEntry
from bot.model.curve import CURVE, Curve
from bot.model.incident import open_incident
from bot.model.record import Decision
from bot.model.run import Run, RunState
from bot.model.snapshot import MetricRow
from bot.model.value import CheckId, RunId
from bot.model.verdict import Finding, Severity
from bot.redaction import Redactor
from bot.settings import load_settings
from bot.store.store import Store

RUN = RunId("my-run")
LINK = "https://acme.slack.com/archives/C1/p100000200?thread_ts=100.000100&cid=C1"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    init(tmp_path, is_forced=False)
    (tmp_path / "runs" / "example.toml.sample").rename(tmp_path / "runs" / "my-run.toml")
    return tmp_path


def remember(home: Path, does: Callable[[Store], Awaitable[None]]) -> None:
    """Let something be on record as a bot would leave it."""

    async def prepare() -> None:
        store = await Store.open(load_settings(home / "hero.toml").bot.database, SystemClock(), Redactor())
        try:
            await does(store)
        finally:
            await store.close()

    asyncio.run(prepare())


async def failed(store: Store) -> None:
    at = SystemClock().now()
    finding = Finding(check=CheckId("job.ended"), severity=Severity.CRITICAL, summary="it died", advice="look")
    refused = AuditEntry(
        at=at, run_id=RUN, who="slack:U0EVE", what="decision_refused", detail="approve R1", why="not_the_dri", link=LINK
    )
    asked = AuditEntry(at=at, run_id=RUN, who="hero", what="request_asked", detail="R1 to ada")
    rows = [MetricRow(step=step, values={"loss": 3 - step / 100}) for step in range(100)]
    async with store.transaction() as tx:
        decision = Decision(
            run=Run(run_id=RUN, state=RunState.FAILED, last_checked_at=at),
            incidents=(open_incident(1, RUN, finding, at),),
            audit=(refused, asked),
            memories={CURVE: Curve().followed_by(rows).model_dump_json()},
        )
        await tx.apply(decision, RUN, at)


def test_the_audit_shows_attempts_alone_with_who_why_and_where(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remember(home, failed)

    show_audit(home / "hero.toml", None, limit=10, as_json=True)
    (entry,) = json.loads(capsys.readouterr().out)
    show_audit(home / "hero.toml", "my-run", limit=10, as_json=False)
    said = capsys.readouterr().out

    assert (entry["run_id"], entry["who"], entry["why"], entry["link"]) == (RUN, "slack:U0EVE", "not_the_dri", LINK)
    assert f"my-run  slack:U0EVE  decision_refused (not_the_dri); approve R1; {LINK}" in said


def test_an_audit_without_attempts_and_one_of_a_run_that_there_is_not(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show_audit(home / "hero.toml", None, limit=10, as_json=False)

    assert "nobody has tried to decide anything yet" in capsys.readouterr().out
    with pytest.raises(ConfigurationError, match="no such run"):
        show_audit(home / "hero.toml", "mine", limit=10, as_json=False)


def test_a_catchup_is_remembered_so_that_the_next_one_begins_there(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remember(home, failed)

    show_catchup(home / "hero.toml", None, since=None, as_json=True)
    first = json.loads(capsys.readouterr().out)
    show_catchup(home / "hero.toml", None, since=None, as_json=False)
    again = capsys.readouterr().out
    show_catchup(home / "hero.toml", "my-run", since="8h", as_json=False)
    chosen = capsys.readouterr().out

    assert any("I1 job.ended (critical, new): it died" in line for line in first["lines"])
    assert "(1 d)" in first["said"]
    assert "it died" in again, "a second look within minutes is the same look"
    assert "(8 h)" in chosen


def test_a_catchup_with_no_length_of_time_is_refused(home: Path) -> None:
    with pytest.raises(ConfigurationError, match="--since 'soon' is no duration"):
        show_catchup(home / "hero.toml", None, since="soon", as_json=False)


def test_a_plot_is_a_picture_in_a_file_and_a_line_of_text_without_one(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remember(home, failed)

    draw_plot(home / "hero.toml", "my-run", tmp_path / "my-run.png")
    draw_plot(home / "hero.toml", "my-run", None)

    assert (tmp_path / "my-run.png").read_bytes().startswith(b"\x89PNG")
    said = capsys.readouterr().out
    assert "3 → 2.01 (steps 0 to 99)" in said
    assert "tokens/s: nothing is kept yet" in said


def test_a_plot_of_a_run_without_figures_and_into_a_place_that_is_none_say_so(home: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no figures are kept of it yet"):
        draw_plot(home / "hero.toml", "my-run", None)
    remember(home, failed)
    with pytest.raises(ConfigurationError, match="cannot be written"):
        draw_plot(home / "hero.toml", "my-run", tmp_path / "nowhere" / "x.png")
