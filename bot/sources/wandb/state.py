"""From the SDK's run object to what Hero keeps of it. Pure.

A run's config may hold secrets and is never kept: a few named fields are looked at, and nothing else leaves this file.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import AwareDatetime

from bot.errors import UnrecognisedError
from bot.model.contract import MetricsContract
from bot.model.tracker import ForkPoint, TrackerRunState, TrackerState
from bot.model.value import Value
from bot.sources.metric_rows import parse_moment, parse_step
from bot.sources.wandb.failure import SERVICE
from bot.sources.wandb.rows import TRACKER_STEP, figures_of, find, step_key

_EXECUTIONS = ("execution_uid", "execution_id", "iris_job_id", "IRIS_JOB_ID", "job_id", "slurm_job_id", "SLURM_JOB_ID")
"""Fields of the config in which trainers note which execution writes, the most telling one first."""
_TEXT_CHARS = 300
FORK_KEY = "hero_wandb_fork_from"
"""Where a run's config says of what it was forked, as ``RUN?_step=N``; by whoever forked it, Hero among them.

The SDK notes a fork in ``config._wandb.branch_point``, and drops that as soon as the run is resumed (wandb 0.31, run;
wandb/wandb issue 10694), which is what a trainer does at once. A field of the config proper stays.
"""
_FORK = re.compile(r"([^?]+)\?_step=([0-9]+)")


class SeenRun(Value):
    """One run at one moment."""

    entity: str
    project: str
    id: str
    name: str
    state: TrackerRunState
    url: str
    heartbeat_at: AwareDatetime | None
    created_at: AwareDatetime | None
    history_step: int
    """The newest ``_step`` that the history has; -1 when it is empty."""
    summary_step: int
    """The same by the summary, which comes another way."""
    row_count: int
    last_row_at: AwareDatetime | None
    step_key: str
    trainer_step: int | None
    figures: dict[str, float]
    fork: ForkPoint | None
    rewound_to: int | None
    execution: str

    @property
    def path(self) -> str:
        return f"{self.entity}/{self.project}/{self.id}"

    @property
    def last_step(self) -> int:
        return max(self.history_step, self.summary_step)

    def tracked(self, namesakes: tuple[str, ...]) -> TrackerState:
        """Return what is told of it."""
        return TrackerState(
            entity=self.entity,
            project=self.project,
            id=self.id,
            name=self.name,
            state=self.state,
            url=self.url,
            heartbeat_at=self.heartbeat_at,
            created_at=self.created_at,
            last_step=None if self.last_step < 0 else self.last_step,
            last_row_at=self.last_row_at,
            trainer_step=self.trainer_step,
            summary=self.figures,
            namesakes=namesakes,
            forked_from=self.fork,
            resumed_from=self.rewound_to,
            execution=self.execution,
        )


def parse_run(run: Any, names: MetricsContract) -> SeenRun:
    """Return what is read of a run that was loaded in full.

    Args:
        run: the SDK's object.
        names: the contract's words for its figures.

    Raises:
        UnrecognisedError: a field that must be there is not, or reads otherwise than any that is known.
    """
    summary = _table(_field(run, "summary_metrics"), "summaryMetrics")
    config = _table(_field(run, "config"), "config")
    key = step_key(names, summary)
    figures, _ = figures_of(summary, names)
    fork, rewound_to = _branch(_table(_field(run, "rawconfig"), "config"), config, run.id)
    return SeenRun(
        entity=run.entity,
        project=run.project,
        id=run.id,
        name=_text(_field(run, "name")),
        state=_state(run.state),
        url=run.url,
        heartbeat_at=parse_utc(_field(run, "heartbeatAt"), "heartbeatAt"),
        created_at=parse_utc(_field(run, "createdAt"), "createdAt"),
        history_step=_history_step(_field(run, "historyKeys")),
        summary_step=_number(summary.get(TRACKER_STEP), -1),
        row_count=_number(_field(run, "historyLineCount"), 0),
        last_row_at=parse_moment(summary.get("_timestamp")),
        step_key=key,
        trainer_step=None if key == TRACKER_STEP else parse_step(find(summary, key)),
        figures=figures,
        fork=fork,
        rewound_to=rewound_to,
        execution=next((_text(config[name]) for name in _EXECUTIONS if config.get(name) not in {None, ""}), ""),
    )


def parse_utc(raw: object, field: str) -> datetime | None:
    """Return a moment as W&B writes it: UTC, with a Z and without one.

    Raises:
        UnrecognisedError: it is no moment.
    """
    if raw is None:
        return None
    try:
        moment = datetime.fromisoformat(raw) if isinstance(raw, str) else None
    except ValueError:
        moment = None
    if moment is None:
        raise UnrecognisedError(SERVICE, f"{field} is no time")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _field(run: Any, name: str) -> Any:
    """Return an attribute as the service sent it; None when it sent none."""
    return getattr(run, name, None)


def _table(raw: object, field: str) -> Mapping[str, Any]:
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise UnrecognisedError(SERVICE, f"{field} is no table")
    return raw


def _state(raw: object) -> TrackerRunState:
    try:
        state = TrackerRunState(str(raw))
    except ValueError:
        raise UnrecognisedError(SERVICE, f"state {str(raw)[:40]!r} is none that is known") from None
    if state is TrackerRunState.MISSING:
        raise UnrecognisedError(SERVICE, "state 'missing' is none that is known")
    return state


def _history_step(keys: object) -> int:
    """A run without any row has no keys at all."""
    if keys is None:
        return -1
    if not isinstance(keys, Mapping):
        raise UnrecognisedError(SERVICE, "historyKeys is no table")
    return _number(keys.get("lastStep"), -1)


def _number(raw: object, default: int) -> int:
    step = parse_step(raw)
    return default if step is None else step


def fork_mark(parent_id: str, step: int) -> str:
    """Return what stands at ``FORK_KEY``; the SDK's own way to write such a point too."""
    return f"{parent_id}?_step={step}"


def _branch(
    raw_config: Mapping[str, Any], config: Mapping[str, Any], run_id: str
) -> tuple[ForkPoint | None, int | None]:
    """Return the fork, and the step of the rewind: the SDK notes the later one in ``config._wandb.branch_point``."""
    internals = raw_config.get("_wandb")
    point = internals.get("branch_point") if isinstance(internals, Mapping) else None
    if not isinstance(point, Mapping):
        return _marked(config, run_id), None
    step, parent = parse_step(point.get("step")), point.get("run_id")
    if step is None or not isinstance(parent, str):
        raise UnrecognisedError(SERVICE, "branch_point has no run_id or no step")
    if parent == run_id:
        return _marked(config, run_id), step
    return ForkPoint(run_id=parent[:_TEXT_CHARS], step=step), None


def _marked(config: Mapping[str, Any], run_id: str) -> ForkPoint | None:
    mark = config.get(FORK_KEY)
    found = _FORK.fullmatch(mark) if isinstance(mark, str) else None
    if found is None or found[1] == run_id:
        return None
    return ForkPoint(run_id=found[1][:_TEXT_CHARS], step=int(found[2]))


def _text(raw: object) -> str:
    return "" if raw is None else str(raw)[:_TEXT_CHARS]
