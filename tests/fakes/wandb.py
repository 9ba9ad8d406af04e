"""A W&B for tests, on 127.0.0.1: reached through the real SDK, which reads there as it does from the service.

    with FakeWandb() as wb:
        run = wb.run("hero", "abc123")
        wb.log(run, {"train/loss": float("nan")})
        wandb.Api(overrides={"base_url": wb.url}, api_key=wb.key)

One entity. It answers the queries that the public API makes (``wandb_answers.py``) and takes what a run or a report
writes (``wandb_writes.py``); what a trainer does and what goes wrong are methods here. All methods may be called from
any thread.
"""

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

from bot.sources.wandb import environment
from tests.fakes.wandb_answers import Answers, UnknownQueryError, query_name
from tests.fakes.wandb_server import STALLED, Reply, Server, expected_authorization
from tests.fakes.wandb_world import StoredRun, World
from tests.fakes.wandb_writes import RefusedWriteError, StoredReport, Writes

__all__ = ["FakeWandb", "StoredReport", "StoredRun", "fresh_sdk"]


@contextmanager
def fresh_sdk() -> Iterator[None]:
    """End the SDK's helper process afterwards, and give back the environment that Hero set for it."""
    before = dict(os.environ)
    yield
    if "wandb" in sys.modules:
        sys.modules["wandb"].teardown()
    os.environ.clear()
    os.environ.update(before)
    environment._before.clear()


KEY = "local-" + "0123456789abcdef" * 3
STARTED = datetime(2026, 11, 29, 3, 0, tzinfo=UTC)


class FakeWandb:
    def __init__(self, entity: str = "acme") -> None:
        self.entity = entity
        self.key = KEY
        self.queries: list[str] = []
        """The names of the queries that came in, in order; those that were refused too."""
        self.variables: list[dict[str, Any]] = []
        self._world = World(entity)
        self._writes = Writes(self._world)
        self._answers = Answers(self._world, self._writes)
        self._faults: list[Reply] = []
        self._lasting: dict[str, Reply] = {}
        self._lost: dict[str, list[Reply]] = {}
        self._complaints: list[str] = []
        self._guard = threading.Lock()
        self._server: Server | None = None

    def __enter__(self) -> Self:
        self._server = Server(self._respond, self._complaints.append, self._stream)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._writes.url = self.url
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        if error is None:
            assert not self._complaints, self._complaints

    # what trainers do

    def run(self, project: str, run_id: str, display_name: str = "hero-12d8b6f0", **fields: Any) -> StoredRun:
        """Start a run; ``config``, ``state``, ``created_at`` and ``heartbeat_at`` as the service would send them."""
        return self._world.add_run(project, run_id, display_name, **fields)

    def log(
        self, run: StoredRun, values: dict[str, Any], *, step: int | None = None, at: datetime | None = None
    ) -> bool:
        """Log one row, ten seconds a step after 03:00 by default; False when the service drops it."""
        number = run.last_step + 1 if step is None else step
        return self._world.log(run, values, step=step, at=at or STARTED + timedelta(seconds=10 * number))

    def log_steps(self, run: StoredRun, steps: Iterable[int], **values: Any) -> None:
        """Log one healthy row a step, with the trainer's own step in ``global_step``."""
        for step in steps:
            self.log(run, {"train/loss": 2.0, "global_step": step} | values, step=step)

    def fork(self, project: str, parent: StoredRun, child_id: str, step: int, name: str = "forked") -> StoredRun:
        return self._world.fork(project, parent, child_id, step, name)

    def stored(self, project: str) -> tuple[StoredRun, ...]:
        """Every run of a project, whoever made it."""
        with self._world.lock:
            return tuple(self._world.projects.get(project, {}).values())

    def rewind(self, run: StoredRun, step: int) -> None:
        self._world.rewind(run, step)

    def delete(self, project: str, run_id: str) -> None:
        with self._world.lock:
            del self._world.projects[project][run_id]

    def report(self, project: str, title: str, spec: str) -> StoredReport:
        """Keep a report that somebody made."""
        number = f"Vmlldzo{len(self._writes.reports)}"
        report = StoredReport(id=number, project=project, title=title, description="", spec=spec)
        self._writes.reports.append(report)
        return report

    @property
    def reports(self) -> list[StoredReport]:
        return self._writes.reports

    @property
    def begun(self) -> list[str]:
        """The id of each run that a trainer or a fork made, each time that one was made."""
        return self._writes.begun

    # what goes wrong

    def fail(self, status: int, *, times: int = 1, retry_after_s: int | None = None) -> None:
        """Answer the next requests with this status."""
        headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
        with self._guard:
            self._faults += [Reply(status, {"error": HTTPStatus(status).phrase}, headers)] * times

    def keep_failing(self, status: int, query: str = "") -> None:
        """Answer with this status from now on; only queries of that name when one is given."""
        with self._guard:
            phrase = HTTPStatus(status).phrase
            self._lasting[query] = Reply(status, {"error": phrase, "errors": [{"message": phrase}]})

    def stall(self, query: str = "") -> None:
        """Never answer from now on; only queries of that name when one is given."""
        with self._guard:
            self._lasting[query] = STALLED

    def lose(self, query: str, *, times: int = 1, is_silent: bool = False) -> None:
        """Do what the next queries of that name ask, and answer 502, or nothing at all."""
        with self._guard:
            self._lost[query] = [
                STALLED if is_silent else Reply(HTTPStatus.BAD_GATEWAY, {"error": "Bad Gateway"})
            ] * times

    def recover(self) -> None:
        with self._guard:
            self._faults.clear()
            self._lasting.clear()
            self._lost.clear()

    def _respond(self, authorization: str, body: Any) -> Reply:
        name = query_name(body["query"])
        with self._guard:
            self.queries.append(name)
            self.variables.append(body.get("variables") or {})
            fault = self._faults.pop(0) if self._faults else self._lasting.get(name, self._lasting.get(""))
        if fault is not None:
            return fault
        if authorization != expected_authorization(self.key):
            return Reply(HTTPStatus.UNAUTHORIZED, {"errors": [{"message": "user is not logged in"}]})
        try:
            reply = Reply(HTTPStatus.OK, {"data": self._answers.answer(body["query"], body.get("variables") or {})})
        except RefusedWriteError as error:
            return Reply(HTTPStatus.BAD_REQUEST, {"errors": [{"message": str(error)}]})
        except UnknownQueryError as error:
            self._complaints.append(f"no answer to {error}")
            return Reply(HTTPStatus.BAD_REQUEST, {"errors": [{"message": f"unknown query {error}"}]})
        with self._guard:
            lost = self._lost.get(name)
            return lost.pop() if lost else reply

    def _stream(self, authorization: str, path: str, body: Any) -> Reply:
        if authorization != expected_authorization(self.key):
            return Reply(HTTPStatus.UNAUTHORIZED, {"errors": [{"message": "user is not logged in"}]})
        self._writes.stream(path, body)
        return Reply(HTTPStatus.OK, {"exitcode": None, "limits": {}})
