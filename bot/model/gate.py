"""A gate of a trial: what of one figure may change by how much, as people write it and as a value.

``loss mean <= +0.002``, ``tokens_per_second mean >= -1%``, ``router_entropy p95 within 2% skip 3``: the grammar is in
``docs/trial.md``, and ``parse_gate`` reads it. A limit may lie beyond zero: ``mfu mean >= +2%`` asks for a gain.
"""

import math
import re
from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from bot.model.part import Basis
from bot.model.value import Value


class Direction(StrEnum):
    """Which way a figure must not go."""

    UP = "up"
    DOWN = "down"
    EITHER = "either"


class Reduce(StrEnum):
    """What of the steps' differences is held against the tolerance."""

    MEAN = "mean"
    MAX = "max"
    """The worst step."""
    QUANTILE = "quantile"
    """The step that a share ``q`` of all are no worse than."""


class Gate(Value):
    """How far one figure of the child may be from the control's, at the same steps."""

    metric: str = Field(min_length=1)
    """Hero's word for the figure, or the file's own name of the column."""
    direction: Direction
    reduce: Reduce = Reduce.MEAN
    q: float | None = Field(default=None, gt=0, lt=1)
    """For a quantile: which."""
    tolerance: float
    """How far the figure may go in the bad direction, in its own unit; below zero it has to go the other way."""
    is_relative: bool = False
    """The tolerance is a share of the control's mean instead: 0.01 is 1 %."""
    warmup_rows: int = Field(default=0, ge=0)
    """So many of the window's first logged rows of this figure are left out."""
    every: int | None = Field(default=None, ge=1)
    """The figure is logged every so many steps. None: the usual distance of its rows in the window."""
    coverage: float = Field(default=1.0, gt=0, le=1)
    """The share of the steps at which it should have been logged that must be there on both sides."""
    may_be_flat: bool = False
    """Whether a control that never changes may be compared with, as peak memory's; one that is all zero may not."""
    basis: Basis = Basis.STATED

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.reduce is Reduce.QUANTILE) != (self.q is not None):
            raise ValueError("a quantile needs its q, and nothing else has one; write p95")
        if not math.isfinite(self.tolerance):
            raise ValueError("the tolerance is not finite; write a number")
        if self.direction is Direction.EITHER and self.tolerance < 0:
            raise ValueError("within a negative distance there is nothing; write it above zero")
        return self

    def __str__(self) -> str:
        """Return the gate as ``parse_gate`` reads it."""
        reduce = f"p{_plain(self.q * 100)}" if self.q is not None else self.reduce.value
        signed = -self.tolerance if self.direction is Direction.DOWN else self.tolerance
        number = _plain(signed * 100) + "%" if self.is_relative else _plain(signed)
        sign = "+" if signed > 0 and self.direction is not Direction.EITHER else ""
        words = [self.metric, reduce, _SIGN_OF[self.direction], sign + number]
        words += [f"skip {self.warmup_rows}"] if self.warmup_rows else []
        words += [f"every {self.every}"] if self.every is not None else []
        words += [f"coverage {_plain(self.coverage * 100)}%"] if self.coverage < 1 else []
        words += ["flat"] if self.may_be_flat else []
        words += [self.basis.value] if self.basis is not Basis.STATED else []
        return " ".join(words)


_DIRECTION_OF = {"<=": Direction.UP, ">=": Direction.DOWN, "within": Direction.EITHER}
_SIGN_OF = {direction: sign for sign, direction in _DIRECTION_OF.items()}
_HOW = 'write it as "loss mean <= +0.002", "tokens_per_second mean >= -1%" or "router_entropy p95 within 2%"'
_HEAD = re.compile(
    r"(?P<metric>[A-Za-z_][\w./-]*)\s+(?P<reduce>mean|max|p\d+(?:\.\d+)?)\s*(?P<sign><=|>=|within)\s*"
    r"(?P<limit>[+-]?[\d.][\d.eE+-]*)\s*(?P<percent>%?)"
)
_OPTION = re.compile(
    r"skip\s+(?P<warmup_rows>\d{1,9})|every\s+(?P<every>\d{1,9})|coverage\s+(?P<coverage>\d+(?:\.\d+)?)\s*%"
    r"|(?P<flat>flat)|(?P<basis>stated|inferred|measured)"
)


def parse_gate(text: str) -> Gate:
    """Read a gate as people write it.

    Raises:
        ValueError: it is none; the text says how one is written.
    """
    found = _HEAD.match(text.strip())
    if found is None:
        msg = f"{text[:100]!r} is no gate; {_HOW}"
        raise ValueError(msg)
    direction = _DIRECTION_OF[found["sign"]]
    limit = _number(found["limit"], text) / (100 if found["percent"] else 1)
    quantile = found["reduce"].startswith("p")
    given: dict[str, object] = {
        "metric": found["metric"],
        "direction": direction,
        "reduce": Reduce.QUANTILE if quantile else Reduce(found["reduce"]),
        "q": float(found["reduce"][1:]) / 100 if quantile else None,
        "tolerance": -limit if direction is Direction.DOWN else limit,
        "is_relative": bool(found["percent"]),
        **_options(text, text.strip()[found.end() :].strip()),
    }
    return Gate.model_validate(given)


def _options(text: str, rest: str) -> dict[str, object]:
    given: dict[str, object] = {}
    while rest:
        found = _OPTION.match(rest)
        if found is None or (found.end() < len(rest) and not rest[found.end()].isspace()):
            msg = (
                f"{text[:100]!r}: {rest[:40]!r} is nothing that may follow a gate; those are skip ROWS, every STEPS, "
                "coverage 95%, flat, inferred, measured"
            )
            raise ValueError(msg)
        key, raw = next((key, raw) for key, raw in found.groupdict().items() if raw is not None)
        match key:
            case "coverage":
                given[key] = float(raw) / 100
            case "flat":
                given["may_be_flat"] = True
            case "basis":
                given[key] = Basis(raw)
            case _:
                given[key] = int(raw)
        rest = rest[found.end() :].strip()
    return given


def _number(raw: str, text: str) -> float:
    try:
        return float(raw)
    except ValueError:
        msg = f"{text[:100]!r}: {raw!r} is no number; {_HOW}"
        raise ValueError(msg) from None


def _plain(value: float) -> str:
    """Return a number to twelve digits, without the tail that binary fractions leave."""
    return f"{value:.12g}"
