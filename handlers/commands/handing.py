"""``/hero handoff``: a run's DRI, deputy or monitoring owner changes, confirmed by both, with all that the next needs.

Source: manage-hero-run, "Babysitting"; babysit-job, "Monitoring Ownership and Duration" (transfer explicitly with the
job id, the latest signal, the W&B links and what it takes to resubmit).
"""

import json
from datetime import timedelta
from typing import NamedTuple

from bot.model.chronicle import Change, HandedOver
from bot.model.contract import Contract
from bot.model.delivery import ONE_WAY
from bot.model.person import Person
from bot.model.record import Decision, Record, Telling
from bot.model.roles import Handover, HeldRole, Role, with_roles
from bot.model.update import UpdateKind
from bot.model.value import PersonName
from bot.render.words import say_command, say_time, standing_facts
from handlers import tellings
from handlers.commands.question import Answered, Question, audit_entry, find_run, known_person, say
from handlers.context import Context, standing_of

_LASTS = timedelta(hours=24)
_HOW = (
    "handoff [RUN] NAME — offer the DRI's part to NAME, or ask for it when NAME is you",
    "handoff [RUN] NAME as owner|deputy — the same with another part",
    "handoff [RUN] accept / decline — the other's answer",
    "handoff [RUN] — what the next person needs to know",
)


class _Case(NamedTuple):
    """A command about one run's parts."""

    question: Question
    record: Record
    context: Context

    def say(self, headline: str, lines: tuple[str, ...] = ()) -> Answered:
        return say(self.question, headline, lines)


def handoff(question: Question, words: tuple[str, ...]) -> Answered:
    """Offer, ask for, accept or decline a part, or show what a hand-over is made of."""
    if _is_neither(question, words):
        headline = f"{words[0][:80]} is no run, and nobody on record; nothing was changed."
        return say(question, headline, _there_are(question))
    is_named = _is_run(question, words)
    record = find_run(question, words[:1] if is_named else ())
    if isinstance(record, Answered):
        return record
    context = question.contexts.get(record.run_id)
    if context is None:
        return say(question, f"{record.run_id} is not watched: {question.blocked.get(record.run_id, 'no contract')}")
    case = _Case(question, record, context)
    rest = words[is_named:]
    if not rest:
        return case.say(f"what the next person needs of {record.run_id}", bundle(case))
    person = known_person(question)
    return person if isinstance(person, Answered) else _by(case, person, rest)


def _is_run(question: Question, words: tuple[str, ...]) -> bool:
    """Whether the first word names a run: one that there is, or one that does not exist before what can follow it."""
    if not words or words[0] in question.contexts:
        return bool(words)
    return not _is_theirs(question, words[0]) and len(words) > 1 and _is_theirs(question, words[1])


def _is_neither(question: Question, words: tuple[str, ...]) -> bool:
    """Whether the one word that was said may be a mistyped run as well as a mistyped person."""
    return len(words) == 1 and words[0] not in question.contexts and not _is_theirs(question, words[0])


def _is_theirs(question: Question, word: str) -> bool:
    """Whether a word stands after a run's name: a person, or the answer to an offer."""
    return word in {each.name for each in question.people} or word.lower() in {"accept", "decline"}


def _there_are(question: Question) -> tuple[str, ...]:
    runs = ", ".join((*(each.run_id for each in question.records), *question.blocked)) or "none"
    people = ", ".join(sorted(each.name for each in question.people)) or "none"
    return (f"runs: {runs}", f"people: {people}")


def _by(case: _Case, person: Person, rest: tuple[str, ...]) -> Answered:
    match tuple(word.lower() for word in rest):
        case ("accept",):
            return _accept(case, person)
        case ("decline",):
            return _decline(case, person)
        case (_,):
            return _begin(case, person, PersonName(rest[0]), Role.DRI)
        case (_, "as", role) if role in tuple(Role):
            return _begin(case, person, PersonName(rest[0]), Role(role))
        case _:
            return case.say("That was not understood; a hand-over goes like this:", _HOW)


def _begin(case: _Case, person: Person, taker: PersonName, role: Role) -> Answered:
    question, record, contract = case.question, case.record, case.context.contract
    if taker not in {each.name for each in question.people}:
        known = ", ".join(sorted(each.name for each in question.people))
        return say(question, f"Nobody on record is called {taker[:40]}; there are: {known}.")
    giver = _holder(contract, role)
    if taker == giver or (role is Role.DEPUTY and taker in contract.deputies):
        return say(question, f"That part lies with {taker} already.")
    may_give = {giver, contract.dri}
    if person.name not in {*may_give, taker}:
        headline = f"Only {giver}, who has it, or {taker}, who would take it, can begin that; nothing was changed."
        return _refuse(case, headline, why="not_theirs")
    if (impossible := _why_not_asked(case, taker) or _why_too_few(case, taker, role)) is not None:
        return impossible
    by = taker if person.name == taker else giver
    offered = Handover(role=role, giver=giver, taker=taker, by=by, at=question.at, expires_at=question.at + _LASTS)
    until = say_time(offered.expires_at, question.timezone)
    who = offered.waits_for
    told = _tell(
        case,
        key=f"offered/{role}/{taker}",
        headline=f"the part of {_say(role)} is to go from {giver} to {taker}: {who}, do you agree?",
        next_=f"{who}, send `/hero handoff {record.run_id} accept` or `decline` by {until}; until then nothing changes",
        asked=who,
    )
    detail = f"{role}: {giver} to {taker}, by {person.name}"
    return _changed(case, offered, told, what="handover_begun", detail=detail)


def _why_not_asked(case: _Case, taker: PersonName) -> Answered | None:
    """Refuse to hand a part to whom Hero could ask nothing (as ``launch.people`` refuses such a DRI)."""
    channels = (*case.context.channels, *case.context.kept_out)
    taking = next(each for each in case.question.people if each.name == taker)
    if any(taking.has_account(channel) for channel in channels):
        return None
    spoken = ", ".join(channel for channel in channels if channel not in ONE_WAY) or "none"
    fix = f"give [people.{taker}] in hero.toml an account on one of them; `hero doctor` lists who can be asked"
    headline = f"Hero reaches {taker} on no channel that is configured, so nothing can be handed over."
    return case.say(headline, (f"channels: {spoken}", fix))


def _why_too_few(case: _Case, taker: PersonName, role: Role) -> Answered | None:
    """Refuse a DRI after whom fewer people could say yes than have to, as the contract's file refuses it.

    A deputy who becomes DRI leaves one fewer to decide: no request could be approved any more.
    """
    contract = case.context.contract
    if role is not Role.DRI:
        return None
    left = contract.model_copy(update={"dri": taker}).approvers
    quorum = contract.approval.quorum
    if len(left) >= quorum:
        return None
    headline = f"With {taker} as DRI no request could be approved: it takes {quorum} yeses; nothing was changed."
    fix = (
        f"make one more person a deputy first (`handoff {contract.run_id} NAME as deputy`), or write both `dri` and "
        "`deputies` into the contract's file"
    )
    return case.say(headline, (f"who could decide then: {', '.join(sorted(left))}", fix))


def _refuse(case: _Case, headline: str, *, why: str) -> Answered:
    """Answer who has no say in a hand-over, and note it: whoever has the part decides, so it is an attempt."""
    question, run_id = case.question, case.record.run_id
    audit = audit_entry(question, run_id, "command_refused", f"{question.event.text[:200]}: {why}", why=why)
    return case.say(headline).model_copy(update={"run_id": run_id, "decision": Decision(audit=(audit,))})


def _accept(case: _Case, person: Person) -> Answered:
    question, record, context = case
    offered = _offered(case)
    if isinstance(offered, Answered):
        return offered
    if person.name != offered.waits_for:
        return _refuse(case, f"That waits for {offered.waits_for}; nothing was changed.", why="not_theirs")
    if _holder(context.contract, offered.role) != offered.giver:
        return say(question, f"That part is with {offered.giver} no more; nothing was changed.")
    if (too_few := _why_too_few(case, offered.taker, offered.role)) is not None:
        return too_few
    file = _in_file(record, context.contract, offered.role)
    held = HeldRole(role=offered.role, person=offered.taker, instead_of=file, at=question.at)
    others = tuple(each for each in record.run.roles if not _is_replaced(each, held))
    after = with_roles(context.contract, (held.model_copy(update={"instead_of": _holding(context.contract, held)}),))
    run = record.run.model_copy(
        update={"roles": (*others, held), "handover": None, "promised": _promised(record, after)}
    )
    change = Change(field=offered.role, before=offered.giver, after=offered.taker)
    told = _tell(
        case._replace(context=context.model_copy(update={"contract": after})),
        key=f"done/{offered.role}/{offered.taker}",
        headline=f"{_say(offered.role)} of this run is now {offered.taker}; it was {offered.giver}",
        evidence=bundle(case),
        next_="an open request is put anew to whoever decides now; write it into the contract's file, that all see it",
        asked=offered.taker,
    )
    detail = f"{offered.role}: {offered.giver} to {offered.taker}, confirmed by both"
    decision = Decision(
        run=run,
        tell=(told,),
        happened=(HandedOver(changes=(change,), by=f"{offered.by}, confirmed by {person.name}"),),
        audit=(audit_entry(question, record.run_id, "handed_over", detail),),
    )
    said = say(question, f"Thank you: {_say(offered.role)} of {record.run_id} is now {offered.taker}.")
    return said.model_copy(update={"run_id": record.run_id, "decision": decision, "check_now": record.run_id})


def _decline(case: _Case, person: Person) -> Answered:
    offered = _offered(case)
    if isinstance(offered, Answered):
        return offered
    if person.name not in {offered.giver, offered.taker}:
        headline = f"That is between {offered.giver} and {offered.taker}; nothing was changed."
        return _refuse(case, headline, why="not_theirs")
    told = _tell(
        case,
        key=f"declined/{offered.role}/{offered.taker}",
        headline=f"declined by {person.name}: {_say(offered.role)} of this run is still {offered.giver}",
        next_="nothing has changed",
        asked=offered.by if person.name != offered.by else None,
    )
    return _changed(case, None, told, what="handover_declined", detail=f"{offered.role}: by {person.name}")


def _offered(case: _Case) -> Handover | Answered:
    question, record, _ = case
    offered = record.run.handover
    if offered is None:
        return say(question, f"Nothing of {record.run_id} is being handed over.", _HOW)
    if question.at >= offered.expires_at:
        return say(question, "That offer has expired; please begin anew. Nothing was changed.")
    return offered


def _changed(case: _Case, offered: Handover | None, told: Telling, *, what: str, detail: str) -> Answered:
    question, record, _ = case
    run = record.run.model_copy(update={"handover": offered})
    decision = Decision(run=run, tell=(told,), audit=(audit_entry(question, record.run_id, what, detail),))
    words = f"Noted; it waits for {offered.waits_for}." if offered else "Noted; nothing has changed."
    return say(question, words).model_copy(update={"run_id": record.run_id, "decision": decision})


def _holder(contract: Contract, role: Role) -> PersonName:
    """Who has a part now; the DRI answers for one that nobody has."""
    return (contract.owner or contract.dri) if role is Role.OWNER else contract.dri


def _holding(contract: Contract, held: HeldRole) -> PersonName | None:
    return contract.owner if held.role is Role.OWNER else contract.dri


def _in_file(record: Record, contract: Contract, role: Role) -> PersonName | None:
    """Whom the file names: what the contract says, less what was handed over before."""
    if role is Role.DEPUTY:
        return None
    before = next((each for each in record.run.roles if each.role is role and each.person == _of(contract, role)), None)
    return before.instead_of if before else _of(contract, role)


def _of(contract: Contract, role: Role) -> PersonName | None:
    return contract.owner if role is Role.OWNER else contract.dri


def _is_replaced(old: HeldRole, new: HeldRole) -> bool:
    return old.role is new.role and (new.role is not Role.DEPUTY or old.person == new.person)


def _promised(record: Record, after: Contract) -> dict[str, str]:
    """What is on record of the contract, with its people as they are now, so that this is recorded once."""
    if not record.run.promised:
        return {}
    people = after.model_dump(mode="json", include={"dri", "deputies", "owner"})
    return {**record.run.promised, **{name: json.dumps(value) for name, value in people.items()}}


def bundle(case: _Case) -> tuple[str, ...]:
    """Say all that the next person needs: the job, the latest signal, the links, and how it is launched again."""
    record = case.record
    standing, zone = standing_of(record, case.context.contract), case.question.timezone
    lines = [f"{name}: {value}" for name, value in standing_facts(standing, zone)]
    alive = [each for each in record.incidents if each.is_open]
    lines += [f"open: I{each.number} {each.check} ({each.finding.severity}): {each.finding.summary}" for each in alive]
    lines += [f"to decide: {each.name}, {each.reason}" for each in record.requests if each.state == "open"]
    lines.append(f"launches: {len(record.instances)}, restarts: {record.instance.number if record.instance else 0}")
    lines.append(f"W&B: {record.run.tracker_url or 'not seen yet'}")
    command = record.instance.command if record.instance else ()
    shown = record.instance.shape.get("command", "") if record.instance else ""
    lines.append(f"launch again with: {say_command(command) if command else shown or 'the command of the contract'}")
    lines.append(f"as a file: hero export-state {record.run_id}")
    return tuple(lines)


def _say(role: Role) -> str:
    return {Role.DRI: "DRI", Role.OWNER: "monitoring owner", Role.DEPUTY: "deputy"}[role]


def _tell(
    case: _Case,
    *,
    key: str,
    headline: str,
    next_: str,
    asked: PersonName | None,
    evidence: tuple[str, ...] = (),
) -> Telling:
    telling = tellings.tell(
        case.context,
        case.record,
        case.question.at,
        kind=UpdateKind.ACTION_PROGRESS,
        key=f"handover/{key}/{case.question.at.isoformat()}",
        headline=headline,
        evidence=evidence,
        next_=next_,
    )
    return telling.model_copy(update={"update": telling.update.model_copy(update={"asked": asked})})
