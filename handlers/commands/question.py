"""A command, what is on record to answer it from, and the answer. Pure."""

import difflib
import hashlib
from collections.abc import Collection, Mapping
from datetime import datetime

from bot.model.audit import AuditEntry
from bot.model.chronicle import Entry
from bot.model.event import Commanded
from bot.model.person import Person, Standing
from bot.model.reading import Reading
from bot.model.record import Decision, Record, Telling
from bot.model.value import RunId, Value
from handlers import tellings
from handlers.context import Context
from handlers.gate import judge_account
from handlers.links import link_of

_LISTED = 20
"""So many runs are named in an answer."""


class Past(Value):
    """What was read beside the runs themselves, for the commands that show it (``READS_PAST``)."""

    attempts: tuple[AuditEntry, ...] = ()
    """The newest attempts at a decision, of all runs, oldest first."""
    entries: Mapping[RunId, tuple[Entry, ...]] = {}
    """The newest entries of each run's record, oldest first."""
    since: datetime | None = None
    """Up to when whoever asks has seen everything."""


class Question(Value):
    """A command and what is on record to answer it from."""

    event: Commanded
    standing: Reading[Standing] | None
    """What the platform says of who gave it; None counts as not known. Only a command that changes something asks."""
    records: tuple[Record, ...]
    contexts: Mapping[RunId, Context]
    blocked: Mapping[RunId, str]
    """Runs whose contract cannot be read, with the reason."""
    here: RunId | None
    """The run in whose conversation it was given."""
    people: tuple[Person, ...]
    timezone: str
    at: datetime
    past: Past = Past()

    def of_runs(self, runs: Collection[RunId]) -> "Question":
        """Return the same question to whoever may hear of these runs alone."""
        return self.model_copy(
            update={
                "records": tuple(each for each in self.records if each.run_id in runs),
                "contexts": {run_id: each for run_id, each in self.contexts.items() if run_id in runs},
                "blocked": {run_id: each for run_id, each in self.blocked.items() if run_id in runs},
                "past": self.past.model_copy(
                    update={"attempts": tuple(each for each in self.past.attempts if each.run_id in runs)}
                ),
            }
        )


class Answered(Value):
    """The answer, and what the command changes for one run."""

    telling: Telling
    run_id: RunId | None = None
    decision: Decision = Decision()
    check_now: RunId | None = None
    """A run to be checked at once."""


def say(question: Question, headline: str, lines: tuple[str, ...] = (), next_: str = "") -> Answered:
    """Answer whoever asked."""
    event = question.event
    # Two people, or one with two questions, may speak in the same second; free text has no place in a key.
    said = hashlib.sha256(f"{event.actor.user_id} {event.text}".encode("utf-8", "replace")).hexdigest()[:12]
    where = f"{event.actor.platform}/{event.place.key}/{event.place.message}"
    key = f"command/{where}/{event.said_at.isoformat()}/{said}"
    telling = tellings.answer(
        event.actor, event.place, question.at, key=key, headline=headline, lines=lines, next_=next_
    )
    return Answered(telling=telling)


def find_run(question: Question, words: tuple[str, ...]) -> Record | Answered:
    """Return the run that is meant: named, or the one of this conversation, or the only one."""
    wanted = words[0] if words else question.here
    if wanted is None and len(question.records) == 1:
        return question.records[0]
    if wanted is None:
        names = ", ".join(r.run_id for r in question.records) or "none"
        return say(question, "Which run? Please name one.", (f"runs: {names}",))
    found = [r for r in question.records if r.run_id == wanted]
    if found:
        return found[0]
    if RunId(wanted) in question.blocked:
        return say(question, f"{wanted} is not watched: {question.blocked[RunId(wanted)]}")
    return say(question, f"There is no run {wanted[:80]}.", (f"there are: {_say_known(question, wanted)}",))


def find_only_run(question: Question, words: tuple[str, ...], usage: str) -> Record | Answered:
    """Return the run that is meant, for a command that takes nothing but its name: ``usage`` says so."""
    record = find_run(question, words)
    return record if isinstance(record, Answered) else refuse_words(question, words[1:], usage) or record


def _say_known(question: Question, wanted: str) -> str:
    """List the runs, those that are most like a name first."""
    known = (*(r.run_id for r in question.records), *question.blocked)
    alike = (*difflib.get_close_matches(wanted[:80], known), *(name for name in known if name.startswith(wanted[:4])))
    names = tuple(dict.fromkeys((*alike, *known)))
    more = f" and {len(names) - _LISTED} more (`runs` lists them)" if len(names) > _LISTED else ""
    return (", ".join(names[:_LISTED]) or "none") + more


def refuse_words(question: Question, words: tuple[str, ...], usage: str) -> Answered | None:
    """Refuse words that a command does not take: one that is passed over may have meant something. None without any."""
    if not words:
        return None
    unused = " ".join(words)[:80]
    return say(question, f"`{unused}` was not understood; nothing was done.", (usage,))


def known_person(question: Question) -> Person | Answered:
    """Return who gives a command that changes something, by the same test that a decision has to pass."""
    judged = judge_account(question.event.actor, question.standing, question.people)
    if isinstance(judged, Person):
        return judged
    refused = say(question, judged.answer or "A bot's command changes nothing.")
    detail = f"{question.event.text[:200]}: {judged.why}"
    decision = Decision(audit=(audit_entry(question, question.here, "command_refused", detail, why=judged.why),))
    return refused.model_copy(update={"run_id": question.here, "decision": decision})


def audit_entry(question: Question, run_id: RunId | None, what: str, detail: str, *, why: str = "") -> AuditEntry:
    """Note who did what by command."""
    actor = question.event.actor
    record = next((each for each in question.records if each.run_id == run_id), None)
    return AuditEntry(
        at=question.at,
        run_id=run_id,
        who=f"{actor.platform}:{actor.user_id}",
        what=what,
        detail=detail,
        why=why,
        link=link_of(actor.platform, question.event.place, record.posted) if record else "",
    )
