"""``/hero …``: answered from what is on record, at once; never a call to a service. Pure."""

import shlex
from collections.abc import Callable, Mapping

from handlers.commands import allowing, handing, showing, watching, wishing
from handlers.commands.question import Answered, Question, say

HELP = (
    "status [RUN] — where a run is, when that was true, what is unknown",
    "runs — every run, one line each",
    "incidents [RUN] — what is wrong now",
    "ack I4 — you look after an incident: no more reminders",
    "silence I4 2h — hear nothing of an incident until then; it is still watched",
    "explain [RUN] [CHECK] — what each check saw and concluded, and why it told you or did not",
    "plan [RUN] — what a launch would do, and what the launch checklist finds",
    "launch [RUN] — ask the DRI for the run's first launch",
    "relaunch [RUN] — ask the DRI for a relaunch from the newest complete checkpoint",
    "stop [RUN] — ask the DRI to stop the run's job",
    "cleanup [RUN] — list checkpoints that could be deleted, and ask the DRI for exactly that list",
    "seal [RUN] — look whether everything of a finished run is there, and ask the DRI for the seal",
    "allow [RUN] relaunch 3 until 09:00 for infra — the DRI's yes in advance, bounded; `revoke [RUN]` ends it",
    "handoff [RUN] NAME [as owner|deputy] — hand a part to NAME; they `accept`, and get all they need",
    "pause [RUN] / resume [RUN] — stop and start watching a run; it is said in the status",
    "help — this list",
    "A request is decided in its thread: `approve R7` or `deny R7 because …`",
)


def changes_something(text: str) -> bool:
    """Whether a command does more than answer, so that the platform has to be asked who gives it."""
    return _split(text)[0] in _CHANGING


def answer_command(question: Question) -> Answered:
    """Answer one command; an unknown one gets the nearest valid ones."""
    verb, words = _split(question.event.text)
    handler = COMMANDS.get(verb)
    if handler is None:
        return say(question, f"`{verb[:40]}` is no command of Hero's.", HELP)
    return handler(question, words)


def _split(text: str) -> tuple[str, tuple[str, ...]]:
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return (words[0].lower(), tuple(words[1:])) if words else ("help", ())


def _help(question: Question, _words: tuple[str, ...]) -> Answered:
    return say(question, "Hero watches training runs and asks before it changes anything.", HELP)


COMMANDS: Mapping[str, Callable[[Question, tuple[str, ...]], Answered]] = {
    "status": showing.status,
    "runs": showing.runs,
    "incidents": showing.incidents,
    "ack": watching.acknowledge,
    "silence": watching.silence,
    "explain": showing.explain,
    "plan": wishing.plan,
    "launch": wishing.launch,
    "relaunch": wishing.relaunch,
    "stop": wishing.stop,
    "cleanup": wishing.cleanup,
    "seal": wishing.seal,
    "allow": allowing.allow,
    "revoke": allowing.revoke,
    "handoff": handing.handoff,
    "pause": watching.pause,
    "resume": watching.resume,
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
        "allow",
        "revoke",
        "handoff",
        "pause",
        "resume",
    }
)
