"""The tables as they are now; ``migrations/`` is how a database comes to have them, and a test compares the two.

A value is stored whole, as JSON, beside the few columns that are asked for. So a new field of a value needs no
migration as long as it has a default, while a field that goes away needs one that takes it out of the stored values.
"""

from datetime import UTC, datetime

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)


class UtcDateTime(TypeDecorator[datetime]):
    """Aware UTC in and out; SQLite itself keeps no zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - the signature is SQLAlchemy's
        if value is None:
            return None
        if value.tzinfo is None or value.utcoffset() is None:
            msg = f"{value!r} has no time zone; take the time from the Clock"
            raise ValueError(msg)
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - as above
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = MetaData()

runs = Table(
    "runs",
    metadata,
    Column("run_id", String, primary_key=True),
    Column("value", JSON, nullable=False),
)

instances = Table(
    "instances",
    metadata,
    Column("run_id", ForeignKey("runs.run_id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("value", JSON, nullable=False),
)

memories = Table(
    "memories",
    metadata,
    Column("run_id", ForeignKey("runs.run_id"), primary_key=True),
    Column("check_id", String, primary_key=True),
    Column("memory", Text, nullable=False),
)

incidents = Table(
    "incidents",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("run_id", ForeignKey("runs.run_id"), nullable=False),
    Column("is_resolved", Boolean, nullable=False),
    Column("value", JSON, nullable=False),
    Index("incidents_by_run", "run_id", "is_resolved"),
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("run_id", ForeignKey("runs.run_id"), nullable=False),
    Column("check_id", String, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("value", JSON, nullable=False),
    Index("verdicts_by_check", "run_id", "check_id", "number"),
)
"""Every change of a check's verdict, so that any past minute can be explained."""

requests = Table(
    "requests",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("run_id", ForeignKey("runs.run_id"), nullable=False),
    Column("state", String, nullable=False),
    Column("digest", String, nullable=False),
    Column("value", JSON, nullable=False),
    Index("requests_by_run", "run_id", "state"),
)

actions = Table(
    "actions",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("run_id", ForeignKey("runs.run_id"), nullable=False),
    Column("request", Integer, nullable=False),
    Column("state", String, nullable=False),
    Column("value", JSON, nullable=False),
    # One yes is carried out once, whatever the code above believes (field report R43).
    UniqueConstraint("request", name="one_action_a_request"),
    Index("actions_by_run", "run_id", "state"),
    Index(
        "one_granted_action_a_run",
        "run_id",
        unique=True,
        sqlite_where=text("state = 'granted'"),
        postgresql_where=text("state = 'granted'"),
    ),
)

counters = Table(
    "counters",
    metadata,
    Column("name", String, primary_key=True),
    Column("next", Integer, nullable=False),
)
"""The next free numbers of incidents, requests and actions: kept apart, so that a number is never given twice."""

inbox = Table(
    "inbox",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("source", String, nullable=False),
    Column("event_id", String, nullable=False),
    Column("payload", JSON, nullable=False),
    Column("received_at", UtcDateTime, nullable=False),
    Column("state", String, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("not_before", UtcDateTime, nullable=True),
    Column("ended_at", UtcDateTime, nullable=True),
    Column("detail", Text, nullable=False),
    UniqueConstraint("source", "event_id", name="one_row_an_event"),
    Index("inbox_by_state", "state", "number"),
    sqlite_autoincrement=True,
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("key", String, nullable=False),
    Column("channel", String, nullable=False),
    Column("run_id", String, nullable=True),
    Column("slot", String, nullable=False),
    Column("lane", String, nullable=False),
    Column("severity", Integer, nullable=False),
    Column("state", String, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("first_intent_at", UtcDateTime, nullable=True),
    Column("not_before", UtcDateTime, nullable=True),
    Column("ended_at", UtcDateTime, nullable=True),
    Column("detail", Text, nullable=False),
    Column("target", JSON, nullable=False),
    Column("content", JSON, nullable=False),
    UniqueConstraint("key", name="one_delivery_a_key"),
    Index("deliveries_by_state", "channel", "state", "lane"),
    sqlite_autoincrement=True,
)

posted = Table(
    "posted",
    metadata,
    Column("channel", String, primary_key=True),
    Column("run_id", String, primary_key=True),
    Column("slot", String, primary_key=True),
    Column("message_id", String, nullable=False),
    Column("link", String, nullable=False),
    Index("posted_by_message", "channel", "message_id"),
)

cursors = Table(
    "cursors",
    metadata,
    Column("name", String, primary_key=True),
    Column("position", Text, nullable=False),
)

leases = Table(
    "leases",
    metadata,
    Column("name", String, primary_key=True),
    Column("holder", String, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("run_id", String, nullable=True),
    Column("who", String, nullable=False),
    Column("what", String, nullable=False),
    Column("detail", Text, nullable=False),
    Column("why", Text, nullable=False, server_default=""),
    Column("digest", Text, nullable=False, server_default=""),
    Column("link", Text, nullable=False, server_default=""),
    Index("audit_by_run", "run_id", "number"),
    sqlite_autoincrement=True,
)
"""Append-only: triggers made by the first migration abort every change and removal."""

chronicle = Table(
    "chronicle",
    metadata,
    Column("run_id", ForeignKey("runs.run_id"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("payload", Text, nullable=False),
    Column("prev", String, nullable=False),
    Column("hash", String, nullable=False),
)
"""The records of runs: append-only as ``audit``, and hash-chained. Texts, since the hash covers what is stored."""
