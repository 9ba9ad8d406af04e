"""From the thread dumps that Iris keeps to the top of each thread's stack. Pure: never raises at what a dump holds.

A dump is what ``py-spy dump`` prints. Its first line names the command, which may hold secrets, and with variables
every line may: only the lines of threads and of frames are taken, by their shape.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any

from bot.errors import UnrecognisedError
from bot.model.hang import TaskStack, ThreadStack
from bot.model.job import Task
from bot.sources.finelog.executions import is_newest
from bot.sources.finelog.failure import SERVICE
from bot.sources.finelog.rows import moment_of

DUMP_CHARS = 16_000
"""So much of each dump is asked for, in base64: four characters for three bytes. The main thread comes first."""
_MOST_THREADS = 32
_MOST_FRAMES = 3
_NAME_CHARS = 60
_PATH_PARTS = 2

_THREAD = re.compile(r'Thread (?P<id>\S+) \((?P<state>[^)]*)\)(?:: "(?P<name>[^"]*)")?')
_FRAME = re.compile(r" {4}(?P<function>[\w.<>$~\[\], -]+?) \((?P<file>[^()]*?)(?::(?P<line>\d+))?\)")


def parse_stacks(rows: Iterable[Mapping[str, Any]], tasks: Mapping[str, Task]) -> tuple[TaskStack, ...]:
    """Return the dumps of the attempts that run now, by task.

    Args:
        rows: ``source``, ``attempt_id``, ``captured_at`` and the beginning of ``dump`` in base64.
        tasks: those that run, by id.

    Raises:
        UnrecognisedError: a row has no time or no text.
    """
    found: dict[str, TaskStack] = {}
    for raw in rows:
        if not is_newest(raw, "source", tasks):
            continue
        task = tasks[str(raw["source"])]
        at, dump = moment_of(raw.get("captured_at")), raw.get("dump")
        if at is None or not isinstance(dump, str):
            raise UnrecognisedError(SERVICE, f"a row of iris.profile is not as known: {sorted(raw)}"[:300])
        began = task.current_attempt.started_at if task.current_attempt else None
        if began is not None and at < began:
            continue  # a namesake's: its attempts have the same numbers
        found[task.task_id] = TaskStack(task_id=task.task_id, at=at, threads=parse_dump(_decoded(dump)))
    return tuple(sorted(found.values(), key=lambda each: tasks[each.task_id].index))


def _decoded(dump: str) -> str:
    """Return the text; it is cut somewhere, maybe within a character."""
    whole = dump[: len(dump) // 4 * 4]
    try:
        return base64.b64decode(whole, validate=True).decode(errors="replace")
    except ValueError as error:
        raise UnrecognisedError(SERVICE, "a thread dump is not in base64") from error


def parse_dump(dump: str) -> tuple[ThreadStack, ...]:
    """Return the top of each thread's stack, in the order of the dump; what has another shape is passed over."""
    threads: list[ThreadStack] = []
    lines = dump.splitlines()
    for place, line in enumerate(lines):
        head = _THREAD.fullmatch(line)
        if head is None or len(threads) == _MOST_THREADS:
            continue
        frames = _frames(lines[place + 1 :])
        if not frames:
            continue
        threads.append(
            ThreadStack(
                name=(head["name"] or f"thread {head['id']}")[:_NAME_CHARS],
                is_idle=_is_idle(head["state"]),
                frames=frames,
            )
        )
    return tuple(threads)


def _frames(lines: Iterable[str]) -> tuple[str, ...]:
    frames: list[str] = []
    for line in lines:
        frame = _FRAME.fullmatch(line)
        if frame is None or len(frames) == _MOST_FRAMES:
            break
        file = "/".join(frame["file"].split("/")[-_PATH_PARTS:])
        place = f"{file}:{frame['line']}" if frame["line"] else file
        frames.append(f"{frame['function'][:_NAME_CHARS]} ({place[-2 * _NAME_CHARS :]})")
    return tuple(frames)


def _is_idle(state: str) -> bool | None:
    words = state.split("+")
    return True if "idle" in words else False if "active" in words else None
