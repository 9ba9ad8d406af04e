"""What the fake W&B answers to the queries that the public API of the SDK makes."""

import json
import re
from collections.abc import Callable
from typing import Any

from tests.fakes.wandb_world import StoredRun, World, to_wire
from tests.fakes.wandb_writes import Writes

type Variables = dict[str, Any]

_USER = {"name": "Hero", "username": "hero-bot"}


class UnknownQueryError(Exception):
    """The SDK asked something that this fake has no answer to."""


class Answers:
    """GraphQL by the name in the document; ``operationName`` is often empty."""

    def __init__(self, world: World, writes: Writes) -> None:
        self._world = world
        self._by_name: dict[str, Callable[[Variables], Any]] = {
            "Viewer": self._viewer,
            "GetViewer": self._viewer,
            "GetDefaultEntity": self._viewer,
            "Run": self._run,
            "RunHistoryKeys": self._history_keys,
            "RunParquetHistory": self._parquet_history,
            "HistoryPage": self._history_page,
            "SampledHistoryPage": self._sampled_history_page,
            "RunFullHistory": self._full_history,
            "RunSampledHistory": self._sampled_history,
            "Runs": self._runs,
            **writes.by_name,
        }

    def answer(self, document: str, variables: Variables) -> Any:
        name = query_name(document)
        if name not in self._by_name:
            raise UnknownQueryError(name)
        with self._world.lock:
            return self._by_name[name](variables)

    def _viewer(self, _variables: Variables) -> Any:
        return {
            "viewer": {
                "id": "VXNlcjox",
                "entity": self._world.entity,
                "name": _USER["username"],
                "username": _USER["username"],
                "email": "hero@example.com",
                "admin": False,
                "flags": "{}",
                "deletedAt": None,
                "apiKeys": {"edges": []},
                "teams": {"edges": [{"node": {"name": self._world.entity}}]},
            }
        }

    def _found(self, variables: Variables) -> StoredRun | None:
        if variables.get("entity") != self._world.entity:
            return None
        runs = self._world.projects.get(variables["project"], {})
        return runs.get(variables.get("name") or variables.get("run") or variables.get("runName") or "")

    def _in_run(self, variables: Variables, field: Callable[[StoredRun], Any]) -> Any:
        if variables.get("entity") != self._world.entity or variables["project"] not in self._world.projects:
            return {"project": None}
        run = self._found(variables)
        return {"project": {"run": None if run is None else field(run)}}

    def _run(self, variables: Variables) -> Any:
        return self._in_run(variables, whole)

    def _history_keys(self, variables: Variables) -> Any:
        return self._in_run(variables, lambda run: {"historyKeys": run.wire_keys()})

    def _parquet_history(self, variables: Variables) -> Any:
        return self._in_run(variables, lambda _run: {"parquetHistory": {"parquetUrls": [], "liveData": []}})

    def _history_page(self, variables: Variables) -> Any:
        def page(run: StoredRun) -> Any:
            rows = run.wire_rows(variables["minStep"], variables["maxStep"])
            return {"history": [json.dumps(row) for row in rows[: variables["pageSize"]]]}

        return self._in_run(variables, page)

    def _sampled_history_page(self, variables: Variables) -> Any:
        return self._in_run(variables, lambda run: {"sampledHistory": [sample(run, json.loads(variables["spec"]))]})

    def _sampled_history(self, variables: Variables) -> Any:
        specs = [json.loads(each) for each in variables["specs"]]
        return self._in_run(variables, lambda run: {"sampledHistory": [sample(run, each) for each in specs]})

    def _full_history(self, variables: Variables) -> Any:
        def sampled(run: StoredRun) -> Any:
            return {"history": [json.dumps(to_wire(row)) for row in thinned(run.rows, variables["samples"])]}

        return self._in_run(variables, sampled)

    def _runs(self, variables: Variables) -> Any:
        project = self._world.projects.get(variables["project"])
        if variables.get("entity") != self._world.entity or project is None:
            return {"project": None}
        wanted = json.loads(variables.get("filters") or "{}")
        matching = [run for run in project.values() if matches(run, wanted)]
        matching.sort(key=lambda run: run.created_at, reverse=(variables.get("order") or "").startswith("-"))
        start = int(variables.get("cursor") or 0)
        page = matching[start : start + variables["perPage"]]
        edges = [{"node": light(run), "cursor": str(start + n)} for n, run in enumerate(page, start=1)]
        more = start + len(page) < len(matching)
        return {
            "project": {
                "internalId": "7",
                "runCount": len(matching),
                "readOnly": False,
                "runs": {
                    "edges": edges,
                    "pageInfo": {"endCursor": edges[-1]["cursor"] if edges else None, "hasNextPage": more},
                },
            }
        }


def query_name(document: str) -> str:
    found = re.search(r"\b(?:query|mutation)\s+(\w+)", document)
    return found[1] if found else ""


def light(run: StoredRun) -> dict[str, Any]:
    return {
        "id": f"UnVuOnYxOjp7{run.id}",
        "projectId": "7",
        "tags": [],
        "name": run.id,
        "displayName": run.display_name,
        "sweepName": None,
        "state": run.state,
        "group": None,
        "jobType": None,
        "commit": None,
        "readOnly": False,
        "createdAt": run.created_at,
        "heartbeatAt": run.heartbeat_at,
        "description": None,
        "notes": None,
        "historyLineCount": len(run.rows),
        "user": _USER,
    }


def whole(run: StoredRun) -> dict[str, Any]:
    return {
        **light(run),
        "config": json.dumps(run.wire_config()),
        "summaryMetrics": json.dumps(to_wire(run.summary)),
        "systemMetrics": "{}",
        "historyKeys": run.wire_keys(),
    }


def sample(run: StoredRun, spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return only rows that hold every key, and of those at most ``samples``; ``maxStep`` is inclusive here."""
    keys = list(dict.fromkeys(spec["keys"]))
    rows = [
        {key: row[key] for key in keys}
        for row in (run.wire_rows() if "minStep" in spec else [to_wire(each) for each in run.rows])
        if all(key in row for key in keys)
        and spec.get("minStep", 0) <= row["_step"] <= spec.get("maxStep", run.last_step)
    ]
    return thinned(rows, spec["samples"])


def thinned(rows: list[dict[str, Any]], samples: int) -> list[dict[str, Any]]:
    """Leave out rows when there are more than asked for: the service samples, and never says so."""
    if len(rows) <= samples:
        return rows
    return [rows[round(n * (len(rows) - 1) / max(1, samples - 1))] for n in range(samples)]


def matches(run: StoredRun, wanted: dict[str, Any]) -> bool:
    """Whether a run passes a MongoDB-like filter, as far as Hero uses them."""
    fields = {"display_name": run.display_name, "state": run.state, "name": run.id}
    for name, test in wanted.items():
        match name:
            case "$and":
                passes = all(matches(run, each) for each in test)
            case "$or":
                passes = any(matches(run, each) for each in test)
            case _:
                passes = _passes(fields[name], test)
        if not passes:
            return False
    return True


def _passes(value: str, test: Any) -> bool:
    match test:
        case str():
            return value == test
        case {"$in": choices}:
            return value in choices
        case {"$ne": other}:
            return bool(value != other)
        case {"$regex": pattern}:
            return re.search(pattern, value) is not None
        case _:
            raise UnknownQueryError(f"filter {test!r}")
