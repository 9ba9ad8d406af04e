"""Each run has a record: entries that are only ever added, each with a hash over itself and the one before."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "chronicle",
        sa.Column("run_id", sa.String, sa.ForeignKey("runs.run_id"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("prev", sa.String, nullable=False),
        sa.Column("hash", sa.String, nullable=False),
    )
    refuse = "BEGIN SELECT RAISE(ABORT, 'the record of a run is append-only'); END"
    op.execute(f"CREATE TRIGGER chronicle_is_not_changed BEFORE UPDATE ON chronicle {refuse}")
    op.execute(f"CREATE TRIGGER chronicle_is_not_cut BEFORE DELETE ON chronicle {refuse}")
    # INSERT OR REPLACE removes a row without asking the trigger above; nor is anything slipped in.
    newest = "(SELECT coalesce(max(seq), 0) FROM chronicle WHERE run_id = NEW.run_id)"
    op.execute(
        f"CREATE TRIGGER chronicle_grows_at_its_end BEFORE INSERT ON chronicle WHEN NEW.seq <> {newest} + 1 {refuse}"
    )
