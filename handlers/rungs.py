"""What the ladder of escalation says, and to whom: what it is about, since when, what was tried, how it stops. Pure."""

from datetime import datetime
from typing import assert_never

from bot.model.delivery import ChannelName, Target
from bot.model.durations import say_duration
from bot.model.ladder import Rung
from bot.model.record import Record, Telling
from bot.model.update import UpdateKind
from bot.model.value import PersonName
from bot.model.verdict import Severity
from bot.render.words import say_time
from handlers import tellings
from handlers.context import Context
from handlers.waiting import Matter, accounts_of

_WORDS = {
    Rung.THREAD: "reminder in the conversation",
    Rung.MENTION: "mention of the DRI",
    Rung.DIRECT: "direct message",
    Rung.DEPUTIES: "the deputies",
    Rung.EMAIL: "e-mail",
    Rung.PAGER: "pager",
}
_MOST_SHOWN = 10


def rung_messages(
    record: Record, context: Context, rung: Rung, about: tuple[Matter, ...], at: datetime
) -> tuple[Telling, ...]:
    """Return the messages of one rung: in the conversation, to each account, or by mail."""
    dri, deputies = context.contract.dri, context.contract.deputies
    direct: tuple[tuple[PersonName, ChannelName, str], ...] = ()
    spoken: tuple[Telling, ...] = ()
    match rung:
        case Rung.THREAD:
            spoken = (say_waiting(record, context, rung, about, at),)
        case Rung.MENTION:
            spoken = (say_waiting(record, context, rung, about, at, asked=(dri,)),)
        case Rung.DEPUTIES:
            spoken = (say_waiting(record, context, rung, about, at, asked=(dri, *deputies)),)
            direct = accounts_of(context, deputies)
        case Rung.DIRECT:
            direct = accounts_of(context, (dri,))
        case Rung.EMAIL:
            asked = (dri, *(deputies if any(m.is_critical for m in about) else ()))
            mail = say_waiting(record, context, rung, about, at, asked=asked)
            spoken = (mail.model_copy(update={"channels": (ChannelName.EMAIL,)}),)
        case Rung.PAGER:
            pass
        case _:
            assert_never(rung)
    return (
        *spoken,
        *(
            _direct(record, context, rung, about, at, to=name, channel=channel, account=a)
            for name, channel, a in direct
        ),
    )


def _direct(
    record: Record,
    context: Context,
    rung: Rung,
    about: tuple[Matter, ...],
    at: datetime,
    *,
    to: PersonName,
    channel: ChannelName,
    account: str,
) -> Telling:
    said = say_waiting(record, context, rung, about, at, asked=(to,))
    return said.model_copy(
        update={"key": f"{said.key}/{to}", "channels": (channel,), "target": Target(direct_to=account)}
    )


def say_waiting(
    record: Record,
    context: Context,
    rung: Rung,
    about: tuple[Matter, ...],
    at: datetime,
    *,
    asked: tuple[PersonName, ...] = (),
) -> Telling:
    """Say what it is about, since when, what was tried, and how it stops."""
    first = about[0]
    waited = say_duration(at - first.since)
    headline = f"{first.name} has waited {waited} for a person: {first.says}"
    if len(about) > 1:
        headline = f"{len(about)} things wait for a person, the first since {waited}: {first.name}, {first.says}"
    telling = tellings.tell(
        context,
        record,
        at,
        kind=UpdateKind.ESCALATION,
        key=f"escalation/{'-'.join(m.name for m in about)}/{rung}/{at.isoformat()}",
        headline=headline,
        severity=Severity.CRITICAL if any(m.is_critical for m in about) else Severity.WARNING,
        evidence=_evidence(context, about),
        next_=_how_to_stop(record, about),
    )
    also = tuple(name for name in dict.fromkeys(asked[1:]) if name != asked[0])
    update = telling.update.model_copy(update={"asked": asked[0] if asked else None, "also_asked": also})
    return telling.model_copy(update={"update": update})


def _evidence(context: Context, about: tuple[Matter, ...]) -> tuple[str, ...]:
    zone = context.rules.timezone
    lines: list[str] = []
    for matter in about[:_MOST_SHOWN]:
        lines.append(f"{matter.name} {matter.says}; told {say_time(matter.since, zone)}")
        lines.append(f"{matter.name} {matter.more}")
        rungs = sorted({(each.at, each.rung) for each in matter.climb.rungs})
        tried = ", ".join(f"{_WORDS[rung]} {say_time(at, zone)}" for at, rung in rungs)
        lines.append(f"{matter.name} tried so far: {tried or 'the first message in the conversation'}")
    if len(about) > _MOST_SHOWN:
        lines.append(f"and {len(about) - _MOST_SHOWN} more: `/hero incidents {context.contract.run_id}`")
    return tuple(lines)


def _how_to_stop(record: Record, about: tuple[Matter, ...]) -> str:
    how = "; ".join(matter.stops for matter in about[:3])
    link = link_of(record)
    return f"to stop this: {how}, or say anything in the run's conversation{f': {link}' if link else ''}"


def link_of(record: Record) -> str:
    """Return where the run is talked about, for those who are told elsewhere."""
    return next((posted.link for posted in record.posted if posted.slot == "thread" and posted.link), "")
