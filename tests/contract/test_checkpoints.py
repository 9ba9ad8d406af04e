"""Checkpoints are read through the real fsspec: from a disk, from memory, and from stores that refuse or hang."""

import json
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot.model.contract import Contract, LocalContract
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.snapshot import Checkpoint, newest_complete
from bot.model.value import PersonName, RunId
from bot.sources.checkpoints import CheckpointReader, Metadata, is_leftover, parse_metadata
from tests.fakes.clock import FakeClock
from tests.fakes.forbidding import forbidden

SAVED = "2026-11-29T15:53:19.455269"


def contract_of(*roots: str, checkout: str = "/") -> Contract:
    return Contract(
        run_id=RunId("hero-1"),
        dri=PersonName("ada"),
        command=("train",),
        checkout=checkout,
        output_root="unused",
        checkpoint_roots=roots,
        orchestrator=LocalContract(kind="local", directory="jobs"),
    )


async def ask(*roots: object, reader: CheckpointReader | None = None) -> Reading[tuple[Checkpoint, ...]]:
    return await (reader or CheckpointReader(FakeClock())).checkpoints(contract_of(*map(str, roots)))


async def read(*roots: object, reader: CheckpointReader | None = None) -> tuple[Checkpoint, ...]:
    reading = await ask(*roots, reader=reader)
    assert isinstance(reading, Known), reading
    return reading.value


def save(root: str, name: str, step: object, **fields: object) -> None:
    metadata = {"step": step, "timestamp": SAVED, "is_temporary": False, **fields}
    write(f"{root}/{name}/metadata.json", json.dumps(metadata))
    write(f"{root}/{name}/manifest.ocdbt", "weights")


def write(path: str, text: str) -> None:
    files, inner = fsspec.core.url_to_fs(path)
    files.makedirs(inner.rpartition("/")[0], exist_ok=True)
    files.pipe_file(inner, text.encode())


@pytest.fixture(params=["disk", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A checkpoint root on each store; both must be read alike."""
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    yield str(tmp_path / "checkpoints") if request.param == "disk" else "memory://bucket/checkpoints"
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


async def test_the_newest_is_chosen_by_number_and_odd_names_are_told_once(root: str) -> None:
    """R23: as text step-100000 outranks step-0900000, and a resume would have repeated 800,000 steps."""
    for name, step in (("step-99000", 99000), ("step-100000", 100000), ("step-0900000", 900000)):
        save(root, name, step)
    for name in ("step-latest", "handpicked", "step-1_000", "step-9000000.tmp"):
        save(root, name, 9_000_000)
    reader = CheckpointReader(FakeClock())

    with capture_logs() as logs:
        found = await read(root, reader=reader)
        again = await read(root, reader=reader)

    newest = newest_complete(found)
    assert [each.step for each in found] == [99000, 100000, 900000]
    assert newest is not None
    assert newest.step == 900000
    assert newest.path == f"{root.replace('memory://', 'memory:///')}/step-0900000"
    assert again == found
    assert sorted(Path(line["path"]).name for line in logs if line["event"] == "checkpoint_name_ignored") == [
        "handpicked",
        "step-1_000",
        "step-9000000.tmp",
        "step-latest",
    ]


async def test_a_directory_whose_metadata_names_another_step_is_refused(root: str) -> None:
    save(root, "step-100", 100)
    save(root, "step-200", 100)

    found = await read(root)

    assert [(each.step, each.is_complete) for each in found] == [(100, True), (200, False)]
    assert found[1].fault == "metadata.json says step 100"


@pytest.mark.parametrize(
    ("metadata", "fault"),
    [
        (None, "metadata.json is missing"),
        ("", "metadata.json is no JSON"),
        ('{"step": 3', "metadata.json is no JSON"),
        ("[3]", "metadata.json is no JSON object"),
        ('{"step": "300"}', "metadata.json has no step"),
        ('{"step": true}', "metadata.json has no step"),
    ],
)
async def test_a_save_that_was_cut_off_is_a_candidate_but_not_complete(
    root: str, metadata: str | None, fault: str
) -> None:
    """R24: the newest-looking folder of a job that was killed while it saved."""
    save(root, "step-200", 200)
    write(f"{root}/step-300/manifest.ocdbt", "half")
    if metadata is not None:
        write(f"{root}/step-300/metadata.json", metadata)

    found = await read(root)

    newest = newest_complete(found)
    assert newest is not None
    assert newest.step == 200
    assert (found[1].step, found[1].is_complete, found[1].fault) == (300, False, fault)


async def test_a_temporary_metadata_file_beside_the_final_one_is_no_clean_save(root: str) -> None:
    """R26: a bucket that forbids deletion refused the clean-up of a rename."""
    save(root, "step-100", 100)
    write(f"{root}/step-100/metadata.json.tmp", "{}")
    write(f"{root}/step-200/.metadata.json.tmp-7f", "{}")

    both, only_temporary = await read(root)

    assert both.is_complete
    assert both.fault == "the save is not clean: metadata.json.tmp is still there"
    assert not only_temporary.is_complete
    assert "metadata.json is missing; the save is not clean" in only_temporary.fault


async def test_all_roots_count_and_a_permanent_one_wins_among_equals(root: str, tmp_path: Path) -> None:
    save(root, "step-20", 20)
    save(f"{tmp_path}/temporary", "step-20", 20, is_temporary=True)
    save(f"{tmp_path}/temporary", "step-18", 18, is_temporary=True)

    found = await read(root, tmp_path / "temporary", tmp_path / "not-there-yet")

    newest = newest_complete(found)
    assert sorted((each.step, each.is_temporary) for each in found) == [(18, True), (20, False), (20, True)]
    assert [each.step for each in found] == [18, 20, 20]
    assert newest is not None
    assert not newest.is_temporary


async def test_a_checkpoint_that_someone_else_completes_is_seen_at_the_next_look(root: str) -> None:
    """R27: listings are cached in the client, so that what other processes write stays invisible."""
    reader = CheckpointReader(FakeClock())
    save(root, "step-1", 1)
    write(f"{root}/step-2/manifest.ocdbt", "half")
    before = await read(root, reader=reader)

    save(root, "step-2", 2)
    save(root, "step-3", 3)

    assert [each.is_complete for each in before] == [True, False]
    assert [each.step for each in await read(root, reader=reader) if each.is_complete] == [1, 2, 3]


async def test_a_root_that_does_not_exist_yet_holds_none(root: str) -> None:
    assert await read(root) == ()


async def test_the_time_of_a_save_is_the_files_own_since_the_metadatas_has_no_zone(tmp_path: Path) -> None:
    save(str(tmp_path), "step-1", 1)
    os.utime(tmp_path / "step-1/metadata.json", (1_800_000_000, 1_800_000_000))

    (found,) = await read(tmp_path)

    assert found.saved_at == datetime.fromtimestamp(1_800_000_000, UTC)


async def test_relative_roots_are_below_the_checkout_and_links_are_followed(tmp_path: Path) -> None:
    save(str(tmp_path / "elsewhere"), "step-5", 5)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/step-5").symlink_to(tmp_path / "elsewhere/step-5")
    (tmp_path / "out/step-6").symlink_to(tmp_path / "nowhere")

    reading = await CheckpointReader(FakeClock()).checkpoints(contract_of("out", checkout=str(tmp_path)))

    assert isinstance(reading, Known)
    assert [(each.path, each.is_complete) for each in reading.value] == [(f"{tmp_path}/out/step-5", True)]


async def test_a_file_in_place_of_a_root_is_unrecognised(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("not a directory")

    reading = await ask(tmp_path / "checkpoints")

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.UNRECOGNISED


async def test_one_forbidden_directory_makes_all_of_it_unknown(tmp_path: Path) -> None:
    """R25: with expired credentials "does it exist" answered no instead of failing."""
    save(str(tmp_path / "open"), "step-1", 1)
    save(str(tmp_path / "closed"), "step-2", 2)

    with forbidden(tmp_path / "closed"):
        reading = await ask(tmp_path / "open", tmp_path / "closed")

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.REFUSED
    assert "cannot be verified" in reading.detail


class IllStore(MemoryFileSystem):  # type: ignore[misc]  # fsspec ships no types
    """A store whose answers a test decides."""

    protocol = "ill"
    error: Exception | None = None
    gate: threading.Event | None = None

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> Any:
        if self.gate:
            self.gate.wait()
        if self.error:
            raise self.error
        return super().ls(path, detail=detail, **kwargs)


@pytest.fixture
def ill(monkeypatch: pytest.MonkeyPatch) -> type[IllStore]:
    fsspec.register_implementation("ill", IllStore, clobber=True)
    monkeypatch.setattr(IllStore, "error", None)
    monkeypatch.setattr(IllStore, "gate", None)
    return IllStore


def no_bucket() -> FileNotFoundError:
    error = FileNotFoundError("bucket")
    error.__cause__ = RuntimeError("An error occurred (NoSuchBucket) when calling the ListObjectsV2 operation")
    return error


class DefaultCredentialsError(Exception):
    """Named and placed as Google's."""

    __module__ = "google.auth.exceptions"


@pytest.mark.parametrize(
    ("error", "gap"),
    [
        (PermissionError("Access Denied"), Gap.REFUSED),
        (DefaultCredentialsError("no credentials were found"), Gap.REFUSED),
        (no_bucket(), Gap.REFUSED),
        (OSError("connection reset"), Gap.UNREACHABLE),
        (ConnectionError("refused"), Gap.UNREACHABLE),
        (RuntimeError("session is closed"), Gap.UNREACHABLE),
        (KeyError("items"), Gap.UNRECOGNISED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
async def test_a_store_that_fails_never_means_that_there_is_nothing(
    ill: type[IllStore], tmp_path: Path, error: Exception, gap: Gap
) -> None:
    save(str(tmp_path), "step-1", 1)
    ill.error = error

    reading = await ask(tmp_path, "ill://bucket/checkpoints")

    assert isinstance(reading, Unknown)
    assert reading.reason is gap


async def test_a_store_that_hangs_is_a_timeout_and_then_busy(ill: type[IllStore]) -> None:
    ill.gate = threading.Event()
    reader = CheckpointReader(FakeClock(), deadline=timedelta(milliseconds=10))

    readings = [await ask("ill://bucket/checkpoints", reader=reader) for _ in range(5)]
    ill.gate.set()

    assert [each.reason for each in readings if isinstance(each, Unknown)] == [Gap.TIMEOUT, *[Gap.BUSY] * 4]


async def test_a_store_of_a_kind_that_cannot_be_read_here_is_refused_with_the_fix() -> None:
    reading = await ask("nosuch://bucket/checkpoints")

    assert isinstance(reading, Unknown)
    assert "nosuch" in reading.detail


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("metadata.json", False),
        ("metadata.json.tmp", True),
        ("metadata.json.tmp.7f3a", True),
        (".metadata.json.7f3a", True),
        ("metadata.json~", True),
        ("metadata.tmp", True),
        ("metadata.json.crc32c", False),
        ("manifest.json", False),
    ],
)
def test_what_a_rename_leaves_is_known_by_its_name(name: str, is_one: bool) -> None:
    assert is_leftover(name) is is_one


@given(
    st.binary()
    | st.recursive(
        st.none() | st.integers() | st.text(),
        lambda each: st.dictionaries(st.sampled_from(["step", "timestamp", "is_temporary"]), each),
    ).map(lambda each: json.dumps(each).encode())
)
def test_no_content_breaks_the_metadata_parser(raw: bytes) -> None:
    told = parse_metadata(raw, 5)

    assert isinstance(told, str) or told.step == 5


def test_a_zone_in_the_metadata_is_believed() -> None:
    told = parse_metadata(b'{"step": 5, "timestamp": "2026-11-29T15:00:00+01:00", "is_temporary": true}', 5)

    assert told == Metadata(step=5, is_temporary=True, saved_at=datetime(2026, 11, 29, 14, tzinfo=UTC))
