"""The tables of the first release.

Written out rather than taken from ``bot.store.tables``: a migration must go on doing what it did when it was released.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _runs()
    _asking()
    _edges()
    _audit()


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String, primary_key=True),
        sa.Column("value", sa.JSON, nullable=False),
    )
    op.create_table(
        "instances",
        sa.Column("run_id", sa.String, sa.ForeignKey("runs.run_id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("value", sa.JSON, nullable=False),
    )
    op.create_table(
        "memories",
        sa.Column("run_id", sa.String, sa.ForeignKey("runs.run_id"), primary_key=True),
        sa.Column("check_id", sa.String, primary_key=True),
        sa.Column("memory", sa.Text, nullable=False),
    )
    op.create_table(
        "incidents",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("run_id", sa.String, sa.ForeignKey("runs.run_id"), nullable=False),
        sa.Column("is_resolved", sa.Boolean, nullable=False),
        sa.Column("value", sa.JSON, nullable=False),
    )
    op.create_index("incidents_by_run", "incidents", ["run_id", "is_resolved"])


def _asking() -> None:
    op.create_table(
        "requests",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("run_id", sa.String, sa.ForeignKey("runs.run_id"), nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("value", sa.JSON, nullable=False),
    )
    op.create_index("requests_by_run", "requests", ["run_id", "state"])
    op.create_table(
        "actions",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("run_id", sa.String, sa.ForeignKey("runs.run_id"), nullable=False),
        sa.Column("request", sa.Integer, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("value", sa.JSON, nullable=False),
        sa.UniqueConstraint("request", name="one_action_a_request"),
    )
    op.create_index("actions_by_run", "actions", ["run_id", "state"])
    granted = sa.text("state = 'granted'")
    op.create_index(
        "one_granted_action_a_run",
        "actions",
        ["run_id"],
        unique=True,
        sqlite_where=granted,
        postgresql_where=granted,
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("next", sa.Integer, nullable=False),
    )


def _edges() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "inbox",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("source", sa.String, nullable=False),
        sa.Column("event_id", sa.String, nullable=False),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.Column("received_at", moment, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("not_before", moment, nullable=True),
        sa.Column("ended_at", moment, nullable=True),
        sa.Column("detail", sa.Text, nullable=False),
        sa.UniqueConstraint("source", "event_id", name="one_row_an_event"),
        sqlite_autoincrement=True,
    )
    op.create_index("inbox_by_state", "inbox", ["state", "number"])
    op.create_table(
        "deliveries",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("key", sa.String, nullable=False),
        sa.Column("channel", sa.String, nullable=False),
        sa.Column("run_id", sa.String, nullable=True),
        sa.Column("slot", sa.String, nullable=False),
        sa.Column("lane", sa.String, nullable=False),
        sa.Column("severity", sa.Integer, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("first_intent_at", moment, nullable=True),
        sa.Column("not_before", moment, nullable=True),
        sa.Column("ended_at", moment, nullable=True),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("target", sa.JSON, nullable=False),
        sa.Column("content", sa.JSON, nullable=False),
        sa.UniqueConstraint("key", name="one_delivery_a_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("deliveries_by_state", "deliveries", ["channel", "state", "lane"])
    op.create_table(
        "posted",
        sa.Column("channel", sa.String, primary_key=True),
        sa.Column("run_id", sa.String, primary_key=True),
        sa.Column("slot", sa.String, primary_key=True),
        sa.Column("message_id", sa.String, nullable=False),
        sa.Column("link", sa.String, nullable=False),
    )
    op.create_index("posted_by_message", "posted", ["channel", "message_id"])
    op.create_table(
        "cursors",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("position", sa.Text, nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("holder", sa.String, nullable=False),
        sa.Column("fence", sa.Integer, nullable=False),
        sa.Column("expires_at", moment, nullable=False),
    )


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("run_id", sa.String, nullable=True),
        sa.Column("who", sa.String, nullable=False),
        sa.Column("what", sa.String, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("audit_by_run", "audit", ["run_id", "number"])
    refuse = "BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
    op.execute(f"CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit {refuse}")
    op.execute(f"CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit {refuse}")
    # INSERT OR REPLACE removes a row without asking the trigger above.
    is_there = "WHEN EXISTS (SELECT 1 FROM audit WHERE number = NEW.number)"
    op.execute(f"CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON audit {is_there} {refuse}")


def downgrade() -> None:
    """There is no way back but the copy of the file that is made before each upgrade."""
    msg = "the store is not downgraded; put the copy back that was made before the upgrade"
    raise NotImplementedError(msg)
