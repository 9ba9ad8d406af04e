"""The real Iris controller, as a process on this machine, with real jobs.

A job runs in the cluster's working directory (`IrisCluster.work`), whatever directory it was submitted from: put
scripts there and name them by a relative path (Iris rewrites arguments that begin with /tmp/). The first job takes some
2.5 s, since a worker has to appear; later ones 1 s. A machine under heavy load can lose a worker, so do not assert that
an attempt is number 0. Stopping the cluster loses everything it knew; the next one has another port.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pytest

READY = re.compile(r"Controller started at (http://\S+)")
START_DEADLINE_S = 60.0
STOP_GRACE_S = 4.0
TERMINAL = frozenset({"SUCCEEDED", "FAILED", "KILLED", "WORKER_FAILED", "UNSCHEDULABLE"})

# A proxy of the machine must not stand between a test and its own loopback.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class IrisRefusedError(Exception):
    """The controller answered an RPC with an error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"HTTP {status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message


class IrisCluster:
    """One controller with its local workers, from `start` to `stop`.

    Attributes:
        url: where the controller listens, `http://127.0.0.1:PORT`.
        work: the working directory of the cluster, and so of every job.
        cli: the `iris` program of the environment that runs the tests.
        env: an environment for that program (and for a Hero under test): a home of its own, no proxies.
    """

    def __init__(self, root: Path) -> None:
        self.url = ""
        self.work = root / "work"
        self.cli = iris_program()
        self.env = _environment(home=root)
        self._out = root / "cluster.out"
        self._err = root / "cluster.err"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start the controller and wait until it says that it listens."""
        self.work.mkdir(parents=True)
        config = Path(__file__).with_name("iris_local.yaml")
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [self.cli, "--config", config, "cluster", "start", "--local"],
                cwd=self.work,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        deadline = time.monotonic() + START_DEADLINE_S
        while not (ready := READY.search(self._out.read_text())):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(
                    f"the Iris cluster did not start; the end of its log:\n{self._err.read_text()[-4000:]}"
                )
            time.sleep(0.05)
        self.url = ready[1]
        return self

    def stop(self) -> None:
        """End the controller and its jobs; a second call does nothing.

        Idle it takes a second or two. With jobs running the controller kills them at once, then can wait 17 s for
        threads that report to a log service that is already gone; that is not waited for.
        """
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the controller at once, as when its machine dies. Its jobs end within a second after it."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def rpc(self, method: str, payload: Mapping[str, Any], *, service: str = "iris.cluster.ControllerService") -> Any:
        """Call one method, `LaunchJob` say, and return its answer as it came.

        Raises:
            IrisRefusedError: the controller answered with an error.
        """
        request = urllib.request.Request(
            f"{self.url}/{service}/{method}",
            data=json.dumps(payload).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with _direct.open(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                body = error.read()
            detail = json.loads(body) if body else {}
            raise IrisRefusedError(error.code, detail.get("code", ""), detail.get("message", "")) from error

    def run_cli(self, *args: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        """Run `iris` against this controller from its working directory, and wait for it."""
        return subprocess.run(
            [self.cli, "--controller-url", self.url, *args],
            cwd=self.work,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def launch(self, name: str, *argv: str, **fields: Any) -> str:
        """Submit `/user/name` through LaunchJob, and return the job id.

        `fields` are added to the request as the RPC spells them, `replicas=4` say.

        Raises:
            IrisRefusedError: a job of that name still runs, or no machine could ever run this one.
        """
        request = {
            "name": name,
            "entrypoint": {"runCommand": {"argv": list(argv)}},
            "environment": {},
            "resources": {"cpuMillicores": 100, "memoryBytes": str(256 * 2**20)},
            "replicas": 1,
            "existingJobPolicy": "EXISTING_JOB_POLICY_ERROR",
            "clientRevisionDate": f"{datetime.now(UTC):%Y-%m-%d}",
        }
        return str(self.rpc("LaunchJob", request | fields)["jobId"])

    def state(self, job_id: str) -> str | None:
        """RUNNING, FAILED …, or None when there is no such job."""
        states = self.rpc("GetJobState", {"jobIds": [job_id]}).get("states", {})
        state = states.get(job_id)
        return None if state is None else str(state).removeprefix("JOB_STATE_")

    def wait_for(self, job_id: str, *states: str, timeout_s: float = 60) -> str:
        """Wait until the job is in one of these states (by default any terminal one), and return which.

        Raises:
            TimeoutError: it was not, in time.
        """
        wanted = frozenset(states) or TERMINAL
        deadline = time.monotonic() + timeout_s
        while (state := self.state(job_id)) is None or state not in wanted:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{job_id} is {state}, not {' or '.join(sorted(wanted))}, after {timeout_s} s")
            time.sleep(0.1)
        return state

    def tasks(self, job_id: str) -> list[dict[str, Any]]:
        """The tasks of a job, each with its current attempt only; none for an unknown job."""
        return list(self.rpc("ListTasks", {"jobId": job_id}).get("tasks", []))


def iris_program() -> Path:
    """The `iris` that belongs to the tests' environment.

    Fails the test, with the fix, if it is not installed; skips it on a Python for which Iris has no wheels.
    """
    if sys.version_info >= (3, 14):
        pytest.skip("Iris has wheels for Python 3.12 and 3.13 only")
    program = Path(sys.executable).with_name("iris")
    if not program.exists():
        pytest.fail(
            f"{program} is missing: the test group brings it, so run: uv run --group test pytest", pytrace=False
        )
    return program


def _environment(home: Path) -> dict[str, str]:
    dropped = {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH"}
    env = {key: value for key, value in os.environ.items() if key not in dropped and not key.startswith("IRIS_")}
    return env | {"HOME": str(home), "TMPDIR": str(home), "PYTHONUNBUFFERED": "1"}


@pytest.fixture(scope="session")
def iris_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IrisCluster]:
    """One cluster for all tests that leave it running. Give jobs names of your own."""
    cluster = IrisCluster(tmp_path_factory.mktemp("iris"))
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@pytest.fixture
def start_iris_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], IrisCluster]]:
    """Starts a cluster of the test's own at each call, for tests that stop it or count its jobs."""
    with contextlib.ExitStack() as clusters:

        def start() -> IrisCluster:
            cluster = IrisCluster(tmp_path_factory.mktemp("iris"))
            clusters.callback(cluster.stop)
            return cluster.start()

        yield start
