"""The launched configuration from real files, pipes and stores: whose it is, and what it is when it cannot be read."""

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fsspec
import pytest
import yaml

from bot.model.contract import Contract
from bot.model.job import Job, JobState
from bot.model.launched import LaunchedConfig
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.tracker import TrackerRunState, TrackerState
from bot.redaction import Redactor
from bot.sources.config.files import FILE_BYTES
from bot.sources.config.source import ConfigReader, TrackerConfigs
from tests.fakes.clock import START, FakeClock
from tests.fakes.launched import TREE
from tests.fakes.snapshots import RUN, contract, job, unknown

SUBMITTED = START
EARLY = START + timedelta(minutes=10)
LATE = START + timedelta(minutes=50)
UNTRACKED = unknown(Gap.NOT_CONFIGURED, "no tracker")


def promised(file: str | None, **fields: Any) -> Contract:
    return contract(config={"file": file} if file else {}, **fields)


def written(path: Path, at: datetime = EARLY, text: str = json.dumps(TREE)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (at.timestamp(), at.timestamp()))
    return path


async def look(
    of: Contract,
    *,
    at: datetime = EARLY,
    jobs: tuple[Job, ...] | Unknown | None = None,
    tracker: TrackerState | Unknown = UNTRACKED,
    copies: TrackerConfigs | None = None,
) -> Reading[LaunchedConfig]:
    reader = ConfigReader(FakeClock(at), Redactor(["known-secret"]), deadline=timedelta(seconds=20), tracker=copies)
    listed = (job(submitted_at=SUBMITTED),) if jobs is None else jobs
    return await reader.config(
        of,
        listed if isinstance(listed, Unknown) else Known(value=listed, at=at),
        tracker if isinstance(tracker, Unknown) else Known(value=tracker, at=at),
    )


def known(reading: Reading[LaunchedConfig]) -> LaunchedConfig:
    assert isinstance(reading, Known), reading
    return reading.value


def gap(reading: Reading[LaunchedConfig]) -> Unknown:
    assert isinstance(reading, Unknown), reading
    return reading


# files


@pytest.mark.parametrize(
    ("name", "write"), [("config.json", json.dumps), ("config.yaml", yaml.safe_dump), ("config", yaml.safe_dump)]
)
async def test_a_file_below_the_output_root_is_read_where_the_contract_says_it_is(
    tmp_path: Path, name: str, write: Callable[[Any], str]
) -> None:
    written(tmp_path / "out" / RUN / name, text=write(TREE))
    of = promised("{output_root}/{run_id}/" + name, checkout=str(tmp_path), output_root="out/")

    config = known(await look(of))

    assert config.origin == str(tmp_path / "out" / RUN / name)
    assert config.count("final_step") == 10_000
    assert config.text("checkpoint_root") == "gs://bucket/users/ada/hero-12d8b6f0/checkpoints"
    assert not config.is_trackers


async def test_every_look_is_fresh(tmp_path: Path) -> None:
    path = written(tmp_path / "c.json")
    first = known(await look(promised(str(path))))
    written(path, text=json.dumps({"trainer": {"seed": 7}}))

    second = known(await look(promised(str(path))))

    assert first.value("seed") == "0"
    assert second.values == {"trainer.seed": "7"}


async def test_a_file_of_an_earlier_instance_is_no_configuration_of_this_one(tmp_path: Path) -> None:
    of = promised(str(written(tmp_path / "c.json", at=SUBMITTED - timedelta(minutes=5))))

    starting, training = gap(await look(of)), gap(await look(of, at=LATE))

    assert starting.reason is Gap.NOT_YET
    assert training.reason is Gap.UNRELIABLE
    assert "of an earlier instance: written 2026" in training.detail
    assert training.detail.endswith("although the job has run for 50 min")


async def test_two_clocks_may_be_a_little_apart(tmp_path: Path) -> None:
    of = promised(str(written(tmp_path / "c.json", at=SUBMITTED - timedelta(seconds=50))))

    assert known(await look(of)).count("batch_size") == 256


@pytest.mark.parametrize(
    ("state", "at", "reason"),
    [
        (JobState.RUNNING, EARLY, Gap.NOT_YET),
        (JobState.RUNNING, LATE, Gap.REFUSED),
        (JobState.PENDING, LATE, Gap.NOT_YET),
        (JobState.FAILED, LATE, Gap.NOT_YET),
    ],
)
async def test_a_file_that_is_not_there_is_in_order_while_nothing_could_have_written_it(
    tmp_path: Path, state: JobState, at: datetime, reason: Gap
) -> None:
    jobs = (job(state, submitted_at=SUBMITTED),)

    assert gap(await look(promised(str(tmp_path / "none.json")), at=at, jobs=jobs)).reason is reason


async def test_without_a_job_or_without_knowing_it_there_is_no_configuration(tmp_path: Path) -> None:
    of = promised(str(written(tmp_path / "c.json")))

    assert gap(await look(of, jobs=())).reason is Gap.NOT_YET
    assert gap(await look(of, jobs=unknown(Gap.TIMEOUT))).reason is Gap.TIMEOUT
    assert gap(await look(promised(None))).reason is Gap.NOT_CONFIGURED


@pytest.mark.parametrize("kind", ["pipe", "directory", "huge", "broken", "list"])
async def test_what_is_no_small_table_in_a_file_is_unknown_and_never_hangs(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "c.json"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case "huge":
            path.write_bytes(b" " * (FILE_BYTES + 1))
        case "broken":
            path.write_text('{"password": "hunter2-hunter2", oops}', encoding="utf-8")
        case _:
            path.write_text("[1]", encoding="utf-8")

    found = gap(await look(promised(str(path)), at=datetime.now(UTC), jobs=(job(submitted_at=SUBMITTED),)))

    assert found.reason in {Gap.UNRECOGNISED, Gap.REFUSED}
    assert "hunter2" not in found.detail


async def test_secrets_of_file_and_address_stay_behind(tmp_path: Path) -> None:
    text = json.dumps({"trainer": {"seed": 1}, "api_key": "sk-very-secret-value", "note": "has known-secret in it"})
    path = written(tmp_path / "c.json", text=text)

    config = known(await look(promised(str(path))))

    assert config.values["trainer.seed"] == "1"
    assert "very-secret" not in config.model_dump_json()
    assert "known-secret" not in config.model_dump_json()


# stores


@pytest.fixture
def store() -> Iterator[Any]:
    files = fsspec.filesystem("memory")
    yield files
    files.store.clear()
    files.pseudo_dirs[:] = [""]


async def test_a_file_in_a_store_is_read_afresh_and_dated_by_the_store(store: Any) -> None:
    of = promised("{output_root}/config.yaml", output_root="memory://bucket/run")
    now = datetime.now(UTC)
    jobs = (job(submitted_at=now - timedelta(minutes=5), started_at=now - timedelta(minutes=4)),)
    later_jobs = (job(submitted_at=now + timedelta(hours=1), started_at=now + timedelta(hours=1)),)
    store.pipe_file("/bucket/run/config.yaml", yaml.safe_dump(TREE).encode())

    first = known(await look(of, at=now, jobs=jobs))
    store.pipe_file("/bucket/run/config.yaml", b"trainer: {seed: 7}")
    second = known(await look(of, at=now, jobs=jobs))
    old = gap(await look(of, at=now + timedelta(hours=3), jobs=later_jobs))

    assert first.origin == "memory://bucket/run/config.yaml"
    assert first.count("batch_size") == 256
    assert second.count("seed") == 7
    assert old.reason is Gap.UNRELIABLE


async def test_a_store_that_has_no_such_file_or_cannot_be_asked_is_unknown(store: Any) -> None:
    store.makedirs("/bucket/run/config.json")

    assert gap(await look(promised("memory://bucket/none.json"), at=LATE)).reason is Gap.REFUSED
    assert gap(await look(promised("memory://bucket/run/config.json"), at=LATE)).reason is Gap.UNRECOGNISED
    assert isinstance(await look(promised("nosuch://bucket/c.json"), at=LATE), Unknown)


async def test_a_store_that_hangs_costs_its_own_thread_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()
    files = fsspec.filesystem("memory")
    monkeypatch.setattr(type(files), "info", lambda *given, **named: released.wait(60) and {})
    reader = ConfigReader(FakeClock(EARLY), Redactor(), deadline=timedelta(seconds=0.2))
    jobs: Reading[tuple[Job, ...]] = Known(value=(job(submitted_at=SUBMITTED),), at=EARLY)
    hanging = promised("memory://bucket/c.json")
    other = promised(str(written(tmp_path / "c.json")), run_id="hero-other")

    first = await reader.config(hanging, jobs, UNTRACKED)
    second = await reader.config(hanging, jobs, UNTRACKED)
    third = await reader.config(other, jobs, UNTRACKED)
    released.set()

    assert gap(first).reason is Gap.TIMEOUT
    assert gap(second).reason is Gap.BUSY
    assert isinstance(third, Known) or gap(third).reason is Gap.TIMEOUT  # a loaded machine may be slow, never BUSY


# the tracker's copy


class Copy:
    """Stands in for the tracker; the real SDK is asked in tests/contract/test_wandb_source.py."""

    def __init__(self, told: Mapping[str, Any] | Unknown) -> None:
        self._told = told

    async def config(self, contract: Contract) -> Reading[Mapping[str, Any]]:
        return self._told if isinstance(self._told, Unknown) else Known(value=self._told, at=EARLY)


def state(heartbeat_at: datetime | None = EARLY, of: TrackerRunState = TrackerRunState.RUNNING) -> TrackerState:
    return TrackerState(entity="acme", project="hero", id="abc", name="x", state=of, url="", heartbeat_at=heartbeat_at)


async def test_without_a_file_the_trackers_copy_counts_once_the_run_was_heard_of_since_its_submission() -> None:
    config = known(await look(promised(None), tracker=state(), copies=Copy(TREE)))
    old = gap(await look(promised(None), at=LATE, tracker=state(SUBMITTED - timedelta(1)), copies=Copy(TREE)))

    assert config.origin == "W&B acme/hero/abc"
    assert config.is_trackers
    assert config.count("batch_size") == 256
    assert old.reason is Gap.NOT_YET  # tracker.identity says it
    assert "of an earlier instance: last heard of" in old.detail


@pytest.mark.parametrize(
    ("tracker", "copy", "reason"),
    [
        (unknown(Gap.TIMEOUT), TREE, Gap.TIMEOUT),
        (UNTRACKED, TREE, Gap.NOT_CONFIGURED),
        (state(of=TrackerRunState.MISSING), TREE, Gap.NOT_YET),
        (state(None), TREE, Gap.NOT_YET),
        (state(), {}, Gap.NOT_CONFIGURED),
        (state(), {"_wandb": {}}, Gap.NOT_CONFIGURED),
        (state(), unknown(Gap.REFUSED), Gap.REFUSED),
    ],
)
async def test_a_tracker_that_does_not_tell_is_unknown(tracker: Any, copy: Any, reason: Gap) -> None:
    assert gap(await look(promised(None), tracker=tracker, copies=Copy(copy))).reason is reason
