"""Iris as it is: a real controller with real jobs, asked over its RPC and through its CLI."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.actions.iris import IrisLauncher
from bot.clock import SystemClock
from bot.model.action import Done, Uncertain
from bot.model.contract import Contract, IrisContract
from bot.model.job import Job, JobState, Task, TaskState
from bot.model.plan import Grant
from bot.model.planned import RelaunchPlan
from bot.model.reading import Gap, Known, Unknown
from bot.model.value import JobId, PersonName, RunId
from bot.redaction import Redactor
from bot.settings import IrisSettings
from bot.sources.iris.client_age import client_build_date
from bot.sources.iris.source import IrisOrchestrator
from bot.sources.iris.tables import (
    COLUMNS_SQL,
    named_sql,
    parse_columns,
    parse_named_rows,
    parse_tree,
    tree_sql,
)
from tests.fakes.fence import no_fence
from tests.fakes.iris_cluster import IrisCluster

CLOCK = SystemClock()

SCRIPTS = {
    "ir_sleep.py": "import time\ntime.sleep(300)\n",
    "ir_lines.py": "for n in range(40):\n    print(f'tick {n}', flush=True)\n",
    "ir_exit.py": "import sys\nprint('last words of', sys.argv[1], flush=True)\nsys.exit(int(sys.argv[2]))\n",
    "ir_raise.py": "raise ValueError('loss is nan at step 17')\n",
    "ir_once.py": (
        "import pathlib, sys\nmark = pathlib.Path('ir_once.mark')\n"
        "if not mark.exists():\n    mark.touch()\n    sys.exit(3)\nprint('second try', flush=True)\n"
    ),
}


@pytest.fixture(scope="module")
def cluster(iris_cluster: IrisCluster) -> Iterator[IrisCluster]:
    """The shared cluster with one job of each kind."""
    for name, text in SCRIPTS.items():
        (iris_cluster.work / name).write_text(text)
    gpus = {"cpuMillicores": 100, "memoryBytes": str(2**28), "device": {"gpu": {"variant": "H100", "count": 8}}}
    iris_cluster.launch("/me/ir-raise", "python", "ir_raise.py")
    iris_cluster.launch("/me/ir-lines", "python", "ir_lines.py")
    iris_cluster.launch("/me/ir-seven", "python", "ir_exit.py", "seven", "7")
    iris_cluster.launch("/me/ir-retried", "python", "ir_once.py", maxRetriesFailure=2, maxTaskFailures=2)
    iris_cluster.launch(
        "/me/ir-gpus", "python", "ir_sleep.py", resources=gpus, replicas=4, coscheduling={"groupBy": "leafgroup"}
    )
    for name in ("/me/ir-coord", "/me/ir-coord/train", "/me/ir-coord2", "/me/ir_coord"):
        iris_cluster.launch(name, "python", "ir_sleep.py")
    iris_cluster.launch("/me/ir-again", "python", "ir_exit.py", "the-old-one", "1")
    iris_cluster.wait_for("/me/ir-again")
    iris_cluster.launch(
        "/me/ir-again",
        "python",
        "ir_exit.py",
        "the-new-one",
        "0",
        existingJobPolicy="EXISTING_JOB_POLICY_UNSPECIFIED",
    )
    for name in ("/me/ir-raise", "/me/ir-lines", "/me/ir-seven", "/me/ir-again", "/me/ir-retried"):
        iris_cluster.wait_for(name)
    for name in ("/me/ir-coord", "/me/ir-coord/train", "/me/ir-coord2", "/me/ir_coord"):
        iris_cluster.wait_for(name, "RUNNING")
    yield iris_cluster
    for name in ("/me/ir-gpus", "/me/ir-coord", "/me/ir-coord2", "/me/ir_coord"):
        iris_cluster.rpc("TerminateJob", {"jobId": name})


def settings_over(way: str, cluster: IrisCluster, **more: Any) -> IrisSettings:
    """The settings of each way; the cluster's name is what makes Hero use the CLI, and is not looked up."""
    if way == "rpc":
        return IrisSettings(controller_url=cluster.url, cli=str(cluster.cli), **more)
    return IrisSettings(cluster="test-local", cli=f"{cluster.cli} --controller-url {cluster.url}", **more)


@pytest.fixture(params=["rpc", "cli"])
async def orchestrator(request: pytest.FixtureRequest, cluster: IrisCluster) -> AsyncIterator[IrisOrchestrator]:
    orchestrator = IrisOrchestrator(settings_over(request.param, cluster), CLOCK)
    yield orchestrator
    await orchestrator.close()


@pytest.fixture
async def over_rpc(cluster: IrisCluster) -> AsyncIterator[IrisOrchestrator]:
    orchestrator = IrisOrchestrator(settings_over("rpc", cluster), CLOCK)
    yield orchestrator
    await orchestrator.close()


def contract_of(job_id: str, *command: str, checkout: Path | None = None) -> Contract:
    return Contract(
        run_id=RunId(job_id.rsplit("/", 1)[-1]),
        dri=PersonName("ana"),
        command=command or ("iris", "job", "run", "--no-wait", "--", "true"),
        checkout=str(checkout or "."),
        output_root="/nowhere",
        orchestrator=IrisContract(kind="iris", job_id=JobId(job_id)),
    )


async def read(orchestrator: IrisOrchestrator, job_id: str) -> tuple[Job, ...]:
    reading = await orchestrator.jobs(contract_of("/me/ir"), JobId(job_id))
    assert isinstance(reading, Known), reading
    return reading.value


def tasks_of(job: Job) -> tuple[Task, ...]:
    assert isinstance(job.tasks, Known), job.tasks
    return job.tasks.value


async def test_what_a_job_asks_for_is_told_of_itself_and_of_its_children(orchestrator: IrisOrchestrator) -> None:
    """The list of children does not say it, so each is asked."""
    (gpus,) = await read(orchestrator, "/me/ir-gpus")
    coordinator, child = await read(orchestrator, "/me/ir-coord")

    assert (gpus.accelerator, gpus.accelerators, gpus.expected_tasks) == ("H100", 8, 4)
    told = [(each.job_id, each.accelerator, each.accelerators, each.expected_tasks) for each in (coordinator, child)]
    assert told == [("/me/ir-coord", "", 0, 1), ("/me/ir-coord/train", "", 0, 1)]


def test_the_controllers_own_tables_tell_what_a_job_asks_for(cluster: IrisCluster) -> None:
    at = CLOCK.now()
    columns = parse_columns(cluster.run_cli("query", "-f", "csv", COLUMNS_SQL).stdout, at)
    assert isinstance(columns, Known)

    rows = cluster.run_cli("query", "-f", "csv", tree_sql(JobId("/me/ir-gpus"), columns.value)).stdout
    tree = parse_tree(rows, at, JobId("/me/ir-gpus"), at)

    assert isinstance(tree, Known), tree
    [job] = tree.value
    assert (job.accelerator, job.accelerators, job.expected_tasks) == ("H100", 8, 4)


async def test_another_coordinator_of_the_run_is_seen_by_its_name_or_by_a_past_launch(
    orchestrator: IrisOrchestrator,
) -> None:
    """``/me/ir-coord2`` merely begins alike, and what has ended is no rival."""
    run = contract_of("/me/ir")
    past = (JobId("/me/ir-seven"), JobId("/me/ir_coord"), JobId("/me/ir-pruned"))

    coordinator = await orchestrator.neighbours(run, JobId("/me/ir-coord"), ())
    relaunched = await orchestrator.neighbours(run, JobId("/me/ir-coord-2"), past)

    assert isinstance(coordinator, Known), coordinator
    assert coordinator.value == ()
    assert isinstance(relaunched, Known), relaunched
    assert [(each.job_id, each.state, each.expected_tasks) for each in relaunched.value] == [
        ("/me/ir-coord", JobState.RUNNING, 1),
        ("/me/ir_coord", JobState.RUNNING, 1),
    ]


def test_the_controllers_own_tables_tell_the_roots_that_begin_alike(cluster: IrisCluster) -> None:
    at = CLOCK.now()
    columns = parse_columns(cluster.run_cli("query", "-f", "csv", COLUMNS_SQL).stdout, at)
    assert isinstance(columns, Known)

    sql = named_sql((JobId("/me/ir-coord"),), (JobId("/me/ir_coord"),), columns.value)
    named = parse_named_rows(cluster.run_cli("query", "-f", "csv", sql).stdout, at, lambda _: True)

    assert isinstance(named, Known), named
    assert [each.job_id for each in named.value] == ["/me/ir-coord", "/me/ir-coord2", "/me/ir_coord"]


async def test_a_failed_job_is_told_by_its_tasks_exit_code(orchestrator: IrisOrchestrator) -> None:
    (job,) = await read(orchestrator, "/me/ir-seven")

    assert job.state is JobState.FAILED
    assert [(task.state, task.exit_code) for task in tasks_of(job)] == [(TaskState.FAILED, 7)]
    assert job.pending_reason == ""
    assert job.finished_at is not None
    assert job.finished_at > job.submitted_at


async def test_a_job_is_read_with_all_below_it_and_without_neighbours(orchestrator: IrisOrchestrator) -> None:
    jobs = await read(orchestrator, "/me/ir-coord")

    assert [(job.job_id, job.parent, job.state) for job in jobs] == [
        ("/me/ir-coord", None, JobState.RUNNING),
        ("/me/ir-coord/train", "/me/ir-coord", JobState.RUNNING),
    ]
    assert [task.task_id for job in jobs for task in tasks_of(job)] == ["/me/ir-coord/0", "/me/ir-coord/train/0"]
    assert [task.exit_code for job in jobs for task in tasks_of(job)] == [None, None]


async def test_absence_is_known_only_from_the_controllers_own_answer(orchestrator: IrisOrchestrator) -> None:
    nobody, wrong = await asyncio.gather(
        orchestrator.jobs(contract_of("/me/ir"), JobId("/me/ir-nobody")),
        orchestrator.jobs(contract_of("/me/ir"), JobId("no-canonical-id")),
    )

    assert isinstance(nobody, Known)
    assert nobody.value == ()
    assert isinstance(wrong, Unknown)
    assert wrong.reason is Gap.UNRECOGNISED


async def test_a_namesakes_old_lines_are_left_out(orchestrator: IrisOrchestrator, over_rpc: IrisOrchestrator) -> None:
    """Both launches print under the key /me/ir-again/0:0; only the submission tells them apart."""
    (job,) = await read(over_rpc, "/me/ir-again")

    async with asyncio.timeout(15):  # a line is visible within some two seconds after it was printed
        reading = await orchestrator.log(contract_of("/me/ir-again"), job.job_id, job.submitted_at)
        while isinstance(reading, Known) and not reading.value.lines:
            reading = await orchestrator.log(contract_of("/me/ir-again"), job.job_id, job.submitted_at)
    everything = await over_rpc.log(contract_of("/me/ir-again"), job.job_id, None)

    assert isinstance(reading, Known), reading
    assert "the-new-one" in reading.value.text
    assert "the-old-one" not in reading.value.text
    assert {(line.task, line.attempt) for line in reading.value.lines} == {("/me/ir-again/0", 0)}
    assert isinstance(everything, Known)
    assert "the-old-one" in everything.value.text


async def test_every_attempt_of_a_retried_task_is_read(over_rpc: IrisOrchestrator) -> None:
    (job,) = await read(over_rpc, "/me/ir-retried")

    (task,) = tasks_of(job)
    assert job.state is JobState.SUCCEEDED
    assert [attempt.attempt for attempt in task.attempts] == list(range(len(task.attempts)))
    assert len({attempt.uid for attempt in task.attempts}) == len(task.attempts) >= 2
    assert (task.attempts[0].exit_code, task.attempts[-1].exit_code, task.exit_code) == (3, 0, 0)


async def test_the_last_words_of_an_exception_are_read(over_rpc: IrisOrchestrator) -> None:
    (job,) = await read(over_rpc, "/me/ir-raise")
    async with asyncio.timeout(10):  # a line is visible within some two seconds after it was printed
        log = await over_rpc.log(contract_of("/me/ir-raise"), job.job_id, job.submitted_at)
        while isinstance(log, Known) and "nan" not in log.value.text:
            log = await over_rpc.log(contract_of("/me/ir-raise"), job.job_id, job.submitted_at)

    assert tasks_of(job)[0].exit_code == 1
    assert tasks_of(job)[0].error.endswith("ValueError: loss is nan at step 17")
    assert isinstance(log, Known)
    assert log.value.lines[0].text == "Traceback (most recent call last):"


async def test_a_pending_job_says_what_it_waits_for(over_rpc: IrisOrchestrator) -> None:
    (job,) = await read(over_rpc, "/me/ir-gpus")

    assert job.state is JobState.PENDING
    assert "coschedul" in job.pending_reason.lower()
    assert job.started_at is None
    assert [(task.state, task.attempts) for task in tasks_of(job)] == [(TaskState.PENDING, ())] * 4


async def test_only_the_newest_lines_are_kept_and_the_cut_is_told(cluster: IrisCluster) -> None:
    orchestrator = IrisOrchestrator(settings_over("rpc", cluster, log_lines=5), CLOCK)

    async with asyncio.timeout(10):  # a line is visible within some two seconds after it was printed
        log = await orchestrator.log(contract_of("/me/ir-lines"), JobId("/me/ir-lines"), None)
        while not (isinstance(log, Known) and "tick 39" in log.value.text):
            log = await orchestrator.log(contract_of("/me/ir-lines"), JobId("/me/ir-lines"), None)
    await orchestrator.close()

    assert isinstance(log, Known)
    assert [line.text for line in log.value.lines] == [f"tick {n}" for n in range(35, 40)]
    assert log.value.is_cut


@pytest.mark.parametrize("way", ["rpc", "cli"])
async def test_a_controller_that_is_gone_is_unknown_within_the_deadline(cluster: IrisCluster, way: str) -> None:
    settings = settings_over(way, cluster, deadline=timedelta(seconds=8))
    gone = settings.model_copy(
        update={"cli": f"{cluster.cli} --controller-url http://127.0.0.1:1"}
        if way == "cli"
        else {"controller_url": "http://127.0.0.1:1"}
    )
    orchestrator = IrisOrchestrator(gone, CLOCK)
    begun = time.monotonic()

    jobs, log = await asyncio.gather(
        orchestrator.jobs(contract_of("/me/ir"), JobId("/me/ir-seven")),
        orchestrator.log(contract_of("/me/ir"), JobId("/me/ir-seven"), None),
    )
    await orchestrator.close()

    assert isinstance(jobs, Unknown)
    assert isinstance(log, Unknown)
    assert {jobs.reason, log.reason} <= {Gap.UNREACHABLE, Gap.TIMEOUT}
    assert time.monotonic() - begun < 12


async def test_a_controller_that_dies_between_two_questions_is_unknown_and_its_jobs_are_not_gone(
    start_iris_cluster: Callable[[], IrisCluster],
) -> None:
    cluster = start_iris_cluster()
    orchestrator = IrisOrchestrator(settings_over("rpc", cluster, deadline=timedelta(seconds=5)), CLOCK)

    before = await orchestrator.jobs(contract_of("/me/ir"), JobId("/me/ir-seven"))
    await asyncio.to_thread(cluster.kill)
    after = await orchestrator.jobs(contract_of("/me/ir"), JobId("/me/ir-seven"))
    await orchestrator.close()

    assert isinstance(before, Known)
    assert isinstance(after, Unknown)
    assert after.reason in {Gap.UNREACHABLE, Gap.TIMEOUT}


async def test_the_age_of_the_client_is_known_without_importing_it(cluster: IrisCluster) -> None:
    before = set(sys.modules)  # another test of this process may need the package itself

    reading = await client_build_date((str(cluster.cli),), deadline=timedelta(seconds=20), clock=CLOCK)

    assert isinstance(reading, Known), reading
    assert datetime(2026, 1, 1, tzinfo=UTC) < reading.value <= datetime.now(UTC)
    assert not {name for name in set(sys.modules) - before if name.partition(".")[0] == "iris"}


@pytest.fixture
async def launcher_over(tmp_path: Path, cluster: IrisCluster) -> AsyncIterator[Callable[[str], IrisLauncher]]:
    """Makes launchers for one way each, with their locks below tmp_path."""
    opened: list[IrisOrchestrator] = []

    def make(way: str) -> IrisLauncher:
        settings = settings_over(way, cluster)
        opened.append(IrisOrchestrator(settings, CLOCK))
        return IrisLauncher(settings, opened[-1], locks=tmp_path / "locks", clock=CLOCK, redactor=Redactor())

    yield make
    for orchestrator in opened:
        await orchestrator.close()


def granted(contract: Contract, job_id: str, *, stop: str | None = None) -> tuple[RelaunchPlan, Grant]:
    plan = RelaunchPlan(
        run_id=contract.run_id,
        instance="",
        stop=JobId(stop) if stop else None,
        command=contract.command,
        command_sha256=contract.command_sha256,
        directory=contract.checkout,
        job_id=JobId(job_id),
        output_root=contract.output_root,
        resume_from=None,
        source_sha=None,
        config_digest=contract.config_digest,
        changes=(),
    )
    at = CLOCK.now()
    return plan, Grant(
        request=1,
        run_id=contract.run_id,
        digest=plan.digest,
        by=PersonName("ana"),
        at=at,
        expires_at=at + timedelta(hours=1),
    )


@pytest.mark.parametrize("way", ["rpc", "cli"])
async def test_a_stop_ends_exactly_one_job_and_what_is_below_it(
    cluster: IrisCluster, launcher_over: Callable[[str], IrisLauncher], way: str
) -> None:
    name = f"/me/ir-stop-{way}"
    for each in (name, f"{name}/train", f"{name}2"):
        cluster.launch(each, "python", "ir_sleep.py")
    contract = contract_of(name)
    launcher = launcher_over(way)
    plan, grant = granted(contract, "/me/none", stop=name)
    nobody = granted(contract, "/me/none", stop="/me/ir-nobody")

    first, absent = await asyncio.gather(launcher.stop(contract, plan, grant), launcher.stop(contract, *nobody))

    assert isinstance(first, Done), first
    assert absent == Done(detail="no such job any more: /me/ir-nobody")
    assert cluster.wait_for(name) == cluster.wait_for(f"{name}/train") == "KILLED"
    assert cluster.state(f"{name}2") not in {"KILLED", None}
    cluster.rpc("TerminateJob", {"jobId": f"{name}2"})


async def test_a_submission_happens_once_and_a_live_namesake_makes_it_uncertain(
    cluster: IrisCluster, launcher_over: Callable[[str], IrisLauncher], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hero's own user and secrets do not reach the job; IRIS_TASK_ID would have made it a child of Hero's own job."""
    monkeypatch.setenv("HERO_SLACK__BOT_TOKEN", "xoxb-not-for-jobs")
    monkeypatch.setenv("IRIS_TASK_ID", "/hero/bot/0")
    words = (str(cluster.cli), "--controller-url", cluster.url, "job", "run", "--no-wait", "--no-sync")
    contract = contract_of("/me/ir-fresh", *words, "--", "python", "ir_sleep.py", checkout=cluster.work)
    launcher = launcher_over("rpc")
    prepared = launcher.prepare(contract, number=3)
    plan, grant = granted(contract, "/me/ir-fresh-r3")

    outcome = await launcher.submit(contract, plan, grant, fence=no_fence)
    again = await launcher.submit(contract, plan, grant, fence=no_fence)

    assert getattr(prepared, "job_id", None) == "/me/ir-fresh-r3"
    assert outcome == Done(detail="/me/ir-fresh-r3")
    assert isinstance(again, Uncertain)
    assert "already exists and is still running" in again.detail
    assert cluster.state("/me/ir-fresh-r3") in {"PENDING", "BUILDING", "RUNNING"}
    listed = cluster.rpc("ListJobs", {"query": {"jobIdPrefix": "/me/ir-fresh", "limit": 50}})
    assert [job["jobId"] for job in listed["jobs"]] == ["/me/ir-fresh-r3"]
    assert "xoxb-not-for-jobs" not in str(cluster.rpc("GetJobStatus", {"jobId": "/me/ir-fresh-r3"}))
    cluster.rpc("TerminateJob", {"jobId": "/me/ir-fresh-r3"})


async def test_a_submission_that_no_machine_can_run_has_failed_and_is_asked_for(
    cluster: IrisCluster, launcher_over: Callable[[str], IrisLauncher]
) -> None:
    words = (
        str(cluster.cli),
        "--controller-url",
        cluster.url,
        "job",
        "run",
        "--no-wait",
        "--no-sync",
        "--gpu",
        "B200x8",
    )
    contract = contract_of(
        "/me/ir-b200", *words, "--enable-extra-resources", "--", "python", "ir_sleep.py", checkout=cluster.work
    )

    outcome = await launcher_over("rpc").submit(contract, *granted(contract, "/me/ir-b200-r1"), fence=no_fence)

    assert isinstance(outcome, Uncertain), outcome
    assert outcome.is_over
    assert "unschedulable" in outcome.detail
