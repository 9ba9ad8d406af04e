"""One directory of a run in its storage, measured and deleted on a disk and in S3: nothing beside it goes."""

from pathlib import Path
from typing import Any

import pytest

from bot.errors import RefusedError, ServiceError, UnrecognisedError
from bot.sources.storage import Directory, directory_at
from tests.fakes.forbidding import forbidden
from tests.fakes.s3 import S3Server


class Shelf:
    """A root with checkpoints, on a disk or in S3: written, listed and looked at in the same words."""

    def __init__(self, root: str, options: dict[str, dict[str, Any]], files: Any | None = None) -> None:
        self.root = root
        self._options = options
        self._files = files

    def put(self, name: str, content: bytes) -> None:
        if self._files is not None:
            self._files.pipe_file(f"{self.root}/{name}", content)
            return
        path = Path(self.root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def names(self) -> list[str]:
        """Return every file below the root."""
        if self._files is not None:
            bare = self.root.removeprefix("s3://")
            return sorted(str(each).removeprefix(f"{bare}/") for each in self._files.find(self.root))
        return sorted(str(each.relative_to(self.root)) for each in Path(self.root).rglob("*") if each.is_file())

    def at(self, name: str) -> Directory:
        return directory_at(f"{self.root}/{name}", self._options)


@pytest.fixture(params=["disk", "s3"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Shelf:
    if request.param == "disk":
        return Shelf(str(tmp_path / "checkpoints"), {})
    return _in_s3(request.getfixturevalue("s3"))


def _in_s3(s3: S3Server) -> Shelf:
    s3.make("runs")
    # Without fsspec's cache of instances, whose methods a test could not replace any more.
    options = {"s3": {**s3.options, "skip_instance_cache": True}}
    return Shelf("s3://runs/hero/checkpoints", options, s3.files)


def fill(shelf: Shelf, *names: str) -> None:
    for name in names:
        shelf.put(f"{name}/metadata.json", b'{"step": 9}')
        shelf.put(f"{name}/model/shard-0", b"x" * 100)
        shelf.put(f"{name}/model/deep/shard-1", b"y" * 1000)


def test_the_size_is_that_of_everything_below_it_and_of_nothing_beside_it(shelf: Shelf) -> None:
    fill(shelf, "step-9", "step-90")

    assert shelf.at("step-9").size_bytes() == 11 + 100 + 1000
    assert shelf.at("step-9/").size_bytes() == 11 + 100 + 1000
    assert shelf.at("step-8").size_bytes() is None
    assert (shelf.at("step-9").exists(), shelf.at("step-8").exists()) == (True, False)


def test_only_the_named_directory_is_deleted_and_a_second_time_does_nothing(shelf: Shelf) -> None:
    fill(shelf, "step-9", "step-90", "step-9.tmp")
    beside = [name for name in shelf.names() if not name.startswith("step-9/")]

    shelf.at("step-9").remove()
    once = shelf.names()
    shelf.at("step-9").remove()
    shelf.at("step-7").remove()

    assert once == beside
    assert shelf.names() == beside
    assert not shelf.at("step-9").exists()


def test_a_store_s_object_of_the_very_name_is_no_part_of_the_directory(s3: S3Server) -> None:
    """Some tools put one where they make a directory; it would keep a clean-up from ever ending."""
    shelf = _in_s3(s3)
    fill(shelf, "step-9")
    shelf.put("step-9", b"a marker")

    shelf.at("step-9").remove()

    assert shelf.names() == ["step-9"]
    assert not shelf.at("step-9").exists()


def test_a_slash_at_its_end_takes_no_more_away(shelf: Shelf) -> None:
    fill(shelf, "step-9", "step-90")

    shelf.at("step-9/").remove()

    assert {name.partition("/")[0] for name in shelf.names()} == {"step-90"}


def test_metadata_goes_first_on_a_disk_so_that_a_deletion_cut_short_looks_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf(str(tmp_path), {})
    fill(shelf, "step-9")

    def cut_short(_path: object) -> None:
        raise OSError(5, "Input/output error", "shard-0")

    monkeypatch.setattr("bot.sources.storage.shutil.rmtree", cut_short)
    with pytest.raises(ServiceError, match="shard-0"):
        shelf.at("step-9").remove()
    left = shelf.names()
    monkeypatch.undo()
    shelf.at("step-9").remove()

    assert left == ["step-9/model/deep/shard-1", "step-9/model/shard-0"]
    assert shelf.names() == []


def test_metadata_goes_first_in_a_store_so_that_a_deletion_cut_short_looks_incomplete(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = _in_s3(s3)
    fill(shelf, "step-9")
    shelf.put("step-9/a-first-name", b"z")
    kind = type(s3.files)
    really, deleted = kind._rm_file, list[str]()

    async def cut_short(self: Any, path: str, **named: Any) -> None:
        if deleted:
            raise PermissionError(path)
        deleted.append(path)
        await really(self, path, **named)

    monkeypatch.setattr(kind, "_rm_file", cut_short)
    with pytest.raises(RefusedError, match="cannot be verified"):
        shelf.at("step-9").remove()
    monkeypatch.undo()
    left = shelf.names()
    shelf.at("step-9").remove()

    assert deleted == ["runs/hero/checkpoints/step-9/metadata.json"]
    assert left == ["step-9/a-first-name", "step-9/model/deep/shard-1", "step-9/model/shard-0"]
    assert shelf.names() == []


def test_a_link_within_a_directory_is_taken_away_and_not_followed(tmp_path: Path) -> None:
    shelf = Shelf(str(tmp_path / "checkpoints"), {})
    fill(shelf, "step-9")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_bytes(b"p" * 5000)
    (tmp_path / "checkpoints" / "step-9" / "model" / "link").symlink_to(elsewhere)
    (tmp_path / "checkpoints" / "step-9" / "file-link").symlink_to(elsewhere / "precious")

    size = shelf.at("step-9").size_bytes()
    shelf.at("step-9").remove()

    assert size is not None
    assert size < 5000
    assert (elsewhere / "precious").read_bytes() == b"p" * 5000
    assert not (tmp_path / "checkpoints" / "step-9").exists()


def test_a_directory_that_is_itself_a_link_is_left_to_people(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "weights").write_text("x")
    (tmp_path / "step-9").symlink_to(target)

    with pytest.raises(RefusedError, match="is a link"):
        directory_at(str(tmp_path / "step-9")).remove()

    assert (target / "weights").exists()
    assert (tmp_path / "step-9").is_symlink()


@pytest.mark.parametrize("ask", ["size_bytes", "remove"])
def test_a_disk_that_says_no_is_told_and_is_not_an_empty_directory(tmp_path: Path, ask: str) -> None:
    shelf = Shelf(str(tmp_path), {})
    fill(shelf, "step-9")

    with forbidden(tmp_path / "step-9"), pytest.raises(RefusedError):
        getattr(shelf.at("step-9"), ask)()

    assert (tmp_path / "step-9" / "model" / "shard-0").exists()


@pytest.mark.parametrize("ask", ["size_bytes", "exists", "remove"])
def test_a_store_that_says_no_is_told_and_is_not_an_empty_directory(s3: S3Server, ask: str) -> None:
    shelf = _in_s3(s3)
    fill(shelf, "step-9")

    with s3.refusing(), pytest.raises(RefusedError, match="cannot be verified"):
        getattr(shelf.at("step-9"), ask)()

    assert len(shelf.names()) == 3


def test_a_listing_that_names_what_is_not_below_it_deletes_nothing(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = _in_s3(s3)
    fill(shelf, "step-9", "step-90")
    found = {"runs/hero/checkpoints/step-9/model/shard-0": {"size": 1}, "runs/hero/checkpoints/step-90/x": {"size": 1}}
    monkeypatch.setattr(type(s3.files), "find", lambda *_args, **_named: found)

    with pytest.raises(UnrecognisedError, match="step-90"):
        shelf.at("step-9").remove()
    monkeypatch.undo()

    assert len(shelf.names()) == 6


def test_an_address_that_nothing_reads_is_refused_with_its_reason() -> None:
    with pytest.raises(RefusedError, match="nosuch"):
        directory_at("nosuch://bucket/step-9")


def test_a_file_in_place_of_a_directory_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "step-9").write_text("x")

    with pytest.raises(RefusedError):
        directory_at(str(tmp_path / "step-9")).remove()

    assert (tmp_path / "step-9").read_text() == "x"
