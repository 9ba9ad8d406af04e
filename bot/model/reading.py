"""A reading is Known or Unknown; there is no third form and no default (law 1)."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from bot.model.value import Value


class Gap(StrEnum):
    """Why nothing is known."""

    TIMEOUT = "timeout"
    """No answer within Hero's own deadline."""
    REFUSED = "refused"
    """The service answered that we may not ask: credentials, permission, wrong address."""
    UNREACHABLE = "unreachable"
    """No connection, or the service is ill."""
    UNRECOGNISED = "unrecognised"
    """An answer came whose shape we do not know."""
    UNRELIABLE = "unreliable"
    """The service contradicts itself: it tells of data that it does not hand out (field report R19)."""
    BUSY = "busy"
    """Every worker of this source is still held by an earlier question."""
    BROKEN = "broken"
    """Our own code failed; the traceback is in the log."""
    NOT_CONFIGURED = "not_configured"
    """Nobody told Hero where to look."""
    NOT_YET = "not_yet"
    """There is nothing to read yet, and that is in order: a job that has only begun has not written it."""


class Known[T](Value):
    """What a source said, and the moment it was true."""

    kind: Literal["known"] = "known"
    value: T
    at: AwareDatetime


class Unknown(Value):
    """Nothing is known. Not empty, not zero, not fine."""

    kind: Literal["unknown"] = "unknown"
    reason: Gap
    detail: str = Field(max_length=2000)
    at: AwareDatetime


type Reading[T] = Known[T] | Unknown


def first_gap(*readings: Known[Any] | Unknown) -> Unknown | None:
    """Return the first Unknown among ``readings``; None when all of them are Known."""
    return next((reading for reading in readings if isinstance(reading, Unknown)), None)


def install_of(detail: str) -> tuple[str, str]:
    """Split what a source says of a program that is missing here: what is wrong, and the fix; else without a fix."""
    what, found, how = detail.rpartition("; install ")
    return (what, f"install {how}") if found else (detail, "")
