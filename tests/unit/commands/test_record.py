"""``hero log`` with the record, and the state file in and out, over a real database beside a bot."""

import asyncio
import json
import shlex
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.clock import SystemClock
from bot.commands.exits import Exit
from bot.commands.init import init
from bot.commands.record import show_record, verify_record
from bot.commands.state import export_state, import_state
from bot.errors import ConfigurationError
from bot.model.chronicle import Entry, Happening, Launched, StateImported, Written, head_of, written_under
from bot.model.delivery import ChannelName, Posted
from bot.model.record import Decision
from bot.model.run import Instance, Run, RunState
from bot.model.value import JobId, RunId
from bot.redaction import Redactor
from bot.render.record import record_markdown
from bot.settings import load_settings
from bot.store.store import Store
from tests.fakes.chronicles import LIFE
from tests.fakes.clock import START

RUN = RunId("my-run")
JOB = JobId("/ann/hero-coord")
SECRET = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz012345"
CONTRACT = f"""
dri = "alice"
command = "iris job run --tpu v5p-8 --job-name hero-coord -- python train.py --hub-token {SECRET}"
output_root = "gs://bucket/users/ann/my-run"
final_step = 10000

[environment]
HF_TOKEN = "{SECRET}"
REGION = "us-east5"

[orchestrator]
kind = "iris"
job_id = "{JOB}"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    init(tmp_path, is_forced=False)
    (tmp_path / "runs" / "my-run.toml").write_text(CONTRACT)
    return tmp_path


def remember(home: Path, *happened: Happening, run: Run | None = None, instance: Instance | None = None) -> None:
    async def apply() -> None:
        store = await Store.open(load_settings(home / "hero.toml").bot.database, SystemClock(), Redactor())
        async with store.transaction() as tx:
            await tx.apply(Decision(run=run, instances=(instance,) if instance else (), happened=happened), RUN, START)
        await store.close()

    asyncio.run(apply())


def entries(home: Path) -> tuple[Entry, ...]:
    async def read() -> tuple[Entry, ...]:
        store = await Store.open(load_settings(home / "hero.toml").bot.database, SystemClock(), Redactor())
        found = await store.chronicle(RUN)
        await store.close()
        return found

    return asyncio.run(read())


def an_instance(number: int = 2, job_id: JobId = JOB) -> Instance:
    return Instance(run_id=RUN, number=number, job_id=job_id, submitted_at=None, launched_at=START)


def tamper(home: Path, statement: str) -> None:
    with closing(sqlite3.connect(home / "hero.db")) as connection, connection:
        connection.execute("DROP TRIGGER chronicle_is_not_changed")
        connection.execute("DROP TRIGGER chronicle_is_not_cut")
        connection.execute(statement)


# The record


def test_the_record_is_printed_as_lines_that_verify_and_as_markdown(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remember(home, *LIFE)

    show_record(home / "hero.toml", RUN, as_markdown=False)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    show_record(home / "hero.toml", RUN, as_markdown=True)
    text = capsys.readouterr().out

    assert [line["seq"] for line in lines] == list(range(1, len(LIFE) + 1))
    assert lines[1]["payload"]["url"] == "https://wandb.ai/acme/hero/runs/h1"
    assert [b["prev"] for b in lines[1:]] == [a["hash"] for a in lines[:-1]]
    assert text.startswith("### Run record of my-run")
    assert lines[-1]["hash"] in text


def test_a_whole_record_is_said_to_be_whole_with_its_head(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remember(home, *LIFE)
    head = head_of(RUN, entries(home))

    code = verify_record(home / "hero.toml", RUN, head=None, as_json=False)
    said = capsys.readouterr().out
    held = verify_record(home / "hero.toml", RUN, head=head[:16], as_json=True)
    answer = json.loads(capsys.readouterr().out)

    assert (code, held) == (0, 0)
    assert "whole: 11 entries" in said
    assert f"head {head}" in said
    assert answer == {
        "run_id": RUN, "ok": True, "count": 11, "head": head, "fault": None, "text": "not_written",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "seq"),
    [
        ("UPDATE chronicle SET payload = replace(payload, '5000', '6000') WHERE kind = 'milestone'", 3),
        ("UPDATE chronicle SET at = '2026-11-29T00:00:00.000000+00:00' WHERE seq = 5", 5),
        ("DELETE FROM chronicle WHERE seq = 6", 6),
    ],
)
def test_a_record_that_was_tampered_with_names_the_first_broken_entry_and_exits_1(
    home: Path, capsys: pytest.CaptureFixture[str], statement: str, seq: int
) -> None:
    remember(home, *LIFE)
    tamper(home, statement)

    code = verify_record(home / "hero.toml", RUN, head=None, as_json=False)

    assert code == Exit.FAILED
    assert f"my-run: BROKEN at entry {seq}: " in capsys.readouterr().out


def test_a_record_without_its_end_is_found_by_the_head_alone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remember(home, *LIFE)
    head = head_of(RUN, entries(home))
    tamper(home, "DELETE FROM chronicle WHERE seq > 9")

    assert verify_record(home / "hero.toml", RUN, head=None, as_json=False) == Exit.DONE
    assert verify_record(home / "hero.toml", RUN, head=head, as_json=False) == Exit.FAILED
    assert "BROKEN at entry 10: the record holds no entry with the head" in capsys.readouterr().out


def test_the_text_in_the_issue_is_made_anew_and_compared(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import hashlib  # noqa: PLC0415 - used here alone

    remember(home, *LIFE[:4])
    known = entries(home)
    text = record_markdown(RUN, known, room=5_000) or ""
    written = Written(count=4, head=head_of(RUN, known), sha256=hashlib.sha256(text.encode()).hexdigest(), room=5_000)

    def put(noted: Written) -> None:
        async def save() -> None:
            store = await Store.open(load_settings(home / "hero.toml").bot.database, SystemClock(), Redactor())
            await store.save_posted(Posted(channel=ChannelName.GITHUB, run_id=RUN, slot="record", message_id="4"))
            await store.save_cursor(written_under(RUN, 4), noted.model_dump_json())
            await store.close()

        asyncio.run(save())

    def told() -> str:
        verify_record(home / "hero.toml", RUN, head=None, as_json=True)
        return str(json.loads(capsys.readouterr().out)["text"])

    put(written)
    assert told() == "same"
    remember(home, *LIFE[4:])
    assert told() == "same", "it is compared with as much of the record as was in it"
    put(written.model_copy(update={"sha256": "0" * 64}))
    assert told() == "differs"
    put(written.model_copy(update={"is_left_alone": True}))
    assert told() == "left_alone"


def test_a_head_that_is_none_and_a_run_that_is_none_are_wrong_usage(home: Path) -> None:
    with pytest.raises(ConfigurationError, match="at least its first 12 hexadecimal digits"):
        verify_record(home / "hero.toml", RUN, head="abc", as_json=False)
    with pytest.raises(ConfigurationError, match="no such run"):
        verify_record(home / "hero.toml", "your-run", head=None, as_json=False)
    assert verify_record(home / "hero.toml", RUN, head=None, as_json=False) == 0, "no record yet is a whole one"


# The state file


def exported(home: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    capsys.readouterr()
    export_state(home / "hero.toml", RUN, None)
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_a_state_file_has_the_procedures_keys_waits_for_nothing_and_holds_no_secret(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(run_id=RUN, state=RunState.RUNNING, tracker_url="https://wandb.ai/a/h/runs/1", tracker_name="hero")
    imported = StateImported(job_id=JOB, restart_count=1, history_file="history/runs/20261129_exp0_x_hero.md")
    remember(home, imported, run=run, instance=an_instance())

    state = exported(home, capsys)

    words = shlex.split(str(state["resubmit_command"]))
    assert list(state) == [
        "ts", "job_id", "config", "wandb_url", "wandb_name", "history_file", "resubmit_command", "restart_count",
    ]  # fmt: skip
    assert (state["job_id"], state["restart_count"]) == (JOB, 2)
    assert (state["wandb_url"], state["wandb_name"]) == ("https://wandb.ai/a/h/runs/1", "hero")
    assert state["history_file"] == "history/runs/20261129_exp0_x_hero.md"
    assert words[:3] == ["env", "HF_TOKEN=[redacted]", "REGION=us-east5"]
    assert words[3:7] == ["iris", "job", "run", "--no-wait"]
    assert SECRET not in json.dumps(state)
    assert abs(int(str(state["ts"])) / 1000 - datetime.now(UTC).timestamp()) < 3600


def test_an_export_writes_a_file_of_its_own_and_never_over_another(home: Path) -> None:
    file = home / "state.json"
    export_state(home / "hero.toml", RUN, file)

    assert json.loads(file.read_text())["job_id"] == JOB
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ConfigurationError, match="is there already"):
        export_state(home / "hero.toml", RUN, file)


def claim(home: Path, **changes: object) -> Path:
    file = home / "claim.json"
    export = home / f"export-{len(list(home.iterdir()))}.json"
    export_state(home / "hero.toml", RUN, export)
    file.write_text(json.dumps(json.loads(export.read_text()) | changes))
    return file


def test_what_was_exported_comes_in_without_a_difference_and_makes_the_job_current(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = import_state(home / "hero.toml", claim(home), None)

    launched, imported = (each.happening for each in entries(home)[::-1])
    assert code == Exit.DONE
    assert isinstance(launched, Launched)
    assert launched.job_id == JOB
    assert isinstance(imported, StateImported)
    assert imported.is_taken
    assert imported.differences == ()
    assert "its current job is /ann/hero-coord, restart 0" in capsys.readouterr().out
    assert exported(home, capsys)["job_id"] == JOB


def test_a_restart_count_that_comes_in_is_where_hero_counts_on(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import_state(home / "hero.toml", claim(home, restart_count=3), None)

    assert exported(home, capsys)["restart_count"] == 3


def test_a_claim_about_another_job_is_on_record_and_changes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remember(home, run=Run(run_id=RUN), instance=an_instance())

    code = import_state(home / "hero.toml", claim(home, job_id="/ann/other", restart_count=9), "my-run")

    said = capsys.readouterr().out
    (imported,) = (each.happening for each in entries(home))
    assert code == Exit.BLOCKED
    assert isinstance(imported, StateImported)
    assert not imported.is_taken
    assert "differs: job_id: /ann/other in the file, /ann/hero-coord here" in said
    assert "the claim is on record and changed nothing" in said
    assert (exported(home, capsys)["job_id"], exported(home, capsys)["restart_count"]) == (JOB, 2)


def test_a_claim_about_the_job_that_is_current_already_changes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remember(home, run=Run(run_id=RUN), instance=an_instance())

    code = import_state(
        home / "hero.toml", claim(home, restart_count=7, resubmit_command="iris job run -- other"), None
    )

    said = capsys.readouterr().out
    assert code == Exit.DONE
    assert "differs: restart_count: 7 in the file, 2 here" in said
    assert "differs: resubmit_command: iris job run -- other in the file" in said
    assert exported(home, capsys)["restart_count"] == 2


def test_a_secret_in_a_claim_gets_no_further(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = f"iris job run --no-wait -- python train.py --hub-token {SECRET}"

    import_state(home / "hero.toml", claim(home, resubmit_command=told, wandb_name=SECRET), None)

    assert SECRET not in capsys.readouterr().out
    assert all(SECRET.encode() not in file.read_bytes() for file in home.glob("hero.db*"))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("no JSON", "the file: Invalid JSON"),
        ("[1]", "the file: "),
        ('{"ts": 1}', "job_id: Field required"),
        ('{"ts": -1, "job_id": "/a/b", "resubmit_command": "x", "restart_count": 0}', "ts: Input should be greater"),
        ('{"ts": 99999999999999, "job_id": "/a/b", "resubmit_command": "x", "restart_count": 0}', "lies in the future"),
        ('{"ts": 9e30, "job_id": "/a/b", "resubmit_command": "x", "restart_count": 0}', "ts: "),
        ('{"ts": 1, "job_id": "/a/b", "resubmit_command": "x", "restart_count": -1}', "restart_count: "),
        ('{"ts": 1, "job_id": "/a/b", "resubmit_command": "x", "restart_count": 0}', "no run here has the job /a/b"),
    ],
)
def test_a_file_that_is_no_state_of_a_run_here_is_refused_and_says_why(home: Path, content: str, problem: str) -> None:
    file = home / "claim.json"
    file.write_text(content)

    with pytest.raises(ConfigurationError) as refused:
        import_state(home / "hero.toml", file, None)

    assert problem in str(refused.value)
    assert not (home / "hero.db").exists()
