"""Which of the signs is the cause: the earliest that can be one, once history and handled exceptions are gone."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from bot.model.crash import CrashClass
from checks.crash.exceptions import Opinion
from checks.crash.progress import Progress, nonfinite_loss
from checks.crash.rule import Weight
from checks.crash.scan import Sign
from checks.crash.text import Line
from checks.crash.tracebacks import Link

INFRASTRUCTURE = frozenset({CrashClass.INFRA_PREEMPTION, CrashClass.INFRA_HARDWARE})
BUGS = frozenset({CrashClass.CODE_BUG_SMALL, CrashClass.CODE_BUG_COMPLEX})
_HARMFUL = BUGS | {CrashClass.NUMERICAL, CrashClass.CONFIG, CrashClass.DATA}
"""Classes whose presence forbids a blind relaunch."""
_CONTROL_FLOW = frozenset(
    {
        "Empty",
        "StopIteration",
        "KeyError",
        "AttributeError",
        "ImportError",
        "ModuleNotFoundError",
        "IndexError",
        "FileNotFoundError",
        "TypeError",
    }
)
_NEW_ATTEMPT = re.compile(
    r"\b(?:restarting|relaunching|resubmitting|(?:starting|beginning|launching) (?:another )?attempt|"
    r"attempt[ =#:]{1,3}(?:[2-9]|[1-9]\d{1,3})\b)",
    re.IGNORECASE,
)
_LIVED_STEPS = 4
_LIVED_LINES = 12


class Verdict(NamedTuple):
    crash_class: CrashClass
    sign: Sign | None
    doubt: bool
    """Something else in the text tells another story."""


def decide(lines: tuple[Line, ...], signs: tuple[Sign, ...], exit_code: int | None) -> Verdict:
    """Return the cause of the end, as far as the signs tell."""
    every = _without_handled(tuple(sign for sign in signs if sign.weight >= Weight.GUESS))
    live = _without_history(lines, every, talk_counts=True)
    if not any(sign.weight is Weight.DECISIVE for sign in live):
        # What is left may all be consequences, so talk after an exception is no proof that the run went on.
        live = _without_history(lines, every, talk_counts=False)
    decisive = [sign for sign in live if sign.weight is Weight.DECISIVE]
    if decisive:
        return _decided(lines, decisive, every)
    nonfinite = _diverging(lines)
    if nonfinite is not None:
        return Verdict(CrashClass.NUMERICAL, nonfinite, doubt=False)
    weak = [sign for sign in live if sign.weight is Weight.WEAK]
    guess = _best_guess([sign for sign in live if sign.weight is Weight.GUESS], weak)
    if guess is not None:
        return Verdict(guess.crash_class, guess, doubt=True)
    if weak and not _after_success(signs, weak, exit_code):
        return _weakly(lines, weak, every)
    return _quiet(signs, exit_code)


def _decided(lines: tuple[Line, ...], decisive: list[Sign], every: tuple[Sign, ...]) -> Verdict:
    first = decisive[0]
    if first.opinion.id == "hardware.node_failure":
        # A node that went away because it was preempted is reported by both; the preemption is the reason.
        first = next((sign for sign in decisive if sign.crash_class is CrashClass.INFRA_PREEMPTION), first)
    if first.crash_class not in INFRASTRUCTURE:
        return Verdict(first.crash_class, first, doubt=False)
    nonfinite = _diverging(lines[: first.at])
    if nonfinite is not None:
        return Verdict(CrashClass.NUMERICAL, nonfinite, doubt=True)
    harm = next((sign for sign in decisive if sign.crash_class in _HARMFUL), None)
    if harm is not None and _began_anew(lines[first.at : harm.at]):
        return Verdict(harm.crash_class, harm, doubt=True)
    return Verdict(first.crash_class, first, doubt=any(_tells_against(lines, sign, first) for sign in every))


def _began_anew(lines: Sequence[Line]) -> bool:
    """Return whether another attempt was begun: what ended the one before did not end this one."""
    return any(_NEW_ATTEMPT.search(line.raw) for line in lines)


def _tells_against(lines: tuple[Line, ...], sign: Sign, infrastructure: Sign) -> bool:
    """Return whether a sign forbids a blind relaunch: only steps that followed it can clear it, talk cannot.

    A weak one, such as a core dump, may follow from a loss of its own attempt that stands before it.
    """
    if sign.crash_class not in _HARMFUL:
        return False
    if sign.at > infrastructure.at:
        return sign.weight is not Weight.WEAK or _began_anew(lines[infrastructure.at : sign.at])
    return Progress(lines, sign.at + 1, infrastructure.at).steps_after(sign.at, _LIVED_STEPS) < _LIVED_STEPS


def _best_guess(guesses: list[Sign], weak: list[Sign]) -> Sign | None:
    """Choose a guess that outweighs the weak signs: one with a class, or an exception that was raised before them."""
    named = next((sign for sign in guesses if sign.crash_class is not CrashClass.UNKNOWN), None)
    if named is not None or not guesses:
        return named
    raised_first = (
        bool(weak) and guesses[0].at < weak[0].at and guesses[0].trace is not None and guesses[0].trace.frames
    )
    return guesses[0] if not weak or raised_first else None


def _weakly(lines: tuple[Line, ...], weak: list[Sign], every: tuple[Sign, ...]) -> Verdict:
    """Choose among signs that may all be consequences: a kill or a core dump explains a lost peer, not the reverse.

    A bug anywhere in the text, even one that was lived through, leaves a doubt: output is buffered, so what stands
    after a traceback may have been written before it.
    """
    kills = [sign for sign in weak if sign.opinion.id == "killed.sigkill"]
    bugs = [sign for sign in weak if sign.crash_class in BUGS]
    first = kills[0] if kills else bugs[0] if bugs else weak[0]
    if _collectives_differ(lines):
        return Verdict(CrashClass.CODE_BUG_COMPLEX, first, doubt=True)
    before = Progress(lines, max(0, first.at - 400), first.at)
    hung = first.opinion.id == "network.collective_timeout" and not before.steps_after(-1, 1)
    other = any(sign.crash_class in _HARMFUL or sign.weight is Weight.GUESS for sign in every)
    return Verdict(first.crash_class, first, doubt=hung or other)


def _after_success(signs: tuple[Sign, ...], weak: list[Sign], exit_code: int | None) -> bool:
    """Return whether only the teardown of a run that had succeeded went wrong; a kill is never taken for that."""
    success = [sign.at for sign in signs if sign.weight is Weight.SUCCESS]
    lost = all(sign.opinion.id.startswith("network.") for sign in weak)
    return bool(success) and exit_code in (None, 0) and lost and success[-1] < weak[0].at


def _quiet(signs: tuple[Sign, ...], exit_code: int | None) -> Verdict:
    success = next((sign for sign in reversed(signs) if sign.weight is Weight.SUCCESS), None)
    cascade = next((sign for sign in signs if sign.weight is Weight.CASCADE), None)
    if exit_code == 0 or (success is not None and exit_code is None):
        return Verdict(CrashClass.BENIGN, success, doubt=False)
    return Verdict(CrashClass.UNKNOWN, cascade, doubt=True)


def _without_handled(signs: tuple[Sign, ...]) -> tuple[Sign, ...]:
    """Drop exceptions of ordinary control flow: the next one was raised while they were handled, and says more."""
    dropped: set[int] = set()
    before: dict[str, Sign] = {}
    for sign in signs:
        if sign.trace is None:
            continue
        earlier = before.get(sign.stream)
        if earlier is not None and earlier.trace is not None and sign.trace.link is Link.DURING:
            reraised = bool(sign.trace.frames) and sign.trace.frames[-1].source.startswith("raise")
            if earlier.trace.kind in _CONTROL_FLOW and not reraised and sign.weight is Weight.DECISIVE:
                dropped.add(earlier.at)
        before[sign.stream] = sign
    return tuple(sign for sign in signs if sign.at not in dropped)


def _without_history(lines: tuple[Line, ...], signs: tuple[Sign, ...], *, talk_counts: bool) -> tuple[Sign, ...]:
    """Drop signs that the run lived through, as long as a later sign remains to explain its end."""
    if len(signs) < 2 or signs[-1].at - signs[0].at < _LIVED_STEPS:  # noqa: PLR2004 - one sign has no history
        return signs
    alive = Progress(lines, signs[0].at + 1, signs[-1].at)
    return tuple(
        sign for sign in signs if sign.at == signs[-1].at or not _lived_on(alive, sign, talk_counts=talk_counts)
    )


def _lived_on(alive: Progress, sign: Sign, *, talk_counts: bool) -> bool:
    if alive.steps_after(sign.at, _LIVED_STEPS) >= _LIVED_STEPS:
        return True
    return talk_counts and sign.trace is not None and alive.plain_after(sign.at, sign.stream) >= _LIVED_LINES


def _diverging(lines: Sequence[Line]) -> Sign | None:
    """Return a sign when the last reported steps have no finite loss."""
    for index in range(len(lines) - 1, max(-1, len(lines) - 3_000), -1):
        match nonfinite_loss(lines[index].raw):
            case True:
                opinion = Opinion("numerical.nonfinite_loss", CrashClass.NUMERICAL, Weight.DECISIVE)
                return Sign(index, "", opinion)
            case False:
                return None
            case None:
                continue
    return None


_WORK = re.compile(r"WorkNCCL\(SeqNum=(\d+), OpType=(\w+)(?:, NumelIn=(\d+))?")


def _collectives_differ(lines: tuple[Line, ...]) -> bool:
    """Return whether ranks wait in the same place of their sequence for different operations."""
    seen: dict[str, set[tuple[str, str]]] = {}
    for line in lines[-5_000:]:
        if "WorkNCCL(" in line.raw and (match := _WORK.search(line.raw)):
            seen.setdefault(match.group(1), set()).add((match.group(2), match.group(3) or ""))
    return any(len({kind for kind, _ in operations}) > 1 for operations in seen.values())
