"""What the fake W&B does when the SDK writes: runs begun, forked, resumed and ended, their rows, and reports.

As wandb-core 0.31 sends it: a run is made by the mutation UpsertBucket, by its name (the run's id); a fork is the same
with ``_wandb.branch_point`` in its config. Rows, summary and end come over the file stream.
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.wandb_world import StoredRun, World, to_wire

type Variables = dict[str, Any]


class RefusedWriteError(Exception):
    """The service answers 400: what was asked for cannot be done."""


@dataclass
class StoredReport:
    id: str
    project: str
    title: str
    description: str
    spec: str
    """JSON, as the SDK sent it."""
    name: str = ""
    kind: str = "runs"

    @property
    def view(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": self.kind,
            "name": self.name,
            "displayName": self.title,
            "description": self.description,
            "user": {"username": "hero-bot", "photoUrl": None, "email": "hero@example.com"},
            "spec": self.spec,
            "createdAt": "2026-11-29T03:00:00Z",
            "updatedAt": "2026-11-29T03:00:00Z",
        }


@dataclass
class Writes:
    """Mutations by name, and what a writer asks before them."""

    world: World
    url: str = ""
    """Where files go."""
    reports: list[StoredReport] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    """The run of every UpsertBucket that made one, in order."""

    @property
    def by_name(self) -> dict[str, Callable[[Variables], Any]]:
        return {
            "UpsertBucket": self._upsert_bucket,
            "RunResumeStatus": self._resume_status,
            "CreateRunFiles": self._run_files,
            "ServerFeaturesQuery": lambda _variables: {"serverInfo": {"features": []}},
            "ProjectInternalId": self._internal_id,
            "GetProjects": self._projects,
            "ProjectViews": self._views,
            "upsertView": self._upsert_view,
        }

    def _upsert_bucket(self, variables: Variables) -> Any:
        project, name = variables["project"], variables["name"]
        run = self.world.projects.get(project, {}).get(name)
        is_new = run is None
        config = json.loads(variables["config"] or "{}")
        internals = config.pop("_wandb", {}).get("value", {})
        if run is None:
            run = self._made(project, name, internals.get("branch_point"))
            self.begun.append(name)
        run.config = {key: each["value"] for key, each in config.items()}
        run.internals = internals
        run.display_name = variables["displayName"] or run.display_name
        run.state = "running"
        project_of = {
            "id": "UHJvamVjdDox",
            "name": project,
            "entity": {"id": "RW50aXR5OjE=", "name": self.world.entity},
        }
        bucket = {
            "id": node_id(run, project, self.world.entity),
            "name": run.id,
            "displayName": run.display_name,
            "description": None,
            "config": json.dumps(run.wire_config()),
            "sweepName": None,
            "historyLineCount": len(run.rows),
            "project": project_of,
        }
        return {"upsertBucket": {"bucket": bucket, "inserted": is_new}}

    def _made(self, project: str, name: str, point: dict[str, Any] | None) -> StoredRun:
        if point is None:
            return self.world.add_run(project, name, name)
        parent = self.world.projects.get(project, {}).get(point["run_id"])
        if parent is None:
            raise RefusedWriteError(f"run {point['run_id']} not found")
        child = self.world.fork(project, parent, name, int(point["step"]), name)
        child.summary = dict(parent.summary)  # "Summary metrics from the source run are copied to the forked run"
        return child

    def _resume_status(self, variables: Variables) -> Any:
        run = self.world.projects.get(variables["project"], {}).get(variables["name"])
        entity = {"id": "RW50aXR5OjE=", "name": self.world.entity}
        bucket = None
        if run is not None:
            tail = [json.dumps(to_wire(run.rows[-1]))] if run.rows else []
            started = {"t": run.internals["t"]} if "t" in run.internals else {}
            bucket = {
                "id": node_id(run, variables["project"], self.world.entity),
                "name": run.id,
                "summaryMetrics": json.dumps(to_wire(run.summary)),
                "displayName": run.display_name,
                "logLineCount": 0,
                "historyLineCount": len(run.rows),
                "eventsLineCount": 0,
                "historyTail": json.dumps(tail),
                "eventsTail": "[]",
                "config": json.dumps(run.wire_config()),
                "tags": [],
                "notes": None,
                "wandbConfig": json.dumps(started),
            }
        return {"model": {"id": "UHJvamVjdDox", "name": variables["project"], "entity": entity, "bucket": bucket}}

    def _run_files(self, variables: Variables) -> Any:
        files = [{"name": name, "uploadUrl": f"{self.url}/storage/{name}"} for name in variables["files"]]
        return {"createRunFiles": {"runID": "UnVuOjE=", "uploadHeaders": [], "files": files}}

    def _internal_id(self, variables: Variables) -> Any:
        found = variables["projectName"] in self.world.projects and variables["entityName"] == self.world.entity
        return {"project": {"id": "UHJvamVjdDox", "internalId": "UHJvamVjdEludGVybmFsSWQ6Nw=="} if found else None}

    def _projects(self, _variables: Variables) -> Any:
        edges = [
            {
                "node": {
                    "id": name,
                    "name": name,
                    "entityName": self.world.entity,
                    "createdAt": "",
                    "isBenchmark": False,
                    "user": None,
                }
            }
            for name in self.world.projects
        ]
        return {"models": {"edges": edges, "pageInfo": {"endCursor": None, "hasNextPage": False}}}

    def _views(self, variables: Variables) -> Any:
        if variables["project"] not in self.world.projects or variables["entity"] != self.world.entity:
            return {"project": None}
        kind = variables.get("viewType") or "runs"
        all_of_it = [each for each in self.reports if (each.project, each.kind) == (variables["project"], kind)]
        start = int(variables.get("reportCursor") or 0)
        page = all_of_it[start : start + variables["reportLimit"]]
        edges = [{"node": each.view, "cursor": str(start + n)} for n, each in enumerate(page, start=1)]
        more = start + len(page) < len(all_of_it)
        info = {"endCursor": edges[-1]["cursor"] if edges else None, "hasNextPage": more}
        return {"project": {"allViews": {"edges": edges, "pageInfo": info}}}

    def _upsert_view(self, variables: Variables) -> Any:
        report = next((each for each in self.reports if variables["id"] and each.id == variables["id"]), None)
        is_new = report is None
        if report is None:
            number = base64.b64encode(f"View:{len(self.reports) + 1}".encode()).decode()
            report = StoredReport(id=number, project=variables["projectName"], title="", description="", spec="{}")
            self.reports.append(report)
        report.title, report.description = variables["displayName"], variables["description"]
        report.spec, report.name, report.kind = variables["spec"], variables["name"], variables["type"]
        owner = {"id": "UHJvamVjdDox", "name": report.project, "entityName": self.world.entity}
        return {"upsertView": {"view": {**report.view, "project": owner}, "inserted": is_new}}

    def stream(self, path: str, body: dict[str, Any]) -> None:
        """Take what a run sends to ``/files/ENTITY/PROJECT/RUN/file_stream``: rows, the summary, its end."""
        _, _, _, project, name, _ = path.split("/")
        with self.world.lock:
            run = self.world.projects[project][name]
            files = body.get("files") or {}
            for line in files.get("wandb-history.jsonl", {}).get("content", ()):
                self.world.take_row(run, json.loads(line))
            for line in files.get("wandb-summary.json", {}).get("content", ()):
                run.summary = json.loads(line)
            if body.get("complete"):
                run.state = "finished" if body.get("exitcode") == 0 else "failed"


def node_id(run: StoredRun, project: str, entity: str) -> str:
    """Return W&B's own id of a run, as run sets of reports name it too."""
    return base64.b64encode(f"Run:v1:{run.id}:{project}:{entity}".encode()).decode()
