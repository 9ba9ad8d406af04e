"""Fields out of payloads of any generation: camelCase or snake_case, numbers as numbers or as texts, absent messages.

Everything here raises ShapeError, which names the field, as soon as something is not as known.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from bot.model.job import JobState, TaskState

_CAMEL = re.compile(r"(?<!^)(?=[A-Z])")

_JOB_STATES = {
    1: JobState.PENDING,
    2: JobState.BUILDING,
    3: JobState.RUNNING,
    4: JobState.SUCCEEDED,
    5: JobState.FAILED,
    6: JobState.KILLED,
    7: JobState.WORKER_FAILED,
    8: JobState.UNSCHEDULABLE,
}
"""The controller's numbers, equal in all generations; a number that is not here makes the reading Unknown."""

_TASK_STATES = {
    **{number: TaskState(state.value) for number, state in _JOB_STATES.items()},
    9: TaskState.ASSIGNED,
    10: TaskState.PREEMPTED,
    11: TaskState.COSCHED_FAILED,
    12: TaskState.MISSING,
}


class ShapeError(Exception):
    """A payload is not as known; the text names the field."""


class Fields:
    """One message of a payload, asked by snake_case names."""

    def __init__(self, raw: object, where: str) -> None:
        if not isinstance(raw, Mapping):
            raise ShapeError(f"{where} is {type(raw).__name__}, not an object")
        self._where = where
        self._held = {_CAMEL.sub("_", str(name)).lower(): value for name, value in raw.items()}

    def name(self, field: str) -> str:
        return f"{self._where}.{field}"

    def get(self, field: str) -> Any:
        """Return the raw value; None when it is absent."""
        return self._held.get(field)

    def text(self, field: str) -> str:
        """Return a text; an absent one is empty, as in protobuf."""
        value = self._held.get(field)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ShapeError(f"{self.name(field)} is {type(value).__name__}, not a text")
        return storable(value)

    def required_text(self, field: str) -> str:
        if not (value := self.text(field)):
            raise ShapeError(f"{self.name(field)} is missing")
        return value

    def number(self, field: str) -> int | None:
        """Return a whole number that may be written as a text; None when it is absent or empty."""
        value = self._held.get(field)
        return None if value is None or value == "" else whole(value, self.name(field))

    def moment(self, field: str) -> datetime | None:
        """Return a time given as a message of epoch milliseconds or as such a number; None when it is absent."""
        value = self._held.get(field)
        if value is None or value == "":
            return None
        if isinstance(value, Mapping):
            value = Fields(value, self.name(field)).get("epoch_ms")
        millis = whole(0 if value is None else value, self.name(field))
        return moment_of(millis, self.name(field)) if millis else None

    def messages(self, field: str) -> tuple["Fields", ...]:
        """Return a repeated message; an absent one is empty, as in protobuf."""
        value = self._held.get(field)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise ShapeError(f"{self.name(field)} is {type(value).__name__}, not a list")
        return tuple(Fields(each, f"{self.name(field)}[{index}]") for index, each in enumerate(value))


def storable(text: str) -> str:
    """Return the text with lone surrogates replaced: JSON can spell them, no UTF-8 can hold them."""
    return text.encode(errors="replace").decode()


def whole(value: object, where: str) -> int:
    """Return a whole number; texts of digits count, booleans and fractions do not."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value):
        return int(value)
    raise ShapeError(f"{where} is {_show(value)}, not a whole number")


def moment_of(millis: int, where: str) -> datetime:
    try:
        return datetime.fromtimestamp(millis / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        raise ShapeError(f"{where} is {_show(millis)}, no time in milliseconds") from None


def job_state(value: object, where: str) -> JobState:
    """Return the state for its number, its protobuf name or its bare name."""
    number = _state_number(value)
    name = value.removeprefix("JOB_STATE_").lower() if isinstance(value, str) else ""
    found = _JOB_STATES.get(number) if number is not None else next((s for s in JobState if s.value == name), None)
    if found is None:
        raise ShapeError(f"{where} is {_show(value)}, a state that Hero does not know")
    return found


def task_state(value: object, where: str) -> TaskState:
    """Return the state for its number, its protobuf name or its bare name."""
    number = _state_number(value)
    name = value.removeprefix("TASK_STATE_").lower() if isinstance(value, str) else ""
    found = _TASK_STATES.get(number) if number is not None else next((s for s in TaskState if s.value == name), None)
    if found is None:
        raise ShapeError(f"{where} is {_show(value)}, a state that Hero does not know")
    return found


def _state_number(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,4}", value) else None


def _show(value: object) -> str:
    return repr(value)[:80]
