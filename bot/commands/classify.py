"""``hero classify``: why did it crash? The same classifier as live, over log files."""

from bot.commands.exits import Exit
from bot.commands.long_text import UNREADABLE, LongText, read_long_text
from bot.commands.printing import say, say_json
from bot.model.crash import Classification
from bot.redaction import Redactor
from bot.render.text import clean
from checks.crash.classify import classify

_LINE = 500
_TRAJECTORY = {
    True: "affects the trajectory",
    False: "does not affect the trajectory",
    None: "whether it affects the trajectory is not known",
}


def classify_files(files: list[str], *, exit_code: int | None, as_json: bool) -> Exit:
    """Classify each file by itself; one that cannot be read is said to be, and the others go on."""
    result = Exit.DONE
    for name in files:
        try:
            log = read_long_text(name)
        except UNREADABLE as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or f"is damaged ({error})"
            _say_error(name, reason, as_json=as_json)
            result = Exit.FAILED
            continue
        answer = classify(log.text, exit_code)
        if as_json:
            say_json(classification_row(name, answer, log), is_line=True)
        else:
            _say_answer(name, answer, log)
    return result


def classification_row(name: str, answer: Classification, log: LongText) -> dict[str, object]:
    """Return what outsiders rely on. Secrets that the log holds are cut from the evidence."""
    scrub = Redactor().text
    return {
        "file": name,
        "class": answer.crash_class.value,
        "relaunch": answer.relaunch.value,
        "trajectory_affecting": answer.trajectory_affecting,
        "evidence": [f"line {log.number(each.line)}: {scrub(each.text)}" for each in answer.evidence],
        "summary": scrub(answer.summary),
        "signature": scrub(answer.signature),
    }


def _say_answer(name: str, answer: Classification, log: LongText) -> None:
    row = classification_row(name, answer, log)
    trajectory = _TRAJECTORY[answer.trajectory_affecting]
    say(f"{clean(name, _LINE)}: {answer.crash_class} (relaunch: {answer.relaunch}; {trajectory})")
    say(f"    {clean(str(row['summary']), _LINE)}")
    for each in answer.evidence:
        say(f"    · line {log.number(each.line)}: {clean(Redactor().text(each.text), _LINE)}")


def _say_error(name: str, reason: str, *, as_json: bool) -> None:
    if as_json:
        say_json({"file": name, "error": reason}, is_line=True)
    else:
        say(f"{clean(name, _LINE)}: cannot be read: {reason}")
