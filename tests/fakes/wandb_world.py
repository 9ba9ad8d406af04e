"""What the fake W&B stores: projects, runs and their histories, with the service's own rules about steps."""

import math
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any


def to_wire(value: Any) -> Any:
    """Spell NaN and infinities as strings, as the service does in history and summary."""
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {name: to_wire(each) for name, each in value.items()}
        case list() | tuple():
            return [to_wire(each) for each in value]
        case _:
            return value


@dataclass
class StoredRun:
    """One run; every step is unique, and rows are kept in the order of their steps."""

    id: str
    display_name: str
    state: str = "running"
    created_at: str = "2026-11-29T03:00:00Z"
    heartbeat_at: str | None = "2026-11-29T03:00:00Z"
    config: dict[str, Any] = field(default_factory=dict)
    internals: dict[str, Any] = field(default_factory=dict)
    """``config._wandb``: what the SDK itself notes there, e.g. ``branch_point``."""
    summary: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    last_step: int = -1
    hides_rows: bool = False
    """Every scan comes back empty although the last step is told (field report R19)."""

    def wire_config(self) -> dict[str, Any]:
        wrapped = {name: {"value": value, "desc": None} for name, value in self.config.items()}
        return {**wrapped, "_wandb": {"value": self.internals, "desc": None}}

    def wire_keys(self) -> dict[str, Any] | None:
        if self.last_step < 0:
            return None
        names = sorted({name for row in self.rows for name in row})
        return {"lastStep": self.last_step, "keys": {name: {"typeCounts": []} for name in names}, "sets": []}

    def wire_rows(self, first: int = 0, end: int | None = None) -> list[dict[str, Any]]:
        if self.hides_rows:
            return []
        return [to_wire(row) for row in self.rows if first <= row["_step"] and (end is None or row["_step"] < end)]


class World:
    """One entity and its projects; every method may be called from any thread."""

    def __init__(self, entity: str) -> None:
        self.entity = entity
        self.projects: dict[str, dict[str, StoredRun]] = {}
        self.lock = threading.RLock()

    def add_run(self, project: str, run_id: str, display_name: str, **fields: Any) -> StoredRun:
        with self.lock:
            run = StoredRun(id=run_id, display_name=display_name, **fields)
            self.projects.setdefault(project, {})[run_id] = run
            return run

    def log(self, run: StoredRun, values: dict[str, Any], *, step: int | None = None, at: datetime) -> bool:
        """Store one row and tell whether it was taken: the service drops every row at or below the last step."""
        with self.lock:
            number = run.last_step + 1 if step is None else step
            if number <= run.last_step:
                return False
            started = datetime.fromisoformat(run.created_at.removesuffix("Z")).replace(tzinfo=UTC)
            row = {
                "_step": number,
                "_timestamp": at.timestamp(),
                "_runtime": (at - started).total_seconds(),
                **values,
            }
            run.rows.append(row)
            run.last_step = number
            run.summary.update(row)
            return True

    def take_row(self, run: StoredRun, row: dict[str, Any]) -> None:
        """Store a row as the SDK sent it, its step and times included; dropped at or below the last step."""
        with self.lock:
            if row["_step"] > run.last_step:
                run.rows.append(row)
                run.last_step = row["_step"]

    def fork(self, project: str, parent: StoredRun, child_id: str, step: int, display_name: str) -> StoredRun:
        """Make a run that starts with the parent's rows up to ``step``."""
        with self.lock:
            child = self.add_run(project, child_id, display_name, created_at=parent.created_at)
            child.rows = [dict(row) for row in parent.rows if row["_step"] <= step]
            child.last_step = step
            child.summary = dict(child.rows[-1]) if child.rows else {}
            child.internals["branch_point"] = {"run_id": parent.id, "step": step}
            return child

    def rewind(self, run: StoredRun, step: int) -> None:
        """Cut the history after ``step``; the same run goes on there."""
        with self.lock:
            run.rows = [row for row in run.rows if row["_step"] <= step]
            run.last_step = step
            run.summary = dict(run.rows[-1]) if run.rows else {}
            run.internals["branch_point"] = {"run_id": run.id, "step": step}
