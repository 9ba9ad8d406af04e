"""What goes wrong between Hero and Discord, each with whether the call was carried out all the same."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Answers:
    """An answer of that status, with Discord's code or without one."""

    status: int
    code: int = 0
    performed: bool = False


@dataclass(frozen=True)
class Limited:
    """429 with Retry-After, as Discord itself says it."""

    after_s: float


@dataclass(frozen=True)
class Lost:
    """The connection breaks before the answer."""

    performed: bool


@dataclass(frozen=True)
class Stalls:
    """No answer ever."""

    performed: bool = False


@dataclass(frozen=True)
class Page:
    """A proxy's HTML page with status 200."""


type Fault = Answers | Limited | Lost | Stalls | Page
