"""The outbox: every update on its way to a channel, committed together with what it tells of.

    due ──begun, sent──▶ sent
     │ ▲
     │ └─ later: a limit, a timeout; due again at not_before
     ├───never──▶ failed
     └───newer content for its slot, or news that makes it untrue, before it was begun──▶ superseded

Order within one channel: most severe first, then oldest. In one run's conversation nothing overtakes what is at least
as severe and still waits for its retry, so that a request never comes before the failure it is about; and what edits
the same message is sent in the order in which it was decided, whatever its severity.
"""

from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError
from sqlalchemy import ColumnElement, and_, case, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.model.delivery import ChannelName, Delivery, Later, Never, Posted, SendOutcome, Sent, Target
from bot.model.record import Telling
from bot.model.value import RunId
from bot.redaction import Redactor
from bot.store import ledger
from bot.store.rows import insert_once, to_json, unreadable
from bot.store.tables import deliveries

_DUE = "due"
_SENT = "sent"
_FAILED = "failed"
_SUPERSEDED = "superseded"

_LANES_OF_THEIR_OWN = frozenset({"live", "record"})
"""The slots that are no part of a run's conversation: while one of them waits, the conversation goes on."""

_older = deliveries.alias("older")
_is_older_and_waits = and_(
    _older.c.channel == deliveries.c.channel, _older.c.state == _DUE, _older.c.number < deliveries.c.number
)
_shares_slot = and_(_older.c.lane == deliveries.c.lane, _older.c.slot == deliveries.c.slot, deliveries.c.slot != "")
_shares_lane = and_(_older.c.lane == deliveries.c.lane, _older.c.severity >= deliveries.c.severity)


async def fill(connection: AsyncConnection, telling: Telling, at: datetime, redactor: Redactor) -> bool:
    """Make one delivery for each channel, once for each key; True when any is new."""
    is_new = False
    for channel in telling.channels:
        row = {
            "key": f"{telling.key}/{channel}",
            "channel": channel,
            "run_id": telling.update.run_id,
            "slot": telling.target.slot,
            "lane": _lane(telling),
            "severity": telling.update.severity.rank,
            "state": _DUE,
            "attempt": 0,
            "created_at": at,
            "detail": "",
            "target": telling.target.model_dump(mode="json"),
            "content": to_json(telling.update, redactor),
        }
        if (await connection.execute(insert_once(deliveries, row, "key"))).rowcount != 1:
            continue
        is_new = True
        if telling.target.slot:
            await _supersede(connection, row, at)
        if telling.replaces:
            untrue = tuple(f"{key}/{channel}" for key in telling.replaces)
            await _drop(connection, (deliveries.c.key.in_(untrue),), at)
    return is_new


def _lane(telling: Telling) -> str:
    """Return what keeps its order: a run's conversation, its live status or record, or where a command was given."""
    target, run_id = telling.target, telling.update.run_id or ""
    if target.direct_to:
        return f"{run_id} to {target.direct_to}"
    if target.conversation:
        return f"{run_id} at {target.conversation} {target.thread}"
    return f"{run_id} {target.slot}" if target.slot in _LANES_OF_THEIR_OWN else run_id


async def _supersede(connection: AsyncConnection, row: dict[str, Any], at: datetime) -> None:
    """Drop what was to be shown in the same message and was not begun: what is begun may have reached people."""
    same_message = (
        deliveries.c.channel == row["channel"],
        deliveries.c.lane == row["lane"],
        deliveries.c.slot == row["slot"],
        deliveries.c.key != row["key"],
    )
    await _drop(connection, same_message, at)


async def _drop(connection: AsyncConnection, which: tuple[ColumnElement[bool], ...], at: datetime) -> None:
    not_begun = deliveries.c.state == _DUE, deliveries.c.attempt == 0
    await connection.execute(update(deliveries).where(*which, *not_begun).values(state=_SUPERSEDED, ended_at=at))


async def due(connection: AsyncConnection, channel: ChannelName, at: datetime, limit: int) -> tuple[Delivery, ...]:
    """Return what may be sent now, in the order in which to send it."""
    is_overtaking = (
        select(_older.c.number)
        .where(
            _is_older_and_waits,
            or_(
                and_(_shares_lane, _older.c.not_before > at),
                and_(_shares_slot, or_(_older.c.not_before > at, _older.c.severity < deliveries.c.severity)),
            ),
        )
        .exists()
    )
    statement = (
        select(deliveries)
        .where(deliveries.c.channel == channel, *_is_due(at), ~is_overtaking)
        .order_by(deliveries.c.severity.desc(), deliveries.c.number)
        .limit(limit)
    )
    return tuple(_delivery(row) for row in (await connection.execute(statement)).mappings())


def _is_due(at: datetime) -> tuple[ColumnElement[bool], ...]:
    return deliveries.c.state == _DUE, or_(deliveries.c.not_before.is_(None), deliveries.c.not_before <= at)


async def begin(connection: AsyncConnection, number: int, at: datetime) -> Delivery | None:
    """Note the intent to send; None when it is not to be sent now.

    That is: it was superseded or ended meanwhile, or an older one that it must not overtake is still waiting. The
    delivery counts the sends begun *before* this one, and says when the first of them was.
    """
    is_overtaking = select(_older.c.number).where(_is_older_and_waits, or_(_shares_lane, _shares_slot)).exists()
    statement = select(deliveries).where(deliveries.c.number == number, deliveries.c.state == _DUE, ~is_overtaking)
    row = (await connection.execute(statement)).mappings().one_or_none()
    if row is None:
        return None
    delivery = _delivery(row)
    first_intent_at = delivery.first_intent_at or at
    begun = {"attempt": delivery.attempt + 1, "first_intent_at": first_intent_at, "not_before": None}
    await connection.execute(update(deliveries).where(deliveries.c.number == number).values(begun))
    return delivery.model_copy(update={"first_intent_at": first_intent_at})


async def end(
    connection: AsyncConnection,
    number: int,
    outcome: SendOutcome,
    *,
    at: datetime,
    retry_after: timedelta | None,
    redactor: Redactor,
) -> None:
    """Note what became of a send that was begun; the message of a slot is remembered for its next edit."""
    this = deliveries.c.number == number, deliveries.c.state == _DUE
    row = (await connection.execute(select(deliveries).where(*this))).mappings().one_or_none()
    if row is None:
        return
    changes: dict[str, Any]
    match outcome:
        case Sent():
            changes = {"state": _SENT, "ended_at": at, "detail": ""}
            await _remember(connection, _delivery(row), outcome)
        case Never():
            changes = {"state": _FAILED, "ended_at": at, "detail": redactor.text(f"{outcome.reason}; {outcome.fix}")}
        case Later():
            wait = retry_after if retry_after is not None else outcome.after or timedelta()
            changes = {"not_before": at + wait, "detail": redactor.text(outcome.reason)}
    await connection.execute(update(deliveries).where(*this).values(changes))


async def _remember(connection: AsyncConnection, delivery: Delivery, sent: Sent) -> None:
    if delivery.target.slot and delivery.run_id is not None:
        posted = Posted(
            channel=delivery.channel,
            run_id=delivery.run_id,
            slot=delivery.target.slot,
            message_id=sent.message_id,
            link=sent.link,
        )
        await ledger.save(connection, posted)


async def told_since(connection: AsyncConnection, run_id: RunId, since: datetime) -> dict[ChannelName, int]:
    """Return how many messages about a run each channel got since then.

    What shares a slot is one message that was edited; the live status and the record make nobody's phone ring.
    """
    message = case((deliveries.c.slot == "", deliveries.c.key), else_=deliveries.c.lane + " " + deliveries.c.slot)
    statement = (
        select(deliveries.c.channel, func.count(message.distinct()))
        .where(
            deliveries.c.run_id == run_id,
            deliveries.c.state == _SENT,
            deliveries.c.ended_at >= since,
            deliveries.c.slot.not_in(_LANES_OF_THEIR_OWN),
        )
        .group_by(deliveries.c.channel)
    )
    return {ChannelName(channel): count for channel, count in await connection.execute(statement)}


async def counts(connection: AsyncConnection) -> dict[str, int]:
    grouped = await connection.execute(select(deliveries.c.state, func.count()).group_by(deliveries.c.state))
    states = {state: count for state, count in grouped}  # noqa: C416 - dict() of a Row's sequence confuses mypy
    return {"deliveries_due": states.get(_DUE, 0), "deliveries_failed": states.get(_FAILED, 0)}


async def prune(connection: AsyncConnection, before: datetime) -> int:
    """Forget what was sent or superseded before then; what failed is kept for people."""
    is_over = deliveries.c.state.in_((_SENT, _SUPERSEDED))
    return (await connection.execute(delete(deliveries).where(is_over, deliveries.c.ended_at < before))).rowcount


def _delivery(row: Any) -> Delivery:
    names = "number", "key", "channel", "run_id", "created_at", "attempt", "first_intent_at"
    try:
        return Delivery.model_validate(
            {name: row[name] for name in names} | {"target": Target(**row["target"]), "update": row["content"]}
        )
    except ValidationError as error:
        raise unreadable(f"delivery {row['number']}", error) from error
