"""The report of a trial as a page of its own: one static HTML file that needs no script and nothing from outside.

``bot/web/templates/trial.html`` is its shape. What comes from outside is cleaned and redacted where it is put in, and
escaped by Jinja; an address becomes a link only when it is http or https.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bot.model.conduct import Ending, Stage, Trial
from bot.model.gate import Direction, Reduce
from bot.model.trial import Comparison, Judged, Quiet, SideRows, Window
from bot.model.value import RunId
from bot.render.text import clean
from bot.render.trial import (
    OUTCOME_SIGNS,
    OUTCOME_WORDS,
    QUIET_GATE,
    by_gravity,
    error_line,
    grave_lines,
    in_unit,
    say_coverage,
    say_interval,
    say_margin,
    verdict_line,
)
from bot.render.words import say_time

_TEMPLATES = Path(__file__).parents[1] / "web" / "templates"
_TEXT = 2_000

STAGE_WORDS: dict[Stage, str] = {
    Stage.PLANNED: "planned: the DRI agreed",
    Stage.RECORDED: "recorded: code and launch values are on main",
    Stage.REHEARSED: "rehearsed: every guard passed, and somebody looked at it",
    Stage.CONTROL_COMPLETE: "control complete: the old run logged the whole window",
    Stage.FORKED: "forked: the child's tracker history begins",
    Stage.OLD_STOPPED: "old run stopped",
    Stage.LAUNCHED: "child launched",
    Stage.RUNNING: "child trains",
    Stage.GO: "go: the child is accepted",
    Stage.NO_GO: "no-go: back to the old run",
    Stage.ROLLED_BACK: "rolled back: the old run trains again",
    Stage.CLOSED: "closed",
}
_USUAL = tuple(stage for stage in Stage if stage not in {Stage.NO_GO, Stage.ROLLED_BACK})
_BACK = (Stage.NO_GO, Stage.ROLLED_BACK, Stage.CLOSED)
_ENDINGS = {
    Ending.ACCEPTED: "accepted: the child goes on",
    Ending.ROLLED_BACK: "rolled back: the old run goes on",
    Ending.ABANDONED: "abandoned before the old run was stopped",
}


@dataclass(frozen=True)
class LoggedFigure:
    """What one run logged of a figure in the window: the newest of its attempts that has rows there."""

    figure: str
    run: Literal["control", "child"]
    there: int
    """Of the steps that were due."""
    due: int
    """At the figure's own rhythm; 0 where that cannot be said."""
    stride: int | None
    missing: tuple[str, ...]
    """Due steps up to the newest that are not there, as ranges."""
    to_come: int
    """Due steps behind the newest that is there."""
    mean: float | None
    low: float | None
    high: float | None
    last: float | None
    rows: SideRows


@dataclass(frozen=True)
class PageFacts:
    """All that the page shows."""

    run_id: RunId
    trial: Trial
    window: Window
    found: Comparison | None
    """None before the child's first step."""
    logged: tuple[LoggedFigure, ...]
    notes: tuple[str, ...]
    """What is odd about the rows, where nothing is compared yet."""
    unknown: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    made_at: datetime
    until: datetime
    """Until when to believe it."""
    timezone: str
    picture: str
    """Why there is none; empty when it stands beside the page."""


class TrialPages:
    """Renders pages; every text that comes from outside goes through ``redact`` first."""

    def __init__(self, redact: Callable[[str], str] = str) -> None:
        """Take what hides secrets in a text."""

        def shown(value: object) -> object:
            if not isinstance(value, str) or hasattr(value, "__html__"):
                return value
            return clean(redact(value), _TEXT)

        self._environment = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=shown,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "number": say_number,
            "word": OUTCOME_WORDS.__getitem__,
            "sign": OUTCOME_SIGNS.__getitem__,
            "href": safe_address,
        }

    def trial(self, facts: PageFacts) -> str:
        """Return the page of one trial."""
        found, trial = facts.found, facts.trial
        context = {
            "facts": facts,
            "trial": trial,
            "plan": trial.plan,
            "found": found,
            "verdict": verdict_of(facts),
            "headline": headline_of(facts),
            "grave": grave_lines(found) if found else (),
            "gates": tuple(map(_gate_row, by_gravity(found.gates))) if found else (),
            "quiet": found.quiet if found else None,
            "quiet_gate": QUIET_GATE,
            "counts": _counts(found.quiet) if found and found.quiet else (),
            "error": error_line(found) if found else "",
            "notes": found.notes if found else facts.notes,
            "stages": _stages(trial, facts.timezone),
            "times": _times(facts),
            "ending": _ENDINGS[trial.ending] if trial.ending else "",
            "links": _links(facts),
        }
        return self._environment.get_template("trial.html").render(context)

    def index(self, trials: tuple[tuple[str, str], ...]) -> str:
        """Return the page that lists trials, given as old run and child."""
        return self._environment.get_template("trials.html").render(trials=trials)


def verdict_of(facts: PageFacts) -> str:
    """Return the class of the page's colour: an outcome's value, or ``waiting`` before there is anything to judge."""
    return facts.found.outcome.value if facts.found else "waiting"


def headline_of(facts: PageFacts) -> str:
    """Say in one line what the page says."""
    return verdict_line(facts.found) if facts.found else "no step of the child yet"


def say_number(value: float | None) -> str:
    """Return a figure as people read it; a dash for none."""
    return "-" if value is None else f"{value:,.5g}"


def safe_address(address: str) -> str:
    """Return an address that may be a link; empty for any other, a script's for instance."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    is_safe = parts.scheme in {"http", "https"} and bool(parts.netloc)
    return address if is_safe and not any(char.isspace() or not char.isprintable() for char in address) else ""


@dataclass(frozen=True)
class Strip:
    """A gate drawn as a line: what it allows, and where the difference lies. All are places from 0 to 100."""

    zero: float
    allowed: tuple[float, float]
    """From and to."""
    limits: tuple[float, ...]
    interval: tuple[float, float] | None
    delta: float | None


@dataclass(frozen=True)
class _GateRow:
    judged: Judged
    delta: str
    interval: str
    margin: str
    coverage: str
    strip: Strip | None
    facts: tuple[tuple[str, str], ...]


def _gate_row(judged: Judged) -> _GateRow:
    gate = judged.gate
    is_known = judged.low is not None or judged.high is not None
    facts = [("mean of the pairs", say_number(judged.mean_delta))] if judged.mean_delta is not None else []
    if judged.max_delta is not None:
        facts.append(("largest", f"{judged.max_delta:+,.5g} at step {judged.max_step}"))
    if judged.failed_first_at is not None and str(judged.failed_first_at) not in " ".join(judged.reasons):
        facts.append(("failed first at step", str(judged.failed_first_at)))
    return _GateRow(
        judged=judged,
        delta="not known" if judged.delta is None else in_unit(judged.delta, gate),
        interval=say_interval(judged) if is_known else "not known",
        margin=say_margin(judged) or "not known",
        coverage=say_coverage(judged).replace(" steps", ""),
        strip=strip_of(judged),
        facts=tuple(facts),
    )


def strip_of(judged: Judged) -> Strip | None:
    """Return a gate as a line; None where no difference is known."""
    gate = judged.gate
    # Of the worst or the quantile within a distance, the difference is that distance: it has one limit.
    limits = {
        Direction.UP: (gate.tolerance,),
        Direction.DOWN: (-gate.tolerance,),
        Direction.EITHER: (-gate.tolerance, gate.tolerance) if gate.reduce is Reduce.MEAN else (gate.tolerance,),
    }[gate.direction]
    known = [each for each in (judged.delta, judged.low, judged.high) if each is not None]
    if not known:
        return None
    # In units of the greatest figure: nothing that a trainer may log overflows.
    unit = max(map(abs, (*limits, *known))) or 1.0
    low, high = min(0.0, *limits, *known) / unit, max(0.0, *limits, *known) / unit
    room = (high - low) * 0.08 or 1.0
    low, high = low - room, high + room

    def place(value: float) -> float:
        return round(100 * (value / unit - low) / (high - low), 2)

    allowed = {
        Direction.UP: (0.0, place(limits[0])),
        Direction.DOWN: (place(limits[0]), 100.0),
        Direction.EITHER: (place(limits[0]) if len(limits) > 1 else place(0.0), place(limits[-1])),
    }[gate.direction]
    is_open = judged.low is None and judged.high is None
    interval = (
        None
        if is_open
        else (
            0.0 if judged.low is None else place(judged.low),
            100.0 if judged.high is None else place(judged.high),
        )
    )
    return Strip(
        zero=place(0.0),
        allowed=allowed,
        limits=tuple(map(place, limits)),
        interval=interval,
        delta=None if judged.delta is None else place(judged.delta),
    )


def _counts(quiet: Quiet) -> tuple[tuple[str, str], ...]:
    named = quiet.happened.model_dump()
    return tuple((name, "not counted" if count is None else str(count)) for name, count in named.items())


def _stages(trial: Trial, timezone: str) -> tuple[tuple[str, str, bool], ...]:
    """Return each stage with when it was reached, oldest first, then those still to come; and whether it is now."""
    steps = [(step.stage, step.at) for step in trial.steps]
    if Stage.PLANNED not in {stage for stage, _ in steps}:
        steps.insert(0, (Stage.PLANNED, trial.agreed_at))
    reached = {stage for stage, _ in steps}
    way = _BACK if Stage.NO_GO in reached else _USUAL
    ahead = [stage for stage in way if stage not in reached and way.index(stage) > _place(way, trial.stage)]
    if trial.plan.fork is None:
        ahead = [stage for stage in ahead if stage is not Stage.FORKED]
    newest = len(steps) - 1
    past = [(STAGE_WORDS[stage], say_time(at, timezone), place == newest) for place, (stage, at) in enumerate(steps)]
    to_come = [(STAGE_WORDS[stage], "", False) for stage in ahead] if not trial.is_over else []
    return (*past, *to_come)


def _place(way: tuple[Stage, ...], stage: Stage) -> int:
    return way.index(stage) if stage in way else -1


def _times(facts: PageFacts) -> dict[str, str]:
    plan, zone = facts.trial.plan, facts.timezone
    return {
        "made": say_time(facts.made_at, zone),
        "until": say_time(facts.until, zone),
        "rollback_by": say_time(plan.rollback_by, zone) if plan.rollback_by else "",
        "reviewed": say_time(facts.trial.review.at, zone) if facts.trial.review else "",
    }


def _links(facts: PageFacts) -> tuple[tuple[str, str], ...]:
    own = ("tracker report", facts.trial.tracker_report_url)
    every = (*facts.links, own) if own[1] and own[1] not in {address for _, address in facts.links} else facts.links
    return tuple((label, address) for label, address in every if address)
