"""``/hero allow``: the DRI's yes in advance, bounded in number, time and kind; ``/hero revoke`` ends it. Pure."""

import re
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from bot.model.allowance import MOST_USES, Allowance, AllowedKind
from bot.model.durations import parse_duration, say_duration
from bot.model.record import Decision, Record
from bot.model.update import UpdateKind
from bot.model.value import RunId
from bot.render.words import say_time
from handlers import tellings
from handlers.commands.question import Answered, Question, audit_entry, find_run, known_person, refuse_words, say
from handlers.context import Context

_LONGEST = timedelta(hours=72)
_DEED = "relaunch"
"""All that can be allowed in advance."""
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_HOW = (
    "allow [RUN] relaunch 3 until 09:00 for infra — up to three, until 09:00",
    "allow [RUN] relaunch 1 until 8h for preemption|hardware — or of one kind alone",
    "allow [RUN] — what is allowed now",
    "revoke [RUN] — nothing any more",
)
_NEVER = "never for a living job, another lineage, changed code or configuration, code bugs or numerical failures"


def allow(question: Question, words: tuple[str, ...]) -> Answered:
    """Take a yes in advance, or show the one there is."""
    found = _run(question, words)
    if isinstance(found, Answered):
        return found
    record, context, rest = found
    if not rest:
        return say(question, _say_now(record, question), _HOW)
    refused = _unless_dri(question, context)
    if isinstance(refused, Answered):
        return refused
    match tuple(word.lower() for word in rest):
        case (word, number, "until", until, "for", kind) if word == _DEED and kind in tuple(AllowedKind):
            return _allow(question, record, context, number, until, kind=AllowedKind(kind))
        case _:
            headline = "That was not understood; nothing is allowed by it."
            return _refuse(question, record.run_id, headline, why="not_understood", lines=_HOW)


def revoke(question: Question, words: tuple[str, ...]) -> Answered:
    """End what was allowed in advance."""
    found = _run(question, words)
    if isinstance(found, Answered):
        return found
    record, context, rest = found
    person = known_person(question)
    if isinstance(person, Answered):
        return person
    if (refused := refuse_words(question, rest, "revoke [RUN]")) is not None:
        return refused
    allowance = record.run.allowance
    if allowance is None or not allowance.is_alive(question.at):
        return say(question, "Nothing is allowed in advance; every relaunch is asked about.")
    if person.name not in {*context.contract.approvers, *context.contract.deputies, context.contract.owner}:
        who = f"{context.contract.dri}, a deputy or the monitoring owner"
        return _refuse(question, record.run_id, f"Only {who} can end it.", why="not_theirs")
    after = allowance.revoked(person.name)
    return _commit(question, record, context, after, f"{after.name} is revoked by {person.name}", what="revoked")


def _allow(
    question: Question, record: Record, context: Context, number: str, until: str, *, kind: AllowedKind
) -> Answered:
    if not (number.isascii() and number.isdigit() and 1 <= int(number) <= MOST_USES):
        headline = f"{number[:20]!r} is no number from 1 to {MOST_USES}; nothing is allowed by it."
        return _refuse(question, record.run_id, headline, why="number")
    end = _end(until, question.at, question.timezone)
    if isinstance(end, str):
        return _refuse(question, record.run_id, f"{end} Nothing is allowed by it.", why="end")
    if context.contract.approval.quorum > 1:
        headline = "This run needs more than one yes, so nothing can be allowed in advance."
        return _refuse(question, record.run_id, headline, why="quorum")
    before = record.run.allowance
    allowance = Allowance(
        number=before.number + 1 if before else 1,
        kind=kind,
        most=int(number),
        until=end,
        by=context.contract.dri,
        at=question.at,
        via=f"{question.event.actor.platform}:{question.event.place.key}:{question.event.place.message}",
    )
    times = "1 relaunch" if allowance.most == 1 else f"{allowance.most} relaunches"
    headline = (
        f"{allowance.name}: {allowance.by} allows up to {times} in advance until "
        f"{say_time(end, question.timezone)}, for {kind} failures"
    )
    return _commit(question, record, context, allowance, headline, what="allowed")


def _commit(
    question: Question, record: Record, context: Context, after: Allowance, headline: str, *, what: str
) -> Answered:
    told = tellings.tell(
        context,
        record,
        question.at,
        kind=UpdateKind.ACTION_PROGRESS,
        key=f"allowance/{after.number}/{what}/{question.at.isoformat()}",
        headline=headline,
        evidence=(f"{_NEVER}; two uses at the same step end it",) if not after.ended else (),
        next_="each use is announced at once" if not after.ended else "every relaunch is asked about again",
    )
    run = record.run.model_copy(update={"allowance": after})
    detail = f"{after.name}: {after.kind}, {after.most} until {after.until.isoformat()}; {after.ended or 'alive'}"
    decision = Decision(run=run, tell=(told,), audit=(audit_entry(question, record.run_id, what, detail),))
    return say(question, f"Noted: {headline}.").model_copy(update={"run_id": record.run_id, "decision": decision})


def _unless_dri(question: Question, context: Context) -> Answered | None:
    person = known_person(question)
    if isinstance(person, Answered):
        return person
    if person.name != context.contract.dri:
        headline = f"Only {context.contract.dri}, the DRI, can allow something in advance."
        return _refuse(question, context.contract.run_id, headline, why="not_the_dri")
    return None


def _refuse(question: Question, run_id: RunId, headline: str, *, why: str, lines: tuple[str, ...] = ()) -> Answered:
    """Answer a try to allow or to end something that has no effect, and note it: it is an attempt at a decision."""
    audit = audit_entry(question, run_id, "command_refused", f"{question.event.text[:200]}: {why}", why=why)
    answer = say(question, headline, lines)
    return answer.model_copy(update={"run_id": run_id, "decision": Decision(audit=(audit,))})


def _run(question: Question, words: tuple[str, ...]) -> tuple[Record, Context, tuple[str, ...]] | Answered:
    is_named = _is_name(question, words)
    record = find_run(question, words[:1] if is_named else ())
    if isinstance(record, Answered):
        return record
    context = question.contexts.get(record.run_id)
    if context is None:
        return say(question, f"{record.run_id} is not watched: {question.blocked.get(record.run_id, 'no contract')}")
    return record, context, words[is_named:]


def _is_name(question: Question, words: tuple[str, ...]) -> bool:
    """Whether the first word names a run, be it one that does not exist: only ``relaunch`` may stand in its place."""
    if not words or words[0] in question.contexts:
        return bool(words)
    first, second = words[0].lower(), words[1].lower() if len(words) > 1 else _DEED
    return first != _DEED and second == _DEED


def _end(text: str, at: datetime, timezone: str) -> datetime | str:
    """Return when it ends: a time of day, the next one in people's zone, or so long from now; else what is wrong."""
    if found := _CLOCK.fullmatch(text):
        zone = ZoneInfo(timezone)
        today = at.astimezone(zone).date()
        # In the night that the clocks go back it may come twice; in UTC the two can be told apart.
        ends = (
            datetime.combine(today + timedelta(days=day), time(int(found[1]), int(found[2]), fold=fold), zone)
            for day in (0, 1)
            for fold in (0, 1)
        )
        return min(end for each in ends if (end := each.astimezone(UTC)) > at)
    try:
        length = parse_duration(text)
    except ValueError:
        length = text
    if not isinstance(length, timedelta) or not timedelta() < length <= _LONGEST:
        return f"{text[:20]!r} is no time of day like 09:00, and no length up to {say_duration(_LONGEST)}."
    return at + length


def _say_now(record: Record, question: Question) -> str:
    allowance = record.run.allowance
    if allowance is None or not allowance.is_alive(question.at):
        over = f" ({allowance.name} is over: {allowance.ended})" if allowance is not None and allowance.ended else ""
        return f"Nothing is allowed in advance; every relaunch of {record.run_id} is asked about{over}."
    until = say_time(allowance.until, question.timezone)
    left = f"{allowance.left} of {allowance.most} left until {until}, for {allowance.kind} failures"
    return f"{allowance.name} of {allowance.by}: {left}."
