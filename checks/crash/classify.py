"""Why did this run end? One pure function over the text of its log.

It looks for the earliest cause: what launchers, peers and siblings say afterwards is a consequence, what a run went on
from is history, what a process says while it ends is noise. Two laws bind it. An infrastructure class is never advised
to be relaunched when the text also holds a sign of a bug, a divergence, a wrong launch or bad data; and where the text
does not tell, the answer is unknown.

Source: the run-management procedure, "What can go wrong", and the babysitting procedure, "Fixing small bugs" and
"Error patterns".
Read ``scan.py`` next (lines to signs), then ``verdict.py`` (signs to a cause).
"""

import re
from collections.abc import Iterable
from typing import assert_never

from bot.model.crash import Classification, CrashClass, Evidence, Location, RelaunchAdvice
from checks.crash.paths import DEFAULT_PATHS, TrajectoryPaths, affects_trajectory, user_frames
from checks.crash.rule import Weight
from checks.crash.scan import Sign, signs_of
from checks.crash.text import Line, cleaned, lines_of, printable
from checks.crash.tracebacks import Frame, Trace
from checks.crash.verdict import BUGS, INFRASTRUCTURE, Verdict, decide

_MAX_EVIDENCE = 5


def classify(
    log: str | Iterable[str], exit_code: int | None = None, paths: TrajectoryPaths = DEFAULT_PATHS
) -> Classification:
    """Classify the end of a run from its log.

    Args:
        log: the text, or its lines; any length, any bytes that were decoded somehow. It never raises on what is in it.
        exit_code: of the task, not of the job (whose code lies); None when not known.
        paths: which files and functions affect the trajectory.

    Returns:
        The class of the earliest cause, with the lines that show it.
    """
    lines = lines_of(log)
    signs = signs_of(lines)
    verdict = decide(lines, signs, exit_code)
    return _answer(lines, signs, verdict, exit_code, paths)


def _answer(
    lines: tuple[Line, ...], signs: tuple[Sign, ...], verdict: Verdict, exit_code: int | None, paths: TrajectoryPaths
) -> Classification:
    trace = verdict.sign.trace if verdict.sign else None
    frames = _frames_of(trace)
    affecting = _affecting(verdict.crash_class, frames, paths)
    location = _location(frames)
    return Classification(
        crash_class=verdict.crash_class,
        relaunch=_advice(verdict, affecting=affecting),
        trajectory_affecting=affecting,
        evidence=_evidence(lines, signs, verdict),
        location=location,
        summary=_summary(lines, verdict, location, exit_code),
        signature=_signature(verdict, location),
    )


def _advice(verdict: Verdict, *, affecting: bool | None) -> RelaunchAdvice:
    rule = verdict.sign.opinion.rule if verdict.sign else None
    if rule is not None and rule.relaunch is not None and rule.crash_class is verdict.crash_class:
        return rule.relaunch
    match verdict.crash_class:
        case CrashClass.INFRA_PREEMPTION | CrashClass.INFRA_HARDWARE:
            return RelaunchAdvice.ASK if verdict.doubt else RelaunchAdvice.SAME_ID
        case CrashClass.CODE_BUG_SMALL | CrashClass.CODE_BUG_COMPLEX:
            return RelaunchAdvice.AFTER_FIX if affecting is False and not verdict.doubt else RelaunchAdvice.ASK
        case CrashClass.CONFIG | CrashClass.DATA:
            return RelaunchAdvice.ASK if verdict.doubt else RelaunchAdvice.AFTER_FIX
        case CrashClass.OOM_HOST | CrashClass.OOM_DEVICE | CrashClass.CAPACITY | CrashClass.UNKNOWN:
            return RelaunchAdvice.ASK
        case CrashClass.NUMERICAL | CrashClass.BENIGN:
            return RelaunchAdvice.NO
        case _:
            assert_never(verdict.crash_class)


def _affecting(crash_class: CrashClass, frames: tuple[Frame, ...], paths: TrajectoryPaths) -> bool | None:
    if crash_class in INFRASTRUCTURE or crash_class in (CrashClass.CAPACITY, CrashClass.BENIGN):
        return False
    if crash_class is CrashClass.NUMERICAL:
        return True
    return affects_trajectory(frames, paths) if crash_class in BUGS else None


def _frames_of(trace: Trace | None) -> tuple[Frame, ...]:
    if trace is None:
        return ()
    return user_frames(trace.user_code) or user_frames(trace.frames)


def _location(frames: tuple[Frame, ...]) -> Location | None:
    if not frames:
        return None
    last = frames[-1]
    return Location(file=printable(last.file, 300), line=last.line, function=printable(last.function, 100))


def _evidence(lines: tuple[Line, ...], signs: tuple[Sign, ...], verdict: Verdict) -> tuple[Evidence, ...]:
    if verdict.sign is None:
        return ()
    same = (
        sign
        for sign in signs
        if sign.crash_class is verdict.crash_class and sign.at != verdict.sign.at and sign.weight > Weight.SUCCESS
    )
    others = (sign for sign in signs if sign.crash_class is not verdict.crash_class and sign.weight >= Weight.WEAK)
    picked = [verdict.sign.at]
    for sign in (*same, *others):
        if sign.at not in picked and len(picked) < _MAX_EVIDENCE:
            picked.append(sign.at)
    return tuple(Evidence(line=lines[at].number, text=printable(lines[at].raw)) for at in picked)


def _summary(lines: tuple[Line, ...], verdict: Verdict, location: Location | None, exit_code: int | None) -> str:
    if verdict.sign is None:
        said = "nothing in the log tells how it ended"
        return said if exit_code is None else f"{said}; exit code {exit_code}"
    trace = verdict.sign.trace
    what = f"{trace.type}: {trace.message}" if trace is not None else cleaned(lines[verdict.sign.at].raw).body
    where = (
        f" ({location.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{location.line} in {location.function})"
        if location
        else ""
    )
    return f"{printable(what, 300 - len(where[:160]))}{where[:160]}"


def _signature(verdict: Verdict, location: Location | None) -> str:
    """Name the root cause without numbers that change from one attempt to the next."""
    if verdict.sign is None:
        return verdict.crash_class.value
    trace = verdict.sign.trace
    if trace is not None and verdict.crash_class in BUGS | {CrashClass.UNKNOWN}:
        file = re.sub(r"\d{4,}|0x[0-9a-f]+", "N", re.split(r"[/\\]", location.file)[-1]) if location else "-"
        return printable(f"{trace.kind}:{file}:{location.function if location else '-'}", 200)
    return verdict.sign.opinion.id
