"""What the launch checklist reads of real directories and of object stores: what is there, where, and how long."""

import json
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.errors import RefusedError
from bot.model.contract import Contract
from bot.model.preflight import Location, Weight
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.snapshot import Checkpoint
from bot.sources.buckets import amazon_rules, google_rules
from bot.sources.checkpoints import CheckpointReader
from bot.sources.config.files import read_file
from bot.sources.storage import directory_at
from bot.sources.storage_readings import StorageReader
from checks.preflight.start import START
from tests.fakes.clock import FakeClock
from tests.fakes.forbidding import forbidden
from tests.fakes.gcs import FakeBucket, FakeGoogleStorage, google_storage
from tests.fakes.preparations import preparation, weights
from tests.fakes.s3 import S3Server
from tests.fakes.snapshots import contract, unknown

LOCAL = {"kind": "local", "directory": "jobs"}
TTL = {"action": {"type": "Delete"}, "condition": {"age": 30, "matchesPrefix": ["tmp/ttl=30d/"]}}


@pytest.fixture
def gcs() -> Iterator[FakeGoogleStorage]:
    with google_storage() as world:
        yield world


def reader(
    s3: S3Server | None = None, gcs: FakeGoogleStorage | None = None, deadline: timedelta = timedelta(seconds=60)
) -> StorageReader:
    options = {"s3": s3.options if s3 else {}, "gs": gcs.options if gcs else {}}
    checkpoints = CheckpointReader(FakeClock(), options=options, deadline=deadline)
    return StorageReader(checkpoints, FakeClock(), options=options, deadline=deadline)


def on_disk(tmp_path: Path, **fields: Any) -> Contract:
    return contract(**({"orchestrator": LOCAL, "checkout": str(tmp_path), "output_root": "out"} | fields))


def save(root: Path, name: str, *, step: int | None = None, **fields: Any) -> None:
    (root / name).mkdir(parents=True)
    (root / name / "weights").write_bytes(b"x" * 100)
    if step is not None:
        (root / name / "metadata.json").write_text(json.dumps({"step": step, **fields}))


def known[T](reading: Reading[T]) -> T:
    assert isinstance(reading, Known), reading
    return reading.value


def told(location: Reading[Location]) -> tuple[bool, str, int | None, bool]:
    found = known(location)
    return found.exists, found.region, found.expires_days, found.is_told


# On a disk


async def test_a_directory_is_there_when_something_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "model").write_text("x")
    (tmp_path / "data.bin").write_text("x")
    promised = on_disk(tmp_path, export_root="hf", datasets=("./data.bin", "/no/such/data", "c4"))

    found = await reader().locations(promised)

    assert {field: known(each).exists for field, each in found.items()} == {
        "output_root": False,
        "export_root": True,
        "datasets.0": True,
        "datasets.1": False,
    }


async def test_a_directory_that_may_not_be_read_is_unknown_and_not_empty(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()

    with forbidden(tmp_path / "out"):
        found = await reader().locations(on_disk(tmp_path))

    reading = found["output_root"]
    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.REFUSED


async def test_a_path_of_other_machines_is_not_looked_for_on_this_one(tmp_path: Path) -> None:
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted" / "x").write_text("x")
    promised = contract(output_root=f"{tmp_path}/elsewhere", export_root=f"{tmp_path}/mounted", datasets=("hf://a/b",))

    found = await reader().locations(promised)
    start = await reader().start(promised.model_copy(update={"initialize_from": f"{tmp_path}/older/step-9"}))

    assert set(found) == {"export_root"}
    assert isinstance(start, Unknown)
    assert "no directory that Hero sees" in start.detail


async def test_the_size_is_that_of_the_newest_complete_checkpoint(tmp_path: Path) -> None:
    root = tmp_path / "out" / "checkpoints"
    save(root, "step-10", step=10)
    save(root, "step-20")
    promised = on_disk(tmp_path)
    checkpoints = await CheckpointReader(FakeClock()).checkpoints(promised)

    size = known(await reader().checkpoint_bytes(promised, checkpoints))
    none = known(await reader().checkpoint_bytes(promised, Known(value=(), at=checkpoints.at)))
    gap = await reader().checkpoint_bytes(promised, unknown())

    assert size == 100 + len(json.dumps({"step": 10}))
    assert none is None
    assert isinstance(gap, Unknown)


@pytest.mark.parametrize(
    ("address", "steps"),
    [
        ("{root}/step-10", [9, 10, 100]),
        ("{root}/step-10/", [9, 10, 100]),
        ("{root}", [9, 10, 100]),
        ("{root}/", [9, 10, 100]),
        ("source/checkpoints/step-10/", [9, 10, 100]),
        ("{root}/step-10/hf", []),
        ("{root}/nothing/step-5", []),
        ("meta-llama/Llama-3.1-8B", []),
        (None, []),
    ],
)
async def test_the_start_is_read_with_what_lies_beside_it(
    tmp_path: Path, address: str | None, steps: list[int]
) -> None:
    root = tmp_path / "source" / "checkpoints"
    for number in (10, 9, 100):
        save(root, f"step-{number}", step=number)
    save(root, "step-latest", step=100)
    promised = on_disk(tmp_path, initialize_from=address and address.format(root=root))

    found: tuple[Checkpoint, ...] = known(await reader().start(promised))

    assert [each.step for each in found] == steps


async def test_what_is_read_of_a_start_is_what_its_item_judges(tmp_path: Path) -> None:
    root = tmp_path / "source" / "checkpoints"
    save(root, "step-9000", step=9000)
    promised = on_disk(tmp_path, initialize_from="source/checkpoints/step-9000/", command="train")

    async def judged() -> list[Weight]:
        start = await reader().start(promised)
        return weights(START, preparation(promised, start=start))

    assert await judged() == [Weight.NOTE]  # whose it is, nobody knows
    save(root, "step-10000")
    assert await judged() == [Weight.NOTE, Weight.NOTE]  # newer, and not complete
    (root / "step-10000" / "metadata.json").write_text('{"step": 10000}')
    assert await judged() == [Weight.NOTE, Weight.BLOCKS]
    (root / "step-9000" / "metadata.json").unlink()
    assert await judged() == [Weight.NOTE, Weight.BLOCKS]


# In object stores


async def test_s3_tells_what_is_there_where_it_is_and_how_long_it_stays(s3: S3Server) -> None:
    rules = [
        {"ID": "a", "Status": "Enabled", "Filter": {"Prefix": "tmp/ttl=30d/"}, "Expiration": {"Days": 30}},
        {"ID": "b", "Status": "Enabled", "Filter": {"Prefix": "tmp/"}, "Expiration": {"Days": 60}},
        {"ID": "c", "Status": "Disabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}},
    ]
    s3.make("runs", region="us-west-2", rules=rules)
    s3.make("plain")
    s3.files.pipe_file("runs/users/ada/hero/config.yaml", b"x")
    s3.files.pipe_file("runs/users/ada/hero2/config.yaml", b"x")
    s3.files.pipe_file("plain/data.bin", b"x")
    promised = contract(
        output_root="s3://runs/users/ada/her",
        resume_root="s3://runs/tmp/ttl=30d/hero",
        session_root="s3://runs/tmp/session/",
        export_root="s3://runs/users/ada/hero",
        datasets=("s3://plain/data.bin", "s3://plain", "s3://nowhere/data"),
    )

    found = await reader(s3).locations(promised)

    assert told(found["output_root"]) == (False, "us-west-2", None, True)  # hero is another directory
    assert told(found["resume_root"]) == (False, "us-west-2", 30, True)
    assert told(found["session_root"]) == (False, "us-west-2", 60, True)
    assert told(found["export_root"]) == (True, "us-west-2", None, True)
    assert told(found["datasets.0"]) == (True, "us-east-1", None, True)
    assert told(found["datasets.1"]) == (True, "us-east-1", None, True)
    assert (known(found["datasets.2"]).exists, known(found["datasets.2"]).has_bucket) == (False, False)


async def test_an_s3_bucket_that_may_not_be_listed_is_unknown_for_every_address(s3: S3Server) -> None:
    s3.make("runs")
    promised = contract(
        output_root="s3://runs/hero", resume_root="s3://runs/tmp", initialize_from="s3://runs/older/step-9"
    )

    with s3.refusing():
        found = await reader(s3).locations(promised)
        start = await reader(s3).start(promised)

    for reading in (*found.values(), start):
        assert isinstance(reading, Unknown)
        assert reading.reason is Gap.REFUSED
        assert "cannot be verified" in reading.detail
    assert set(found) == {"output_root", "resume_root"}


async def test_google_tells_what_is_there_where_it_is_and_how_long_it_stays(gcs: FakeGoogleStorage) -> None:
    gcs.buckets["runs"] = FakeBucket(rules=[TTL], objects={"users/ada/hero/config.yaml": b"x", "users/ada/empty/": b""})
    gcs.buckets["closed"] = FakeBucket(may_get=False, objects={"data/x": b"x"})
    promised = contract(
        output_root="gs://runs/users/ada/her",
        resume_root="gs://runs/tmp/ttl=30d/hero",
        session_root="gs://runs/users/ada/empty",
        export_root="gs://runs/users/ada/hero/",
        datasets=("gs://closed/data", "gs://nowhere/data"),
    )

    found = await reader(gcs=gcs).locations(promised)

    assert told(found["output_root"]) == (False, "us-east5", None, True)
    assert told(found["resume_root"]) == (False, "us-east5", 30, True)
    assert told(found["session_root"]) == (False, "us-east5", None, True)  # an empty object stands for a directory
    assert told(found["export_root"]) == (True, "us-east5", None, True)
    assert told(found["datasets.0"]) == (True, "", None, False)  # to read rules is a permission of its own
    assert (known(found["datasets.1"]).exists, known(found["datasets.1"]).has_bucket) == (False, False)


async def test_a_google_bucket_that_may_not_be_listed_is_unknown_and_never_empty(gcs: FakeGoogleStorage) -> None:
    gcs.buckets["runs"] = FakeBucket(may_list=False)
    gcs.buckets["ill"] = FakeBucket(is_ill=True)
    promised = contract(
        output_root="gs://runs/hero", export_root="gs://ill/hf", initialize_from="gs://runs/older/step-9/"
    )

    found = await reader(gcs=gcs).locations(promised)
    start = await reader(gcs=gcs).start(promised)

    denied, ill = found["output_root"], found["export_root"]
    assert isinstance(denied, Unknown)
    assert (denied.reason, "may not list it" in denied.detail) == (Gap.REFUSED, True)
    assert isinstance(ill, Unknown)
    assert "something else is wrong" in ill.detail
    assert isinstance(start, Unknown)
    assert start.reason is Gap.REFUSED


async def test_a_start_and_a_size_are_read_from_google(gcs: FakeGoogleStorage) -> None:
    objects = {"older/checkpoints/step-9/weights": b"x" * 50, "older/checkpoints/step-90/weights": b"x"}
    objects["older/checkpoints/step-9/metadata.json"] = b'{"step": 9}'
    gcs.buckets["runs"] = FakeBucket(objects=objects)
    promised = contract(output_root="gs://runs/hero", initialize_from="gs://runs/older/checkpoints/step-9/")

    start = await reader(gcs=gcs).start(promised)
    size = await reader(gcs=gcs).checkpoint_bytes(promised, start)

    assert [(each.step, each.is_complete) for each in known(start)] == [(9, True), (90, False)]
    assert known(size) == 50 + len(b'{"step": 9}')


async def test_a_store_that_hangs_costs_its_deadline_and_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def hang(*_: object) -> None:
        release.wait(60)

    monkeypatch.setattr("bot.sources.storage_readings.store_at", hang)
    try:
        found = await reader(deadline=timedelta(milliseconds=50)).locations(contract(output_root="gs://runs/hero"))
    finally:
        release.set()

    reading = found["output_root"]
    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.TIMEOUT


# The rules


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (TTL, [("tmp/ttl=30d/", 30)]),
        ({"action": {"type": "Delete"}, "condition": {"age": 0}}, [("", 0)]),
        (
            {"action": {"type": "Delete"}, "condition": {"age": 9, "matchesPrefix": ["a/", "b/"]}},
            [("a/", 9), ("b/", 9)],
        ),
        ({"action": {"type": "SetStorageClass", "storageClass": "NEARLINE"}, "condition": {"age": 9}}, []),
        ({"action": {"type": "Delete"}, "condition": {"age": 9, "isLive": False}}, []),
        ({"action": {"type": "Delete"}, "condition": {"age": 9, "isLive": True}}, [("", 9)]),
        ({"action": {"type": "Delete"}, "condition": {"age": 9, "numNewerVersions": 3}}, []),
        ({"action": {"type": "Delete"}, "condition": {"age": 9, "matchesSuffix": [".log"]}}, []),
        ({"action": {"type": "Delete"}, "condition": {"age": 9, "matchesStorageClass": ["COLDLINE"]}}, []),
        ({"action": {"type": "Delete"}, "condition": {"createdBefore": "2026-01-01"}}, []),
        ({"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 1}}, []),
    ],
)
def test_googles_rules_count_when_they_delete_everything_by_age(
    rule: dict[str, Any], expected: list[tuple[str, int]]
) -> None:
    assert [(each.prefix, each.days) for each in google_rules({"rule": [rule]})] == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"Status": "Enabled", "Filter": {"Prefix": "tmp/"}, "Expiration": {"Days": 3}}, [("tmp/", 3)]),
        ({"Status": "Enabled", "Prefix": "tmp/", "Expiration": {"Days": 3}}, [("tmp/", 3)]),
        ({"Status": "Enabled", "Filter": {}, "Expiration": {"Days": 3}}, [("", 3)]),
        ({"Status": "Enabled", "Filter": {"Tag": {"Key": "k"}}, "Expiration": {"Days": 3}}, []),
        ({"Status": "Enabled", "Filter": {"And": {"Prefix": "a/", "Tags": []}}, "Expiration": {"Days": 3}}, []),
        ({"Status": "Enabled", "Filter": {"ObjectSizeGreaterThan": 5}, "Expiration": {"Days": 3}}, []),
        ({"Status": "Disabled", "Filter": {"Prefix": "tmp/"}, "Expiration": {"Days": 3}}, []),
        ({"Status": "Enabled", "Filter": {"Prefix": "tmp/"}, "NoncurrentVersionExpiration": {"NoncurrentDays": 3}}, []),
        ({"Status": "Enabled", "Filter": {"Prefix": "a"}, "Expiration": {"ExpiredObjectDeleteMarker": True}}, []),
    ],
)
def test_amazons_rules_count_when_they_delete_everything_by_age(
    rule: dict[str, Any], expected: list[tuple[str, int]]
) -> None:
    assert [(each.prefix, each.days) for each in amazon_rules({"Rules": [rule]})] == expected


async def test_a_directory_below_the_checkout_is_no_model_of_a_hub(tmp_path: Path) -> None:
    save(tmp_path / "src" / "checkpoints", "step-9", step=9)
    (tmp_path / "src" / "weights").mkdir()
    (tmp_path / "src" / "weights" / "model.bin").write_bytes(b"w")

    async def judged(address: str) -> list[Weight]:
        promised = on_disk(tmp_path, initialize_from=address, command="train")
        start, locations = await reader().start(promised), await reader().locations(promised)
        return weights(START, preparation(promised, start=start, locations=locations))

    assert await judged("src/checkpoints") == [Weight.BLOCKS]
    assert await judged("src/weights") == [Weight.BLOCKS]
    assert await judged("meta-llama/Llama-3.1-8B") == [Weight.ASKS]


async def test_nothing_is_read_at_an_address_that_holds_credentials(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        host = f"bob:hunter2secret@127.0.0.1:{server.getsockname()[1]}"
        promised = on_disk(
            tmp_path,
            output_root=f"http://{host}/out",
            initialize_from=f"http://{host}/older/step-9",
            datasets=(f"s3://{host}/data",),
        )
        read = [
            await CheckpointReader(FakeClock()).checkpoints(promised),
            await reader().start(promised),
            *(await reader().locations(promised)).values(),
        ]
        with pytest.raises(BlockingIOError):
            server.accept()

    assert [type(each) for each in read] == [Unknown, Unknown, Unknown]
    for each in read:
        assert isinstance(each, Unknown)
        assert "holds credentials" in each.detail
        assert "hunter2" not in each.detail


@pytest.mark.parametrize("address", ["http://bob:hunter2secret@127.0.0.1:9/out", "s3://a:hunter2secret@bucket/x"])
def test_no_file_and_no_directory_is_looked_at_behind_credentials(address: str) -> None:
    with pytest.raises(RefusedError, match="holds credentials"):
        directory_at(address)
    with pytest.raises(RefusedError, match="holds credentials"):
        read_file(f"{address}/config.yaml", {})
