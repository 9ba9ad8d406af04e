"""``/hero …``: answered from what is on record, at once; never a call to a service. Pure."""

import difflib
import shlex
from collections.abc import Callable, Mapping

from bot.model.record import Decision
from handlers.commands import allowing, handing, recalling, showing, trying, watching, wishing
from handlers.commands.question import Answered, Question, audit_entry, say

GROUPS: Mapping[str, Mapping[str, str]] = {
    "look": {
        "status": "status [RUN] — where a run is, when that was true, what is unknown",
        "runs": "runs — every run, one line each",
        "catchup": "catchup [RUN] [8h] — what is new since you last looked, the gravest first",
        "incidents": "incidents [RUN] — what is wrong now",
        "explain": "explain [RUN] [CHECK] — what each check saw and concluded, and why it told you or did not",
        "plot": "plot [RUN] — loss and throughput, with what is wrong marked",
        "milestone": "milestone [RUN] — the last milestone and the next one",
        "checks": "checks [CHECK] — what is checked, and with which thresholds",
    },
    "the watch": {
        "ack": "ack I4 — you look after an incident: no more reminders",
        "silence": "silence I4 2h — hear nothing of an incident until then; it is still watched",
        "pause": "pause [RUN] — stop watching a run; it is said in the status",
        "resume": "resume [RUN] — watch it again",
        "watch": "watch RUN — whether a run is watched, and how to have it watched",
    },
    "ask the DRI for something": {
        "plan": "plan [RUN] — what a launch would do, and what the launch checklist finds",
        "launch": "launch [RUN] — ask the DRI for the run's first launch",
        "relaunch": "relaunch [RUN] — ask the DRI for a relaunch from the newest complete checkpoint",
        "stop": "stop [RUN] — ask the DRI to stop the run's job",
        "cleanup": "cleanup [RUN] — list checkpoints that could be deleted, and ask the DRI for exactly that list",
        "seal": "seal [RUN] — look whether everything of a finished run is there, and ask the DRI for the seal",
        "trial": "trial [RUN] — how far a trial is; `trial help` lists how one is planned, rehearsed and decided",
        "rollback": "rollback [RUN] — end a trial that was cut over: the old run is launched again",
    },
    "the DRI's word": {
        "allow": "allow [RUN] relaunch 3 until 09:00 for infra — the DRI's yes in advance, bounded",
        "revoke": "revoke [RUN] — end what was allowed in advance",
        "handoff": "handoff [RUN] NAME [as owner|deputy] — hand a part to NAME; they `accept`, and get all they need",
    },
    "look back": {
        "log": "log [RUN] — the newest of a run's record",
        "audit": "audit [RUN] — who tried to decide what, and why it was refused",
        "help": "help [COMMAND] — this list, or one command",
    },
}
"""Every command by what somebody wants, with its line of help."""

DECIDE = "A request is decided in its thread: `approve R7` or `deny R7 because …`"


def changes_something(text: str) -> bool:
    """Whether a command does more than answer, so that the platform has to be asked who gives it."""
    verb, words = _split(text)
    if verb == "trial":
        return bool(words) and words[0].lower() in trying.CHANGING
    return verb in _CHANGING


def shows_past(text: str) -> bool:
    """Whether a command shows what happened, so that records and audit log have to be read for it."""
    return _split(text)[0] in _SHOWING_PAST


def answer_command(question: Question) -> Answered:
    """Answer one command; an unknown one gets the nearest valid ones."""
    verb, words = _split(question.event.text)
    handler = COMMANDS.get(verb)
    if verb in _DECIDING:
        return _not_by_command(question, verb, words)
    if handler is None:
        return _nearest(question, verb)
    return handler(question, words)


def _not_by_command(question: Question, verb: str, words: tuple[str, ...]) -> Answered:
    """Refuse a decision that is given as a command: it is an attempt, and noted as one."""
    event = question.event
    detail = f"{verb} {' '.join(words)[:200]} in {event.place.key} ({event.place.message}): by_command"
    about = next((r for r in question.records if any(q.name == w.upper() for q in r.requests for w in words)), None)
    run_id = about.run_id if about else question.here
    audit = audit_entry(question, run_id, "decision_refused", detail, why="by_command")
    answer = say(question, "A command decides nothing; nothing was changed.", next_=DECIDE)
    return answer.model_copy(update={"run_id": run_id, "decision": Decision(audit=(audit,))})


def _split(text: str) -> tuple[str, tuple[str, ...]]:
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return (words[0].lower(), tuple(words[1:])) if words else ("help", ())


def _nearest(question: Question, verb: str) -> Answered:
    """Answer a mistyped command with what was meant; with the whole list when nobody can tell."""
    near = difflib.get_close_matches(verb[:40], COMMANDS, n=2, cutoff=0.6)
    if not near:
        return say(question, f"`{verb[:40]}` is no command of Hero's.", _lines())
    meant = " or ".join(f"`/hero {name}`" for name in near)
    lines = tuple(_HELP[name] for name in near)
    return say(
        question, f"`{verb[:40]}` is no command of Hero's; did you mean {meant}?", lines, "`help` lists them all"
    )


def _help(question: Question, words: tuple[str, ...]) -> Answered:
    if words and words[0].lower() in COMMANDS:
        return say(question, _HELP[words[0].lower()])
    if words:
        return _nearest(question, words[0].lower())
    return say(question, "Hero watches training runs and asks before it changes anything.", _lines())


def _lines() -> tuple[str, ...]:
    grouped = ((f"{title}:", *(f"  {line}" for line in lines.values())) for title, lines in GROUPS.items())
    return (*(line for group in grouped for line in group), DECIDE)


_HELP = {name: line for group in GROUPS.values() for name, line in group.items()}

COMMANDS: Mapping[str, Callable[[Question, tuple[str, ...]], Answered]] = {
    "status": showing.status,
    "runs": showing.runs,
    "catchup": recalling.catchup,
    "incidents": showing.incidents,
    "explain": showing.explain,
    "plot": recalling.plot,
    "milestone": recalling.milestone,
    "checks": recalling.checks,
    "ack": watching.acknowledge,
    "silence": watching.silence,
    "pause": watching.pause,
    "resume": watching.resume,
    "watch": recalling.watch,
    "plan": wishing.plan,
    "launch": wishing.launch,
    "relaunch": wishing.relaunch,
    "stop": wishing.stop,
    "cleanup": wishing.cleanup,
    "seal": wishing.seal,
    "rollback": trying.rollback,
    "trial": trying.trial,
    "allow": allowing.allow,
    "revoke": allowing.revoke,
    "handoff": handing.handoff,
    "log": recalling.log,
    "audit": recalling.audit,
    "help": _help,
}
_CHANGING = frozenset(
    {
        "ack",
        "silence",
        "plan",
        "launch",
        "relaunch",
        "stop",
        "cleanup",
        "seal",
        "rollback",
        "allow",
        "revoke",
        "handoff",
        "pause",
        "resume",
    }
)
_DECIDING = frozenset({"approve", "deny"})
_SHOWING_PAST = frozenset({"catchup", "log", "audit"})
