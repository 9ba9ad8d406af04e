"""Coming to the tables of this Hero from an older file, and refusing a newer one."""

import shutil
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from bot.errors import ConfigurationError, StoreError
from bot.model.chronicle import MilestoneReached
from bot.model.record import Decision
from bot.model.run import Run
from bot.redaction import Redactor
from bot.store import upgrade as upgrades
from bot.store.store import Store
from bot.store.tables import metadata
from tests.fakes.clock import START, FakeClock
from tests.fakes.decisions import RUN

NEXT = """
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE TABLE notes (line TEXT)")
    {then}
"""


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """A database of the first revision with a run in it, whose last commit is still in the write-ahead log."""
    file = tmp_path / "hero.db"
    store = await Store.open(f"sqlite:///{file}", FakeClock(), Redactor())
    async with store.transaction() as tx:
        await tx.apply(Decision(run=Run(run_id=RUN)), RUN, START)
    await store.close()
    return file


def add_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str = "") -> None:
    """Let Hero know one migration more than it does."""
    folder = tmp_path / "newer" / "migrations"
    shutil.copytree(Path(upgrades.__file__).with_name("migrations"), folder)
    (folder / "versions" / "v0005_notes.py").write_text(NEXT.format(then=then), encoding="utf-8")
    monkeypatch.setattr(upgrades, "__file__", str(folder.with_name("upgrade.py")))


def upgrade(file: Path) -> Path | None:
    return upgrades.upgrade(file, START, timedelta(milliseconds=100))


OF_0002 = """
INSERT INTO runs VALUES ('hero-12d8b6f0', '{"run_id": "hero-12d8b6f0", "state": "running"}');
INSERT INTO instances VALUES ('hero-12d8b6f0', 0, '{"run_id": "hero-12d8b6f0", "number": 0, "job_id": "/ann/hero",
    "submitted_at": null, "launched_at": "2026-11-28T00:00:00Z"}');
INSERT INTO audit (at, run_id, who, what, detail) VALUES ('2026-11-28 00:00:00', 'hero-12d8b6f0', 'hero', 'seen', '');
"""


async def test_a_database_of_0002_comes_with_all_it_holds_and_can_keep_a_record(tmp_path: Path) -> None:
    file = tmp_path / "hero.db"
    engine = create_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        config = upgrades._config()
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
    engine.dispose()
    with closing(sqlite3.connect(file)) as written:
        written.executescript(OF_0002)

    store = await Store.open(f"sqlite:///{file}", FakeClock(), Redactor())
    async with store.transaction() as tx:
        await tx.apply(Decision(happened=(MilestoneReached(step=500),)), RUN, START)
    record, entries, audit = await store.record(RUN), await store.chronicle(RUN), await store.audit(RUN)
    await store.close()

    assert record is not None
    assert [each.job_id for each in record.instances] == ["/ann/hero"]
    assert [(each.what, each.why, each.digest, each.link) for each in audit] == [("seen", "", "", "")]
    assert [each.happening for each in entries] == [MilestoneReached(step=500)]


def ask(file: Path, question: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(question).fetchall()


def test_the_migrations_make_the_tables_that_the_code_knows(file: Path) -> None:
    engine = create_engine(f"sqlite:///{file}")
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
    engine.dispose()

    assert differences == []


def test_an_up_to_date_database_is_left_alone(file: Path) -> None:
    assert upgrade(file) is None
    assert list(file.parent.glob("*.backup")) == []


def test_a_copy_is_put_aside_before_a_database_is_upgraded(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_migration(tmp_path, monkeypatch)

    copy = upgrade(file)

    assert copy == file.with_name("hero.db.0004-20261129T030000Z.backup")
    assert ask(copy, "SELECT run_id FROM runs") == [(RUN,)]
    assert ask(copy, "SELECT version_num FROM alembic_version") == [("0004",)]
    assert ask(file, "SELECT version_num FROM alembic_version") == [("0005",)]
    assert ask(file, "SELECT run_id FROM runs") == [(RUN,)]
    assert not list(tmp_path.glob("*.partial"))


def test_a_migration_that_fails_leaves_the_database_as_it_was(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_migration(tmp_path, monkeypatch, then='op.execute("SELECT line FROM nowhere")')

    with pytest.raises(StoreError, match="no such table: nowhere"):
        upgrade(file)

    assert ask(file, "SELECT version_num FROM alembic_version") == [("0004",)]
    assert ask(file, "SELECT name FROM sqlite_master WHERE name = 'notes'") == []


async def test_a_database_of_a_newer_hero_is_refused_and_left_alone(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0099'")

    with pytest.raises(ConfigurationError, match=r"was written by a newer Hero .*0099.* knows up to 0004"):
        await Store.open(f"sqlite:///{file}", FakeClock(), Redactor())

    assert ask(file, "SELECT version_num FROM alembic_version") == [("0099",)]


async def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "recipes.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")

    with pytest.raises(ConfigurationError, match=r"holds tables of another program \(recipes\)"):
        await Store.open(f"sqlite:///{file}", FakeClock(), Redactor())
