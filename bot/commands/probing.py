"""What ``hero doctor`` finds out: one line a connection, each with its exact fix, and never later than its deadline."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NamedTuple

from bot.errors import HeroError
from bot.model.durations import say_duration


class Probe(NamedTuple):
    """One line: is it well, what was seen, and what to do. A fix beside a good line is a warning."""

    connection: str
    ok: bool
    detail: str
    fix: str = ""


type Question = Callable[[], Awaitable[tuple[Probe, ...]]]


def good(connection: str, detail: str, fix: str = "") -> Probe:
    """Return a line about something that works."""
    return Probe(connection, ok=True, detail=detail, fix=fix)


def bad(connection: str, detail: str, fix: str) -> Probe:
    """Return a line about something that does not work, or of which nothing is known."""
    return Probe(connection, ok=False, detail=detail, fix=fix)


def bad_problem(connection: str, problem: str) -> Probe:
    """Return a line from an error's text, whose fix stands behind the last semicolon."""
    detail, found, fix = problem.rpartition("; ")
    return bad(connection, detail if found else problem, fix if found else "")


async def ask_all(questions: dict[str, Question], deadline: timedelta) -> tuple[Probe, ...]:
    """Ask everything side by side; return the lines in the order of the questions."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_ask(name, question, deadline), name=f"doctor-{name}")
            for name, question in questions.items()
        ]
    return tuple(probe for task in tasks for probe in task.result())


async def _ask(name: str, question: Question, deadline: timedelta) -> tuple[Probe, ...]:
    try:
        async with asyncio.timeout(deadline.total_seconds()):
            return await question()
    except TimeoutError:
        return (bad(name, f"no answer in {say_duration(deadline)}", "see that it can be reached from this machine"),)
    except HeroError as error:
        return (bad_problem(name, str(error)),)
