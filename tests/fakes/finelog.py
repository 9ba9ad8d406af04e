"""The real Finelog, embedded, and a trainer that writes to it through Finelog's own client.

The server starts in some 30 ms; a ``flush`` takes up to a second, so write first and flush once.
"""

import contextlib
import dataclasses
import time
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import httpx
import numpy as np
import pyarrow as pa
from finelog.client import LogClient
from finelog.embedded import EmbeddedServer

from bot.model.series import Floats, Ints

# A proxy of the machine must not stand between a test and its own loopback.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_START_DEADLINE_S = 20.0
_FLUSH_S = 20.0
_ROWS_A_WRITE = 60_000
"""12 MB; a write may have 16."""


@dataclasses.dataclass
class Row:
    """The columns of ``levanter.metrics`` that matter; a subset of the real ones is accepted."""

    key_column: ClassVar[str] = "timestamp_ms"
    timestamp_ms: int
    run_id: str
    execution_uid: str | None
    job_id: str
    process_index: int
    step: int | None
    name: str
    kind: str
    value: float | None


@dataclasses.dataclass(frozen=True)
class Trainer:
    """Who writes."""

    run_id: str
    execution: str | None = "iris:abc"
    job_id: str = "/me/hero-coord/train"
    process: int = 0


class Finelog:
    """One server, and a client that writes to it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = LogClient.connect(url)
        self._written: dict[str, Any] = {}

    def write(self, trainer: Trainer, step: int | None, at: datetime, **figures: float | None) -> None:
        """Write figures of one step; readable after ``flush``."""
        name = f"levanter.metrics.{trainer.run_id}"
        table = self._written.setdefault(name, self.client.get_table(name, Row))
        table.write([_row(trainer, step, at, figure, value) for figure, value in figures.items()])

    def write_many(self, trainer: Trainer, name: str, steps: Ints, values: Floats, began: datetime) -> None:
        """Write one figure of many steps at once, a second apart; readable when this returns.

        Finelog's own client takes 10,000 rows a second at most.
        """
        namespace = f"levanter.metrics.{trainer.run_id}"
        table = self.client.get_table(namespace, Row)
        table._ensure_registered()  # from then on it knows all the columns
        for start in range(0, len(steps), _ROWS_A_WRITE):
            part = slice(start, start + _ROWS_A_WRITE)
            same = dataclasses.asdict(_row(trainer, 0, began, name, 0.0))
            given: dict[str, Any] = {key: [value] * len(steps[part]) for key, value in same.items()}
            given |= {"step": steps[part], "value": values[part]}
            given["timestamp_ms"] = int(began.timestamp() * 1000) + 1000 * np.arange(start, start + len(steps[part]))
            columns = [
                pa.array(given[field.name], field.type)
                if field.name in given
                else pa.nulls(len(steps[part]), field.type)
                for field in table._arrow_schema
            ]
            self.client._stats_flush(namespace, pa.RecordBatch.from_arrays(columns, schema=table._arrow_schema))

    def flush(self) -> None:
        """Wait until all that was written is readable; the server commits once a second."""
        tables, self._written = tuple(self._written.values()), {}
        with ThreadPoolExecutor(max_workers=max(1, len(tables))) as threads:
            outcomes = list(threads.map(lambda table: table.flush(timeout=_FLUSH_S), tables))
        assert all(outcome == "succeeded" for outcome in outcomes), outcomes

    def gauges(self, trainer: Trainer, at: datetime, gauges: Mapping[str, float], *, service: str = "levanter") -> None:
        """Write gauges of process telemetry, as trainers did before ``levanter.metrics``."""
        batch = str(uuid.uuid4())
        attributes = {
            "run_id": trainer.run_id,
            "execution_uid": trainer.execution,
            "job_id": trainer.job_id,
            "process_index": str(trainer.process),
        }
        records = [
            {
                "kind": "gauge",
                "name": name,
                "value": value,
                "unit": "",
                "attributes": {},
                "timestamp_ms": int(at.timestamp() * 1000),
            }
            for name, value in gauges.items()
        ]
        body = {
            "batch_id": batch,
            "version": 1,
            "resource": {"service": service, "attributes": attributes},
            "records": records,
        }
        answer = httpx.post(
            f"{self.url}/v1/telemetry", json=body, headers={"Idempotency-Key": batch}, trust_env=False, timeout=10
        )
        assert answer.status_code == httpx.codes.OK, answer.text


def _row(trainer: Trainer, step: int | None, at: datetime, name: str, value: float | None) -> Row:
    return Row(
        timestamp_ms=int(at.timestamp() * 1000),
        run_id=trainer.run_id,
        execution_uid=trainer.execution,
        job_id=trainer.job_id,
        process_index=trainer.process,
        step=step,
        name=name,
        kind="scalar",
        value=value,
    )


@contextlib.contextmanager
def finelog_server(directory: Path) -> Iterator[Finelog]:
    """Start a server of one's own and wait until it has all its tables."""
    with EmbeddedServer(log_dir=str(directory), host="127.0.0.1", port=0) as server:
        deadline = time.monotonic() + _START_DEADLINE_S
        while _health(server.address) != b"ok":
            if time.monotonic() > deadline:
                raise RuntimeError("Finelog did not become healthy")
            time.sleep(0.02)
        running = Finelog(server.address)
        try:
            yield running
        finally:
            running.client.close()


def _health(url: str) -> bytes:
    with _direct.open(f"{url}/health", timeout=5) as answer:
        return bytes(answer.read())
