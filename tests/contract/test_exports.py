"""What lies at an export root is read from a real directory: nothing, something, or not to be told."""

from datetime import timedelta
from pathlib import Path

from bot.model.contract import Contract
from bot.model.reading import Known, Unknown
from bot.sources.exports import ExportReader
from tests.fakes.clock import FakeClock
from tests.fakes.snapshots import AT, contract


def exporting(tmp_path: Path, root: str | None = "export") -> Contract:
    return contract(checkout=str(tmp_path), export_root=root)


async def test_the_size_of_all_that_was_exported_is_read_and_an_empty_tree_is_nothing(tmp_path: Path) -> None:
    reader = ExportReader(FakeClock(AT))

    absent = await reader.exported_bytes(exporting(tmp_path))
    (tmp_path / "export" / "model").mkdir(parents=True)
    empty = await reader.exported_bytes(exporting(tmp_path))
    (tmp_path / "export" / "model" / "weights.safetensors").write_bytes(b"x" * 4096)
    there = await reader.exported_bytes(exporting(tmp_path))

    assert absent == empty == Known(value=0, at=AT)
    assert there == Known(value=4096, at=AT)


async def test_without_an_export_root_there_is_nothing_to_read(tmp_path: Path) -> None:
    assert await ExportReader(FakeClock(AT)).exported_bytes(exporting(tmp_path, None)) == Known(value=None, at=AT)


async def test_a_directory_that_cannot_be_read_is_unknown_and_not_empty(tmp_path: Path) -> None:
    (tmp_path / "export").symlink_to("export")

    reading = await ExportReader(FakeClock(AT)).exported_bytes(exporting(tmp_path))

    assert isinstance(reading, Unknown)


async def test_a_kind_of_storage_that_is_not_installed_is_unknown_and_not_empty(tmp_path: Path) -> None:
    reader = ExportReader(FakeClock(AT), deadline=timedelta(seconds=30))

    reading = await reader.exported_bytes(exporting(tmp_path, "nosuch://bucket/export"))

    assert isinstance(reading, Unknown)
