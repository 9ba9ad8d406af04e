"""What each generation of the CLI prints and how it fails, as recorded, and what Hero makes of it."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import psutil
import pytest

from bot.actions.iris import IrisLauncher
from bot.actions.submission_lock import SubmissionLocks
from bot.errors import LeaseLostError
from bot.model.action import Done, Refused, Uncertain
from bot.model.contract import Contract, IrisContract
from bot.model.job import JobState, TaskState
from bot.model.plan import Grant
from bot.model.planned import RelaunchPlan
from bot.model.reading import Gap, Known, Unknown
from bot.model.value import JobId, PersonName, RunId
from bot.redaction import Redactor
from bot.settings import IrisSettings
from bot.sources.iris.cli import Generation
from bot.sources.iris.source import IrisOrchestrator
from bot.sources.iris.tables import COLUMNS_SQL
from tests.fakes.clock import FakeClock
from tests.fakes.fence import no_fence
from tests.fakes.iris_cli import FakeIris

TRACEBACK = 'Traceback (most recent call last):\n  File "iris", line 10, in <module>\nconnectrpc.errors.ConnectError: '
TOO_OLD = TRACEBACK + "marin-iris client is too old (build 2026-06-18; minimum 2026-11-15).\n"
HELP_OLD = "Usage: iris job [OPTIONS] COMMAND [ARGS]...\n\nCommands:\n" + "".join(
    f"  {verb}  Does it.\n"
    for verb in ("bug-report", "kill      ", "list      ", "logs      ", "run       ", "stop      ")
)
HELP_MIDDLE = HELP_OLD.replace("  bug-report  Does it.\n", "")
HELP_NEW = "Commands:\n  cancel    Cancel Jobs.\n  complete  Mark a Job.\n  describe  Describe.\n"
PRINTED_NEW = (
    "[23:59:58] task=/me/boom/0 attempt=1 | a | b\n[00:00:03] task=/me/boom/train/1 attempt=1 | Traceback\n  more\n"
)
HERO = """
import asyncio, sys
from pathlib import Path
from bot.actions.iris import IrisLauncher
from bot.model.contract import Contract
from bot.model.plan import Grant
from bot.model.planned import RelaunchPlan
from bot.redaction import Redactor
from bot.settings import IrisSettings
from bot.sources.iris.source import IrisOrchestrator
from tests.fakes.clock import FakeClock
from tests.fakes.fence import no_fence

async def main():
    contract, plan, grant = (kind.model_validate_json(text) for kind, text in zip(
        (Contract, RelaunchPlan, Grant), sys.argv[1:4], strict=True))
    settings = IrisSettings(cluster="marin")
    asked = IrisOrchestrator(settings, FakeClock())
    launcher = IrisLauncher(settings, asked, locks=Path(sys.argv[4]), clock=FakeClock(), redactor=Redactor())
    await launcher.submit(contract, plan, grant, fence=no_fence)

asyncio.run(main())
"""
FAILED = "Exit code: 7. stderr: ValueError: loss is nan at step 17"
LISTED = [
    {
        "job_id": "/me/boom2",
        "state": "JOB_STATE_RUNNING",
        "exit_code": 0,
        "error": "",
        "submitted_at": {"epoch_ms": "1795976372205"},
        "task_count": 1,
        "pending_reason": "",
        "has_children": False,
    },
    {
        "job_id": "/me/boom/train",
        "state": "JOB_STATE_KILLED",
        "exit_code": 0,
        "error": "Job finalized",
        "submitted_at": {"epoch_ms": "1795976372300"},
        "task_count": 1,
    },
    {
        "job_id": "/me/boom",
        "state": "JOB_STATE_FAILED",
        "exit_code": 0,
        "error": FAILED,
        "started_at": {"epoch_ms": "1795976372199"},
        "finished_at": {"epoch_ms": "1795976373265"},
        "submitted_at": {"epoch_ms": "1795976372186"},
        "task_count": 1,
        "pending_reason": FAILED,
        "has_children": True,
    },
]


def summary(job_id: str, state: str, exit_code: int | None) -> str:
    task = {
        "task_id": f"{job_id}/0",
        "index": "0",
        "state": state,
        "exit_code": exit_code,
        "duration_ms": 1012,
        "memory_mb": 0,
        "memory_peak_mb": 309 if state == "failed" else 0,
        "worker_id": "worker-iris-cpu",
        "error": FAILED if state == "failed" else "",
    }
    return json.dumps({"job_id": job_id, "state": state, "exit_code": 0, "tasks": [task]})


@pytest.fixture
def iris(tmp_path: Path) -> FakeIris:
    return FakeIris(tmp_path)


def settings_of(iris: FakeIris, deadline_s: float = 20) -> IrisSettings:
    return IrisSettings(cluster="marin", cli=str(iris.path), deadline=timedelta(seconds=deadline_s))


def orchestrator_of(iris: FakeIris, clock: FakeClock, deadline_s: float = 20) -> IrisOrchestrator:
    return IrisOrchestrator(settings_of(iris, deadline_s), clock)


def contract_of(*command: str, checkout: str = ".") -> Contract:
    return Contract(
        run_id=RunId("boom"),
        dri=PersonName("ana"),
        command=command or ("iris", "job", "run", "--no-wait", "--", "true"),
        checkout=checkout,
        output_root="/nowhere",
        orchestrator=IrisContract(kind="iris", job_id=JobId("/me/boom")),
    )


async def test_the_old_lists_tell_a_job_and_its_children_without_neighbours(
    iris: FakeIris, fake_clock: FakeClock
) -> None:
    iris.says("job", "summary", "--json", "/me/boom/train", stdout=summary("/me/boom/train", "killed", 0))
    iris.says("job", "summary", "--json", "/me/boom", stdout=summary("/me/boom", "failed", 7))
    iris.says("job", "list", "--json", stdout=json.dumps(LISTED))

    reading = await orchestrator_of(iris, fake_clock).jobs(contract_of(), JobId("/me/boom"))

    assert isinstance(reading, Known), reading
    assert [job.job_id for job in reading.value] == ["/me/boom", "/me/boom/train"]
    job = reading.value[0]
    assert (job.state, job.pending_reason, job.error) == (JobState.FAILED, "", FAILED)
    assert isinstance(job.tasks, Known)
    assert [(task.exit_code, task.peak_memory_bytes) for task in job.tasks.value] == [(7, 309 * 2**20)]


async def test_a_query_gives_the_tree_where_there_is_neither_rpc_nor_json(
    iris: FakeIris, fake_clock: FakeClock
) -> None:
    columns = ("job_id", "state", "error", "submitted_at_ms", "environment_json")
    tasks = ("task_id", "task_index", "state", "error", "exit_code")
    attempts = ("attempt_id", "attempt_uid", "state", "exit_code", "error", "worker_id")
    tables = (("jobs", columns), ("tasks", tasks), ("task_attempts", attempts))
    known = [f"{table},{name}" for table, names in tables for name in names]
    iris.says("query", "-f", "csv", COLUMNS_SQL, stdout="\r\n".join(["owner,name", *known]) + "\r\n")
    header = "j_job_id,j_state,j_error,j_submitted_at_ms,t_task_id,t_task_index,t_state,t_error,t_exit_code,"
    header += "a_attempt_id,a_attempt_uid,a_state,a_exit_code,a_error,a_worker_id"
    rows = (
        '/me/boom,5,"line one\nline two, quoted",1795976372186,/me/boom/0,0,5,x,7,0,aa,10,0,test preempt,w-1',
        "/me/boom,5,,1795976372186,/me/boom/0,0,5,x,7,1,bb,5,7,Exit code: 7,",
        "/me/boom/train,6,,1795976372300,,,,,,,,,,,",
    )
    iris.says("query", "-f", "csv", stdout="\r\n".join([header, *rows]) + "\r\n")

    reading = await orchestrator_of(iris, fake_clock).jobs(contract_of(), JobId("/me/boom"))

    assert isinstance(reading, Known), reading
    job, child = reading.value
    assert (job.state, job.error) == (JobState.FAILED, "line one\nline two, quoted")
    assert isinstance(job.tasks, Known)
    found = [(a.attempt, a.uid, a.state, a.exit_code, a.node) for a in job.tasks.value[0].attempts]
    assert found == [(0, "aa", TaskState.PREEMPTED, None, "w-1"), (1, "bb", TaskState.FAILED, 7, None)]
    assert (child.job_id, child.state, child.tasks.kind) == ("/me/boom/train", JobState.KILLED, "known")
    assert "environment_json" not in iris.calls[-1][-1]
    assert "LIKE '/me/boom/%' ESCAPE" in iris.calls[-1][-1]


AGAIN = {**LISTED[0], "job_id": "/me/boom-coord-2"}


async def test_the_old_list_tells_other_coordinators_and_no_neighbour_that_begins_alike(
    iris: FakeIris, fake_clock: FakeClock
) -> None:
    stranger = {"job_id": "/me/boomerang", "state": "JOB_STATE_FROM_THE_FUTURE"}
    iris.says("job", "list", "--json", "--prefix", "/me/boom", stdout=json.dumps([*LISTED, AGAIN, stranger]))
    iris.says("job", "list", "--json", "--prefix", "/you/old", stdout=json.dumps([{**LISTED[0], "job_id": "/you/old"}]))

    past = (JobId("/me/boom"), JobId("/you/old"))
    reading = await orchestrator_of(iris, fake_clock).neighbours(contract_of(), JobId("/me/boom"), past)

    assert isinstance(reading, Known), reading
    assert [(each.job_id, each.state) for each in reading.value] == [
        ("/me/boom-coord-2", JobState.RUNNING),
        ("/you/old", JobState.RUNNING),
    ]


async def test_a_query_tells_other_coordinators_where_there_is_neither_rpc_nor_json(
    iris: FakeIris, fake_clock: FakeClock
) -> None:
    columns = "owner,name\r\njobs,job_id\r\njobs,state\r\njobs,submitted_at_ms\r\njobs,num_tasks\r\n"
    iris.says("query", "-f", "csv", COLUMNS_SQL, stdout=columns)
    rows = ("/me/boom,3,1795976372186,1", "/me/boom-r1,1,1795976372186,8", "/me/boom-r0,5,1795976372186,8")
    header = "j_job_id,j_state,j_submitted_at_ms,j_num_tasks"
    iris.says("query", "-f", "csv", stdout="\r\n".join([header, *rows, "/me/boom2,99,,"]) + "\r\n")

    reading = await orchestrator_of(iris, fake_clock).neighbours(contract_of(), JobId("/me/boom"), ())

    assert isinstance(reading, Known), reading
    assert [(each.job_id, each.state, each.expected_tasks) for each in reading.value] == [
        ("/me/boom-r1", JobState.PENDING, 8)
    ]
    assert "LIKE '/me/boom%' ESCAPE '\\') AND j.job_id NOT LIKE '/%/%/%'" in iris.calls[-1][-1]


async def test_a_question_for_neighbours_that_fails_is_unknown_and_leaves_the_job_known(
    iris: FakeIris, fake_clock: FakeClock
) -> None:
    iris.says("job", "summary", "--json", "/me/boom", stdout=summary("/me/boom", "failed", 7))
    iris.says("job", "list", "--json", "--prefix", "/me/boom", stdout=json.dumps([LISTED[2], {**AGAIN, "state": 77}]))
    orchestrator = orchestrator_of(iris, fake_clock)

    jobs = await orchestrator.jobs(contract_of(), JobId("/me/boom"))
    neighbours = await orchestrator.neighbours(contract_of(), JobId("/me/boom"), ())

    assert isinstance(jobs, Known), jobs
    assert isinstance(neighbours, Unknown)
    assert neighbours.reason is Gap.UNRECOGNISED


@pytest.mark.parametrize(
    ("stdout", "expected"),
    [
        ("j_job_id,j_state,j_submitted_at_ms\r\n", "known"),
        ("", "unknown"),
        ("j_job_id,j_state,j_submitted_at_ms\r\n/me/boom,13,1795976372186\r\n", "unknown"),
        ("j_job_id,j_state,j_submitted_at_ms\r\n/me/boom,5\r\n", "unknown"),
    ],
    ids=["header alone", "nothing", "state from the future", "torn row"],
)
async def test_no_row_is_absence_only_below_a_header(
    iris: FakeIris, fake_clock: FakeClock, stdout: str, expected: str
) -> None:
    iris.says("query", "-f", "csv", COLUMNS_SQL, stdout="owner,name\r\njobs,job_id\r\n")
    iris.says("query", "-f", "csv", stdout=stdout)

    reading = await orchestrator_of(iris, fake_clock).jobs(contract_of(), JobId("/me/boom"))

    assert reading.kind == expected
    assert not isinstance(reading, Known) or reading.value == ()


@pytest.mark.parametrize(
    ("exit_code", "stderr", "expected"),
    [
        (1, TRACEBACK + "Job /me/boom not found\n", "none"),
        (1, TRACEBACK + "Job /me/boom2 not found\n", Gap.UNRECOGNISED),
        (1, TRACEBACK + "Request failed: error sending request for url: client error (Connect)\n", Gap.UNREACHABLE),
        (1, TRACEBACK + "Not Implemented\n", Gap.UNRECOGNISED),
        (1, TRACEBACK + "admin role required for raw queries\n", Gap.REFUSED),
        (1, "Error: No credentials to authenticate to this IAP-protected cluster. Run login.\n", Gap.REFUSED),
        (2, "Usage: iris\n\nError: Unknown cluster 'nosuch'. Run `iris cluster list`.\n", Gap.REFUSED),
        (0, "", Gap.UNRECOGNISED),
    ],
)
async def test_only_the_controllers_word_on_this_very_job_is_absence(
    iris: FakeIris, fake_clock: FakeClock, exit_code: int, stderr: str, expected: str
) -> None:
    iris.says("rpc", stderr=stderr, exit_code=exit_code)

    reading = await orchestrator_of(iris, fake_clock).jobs(contract_of(), JobId("/me/boom"))

    if expected == "none":
        assert isinstance(reading, Known)
        assert reading.value == ()
    else:
        assert isinstance(reading, Unknown)
        assert reading.reason is expected


async def test_a_cli_that_retries_for_ever_is_cut_off_with_its_whole_group(
    iris: FakeIris, fake_clock: FakeClock
) -> None:
    iris.says("rpc", hangs=True)
    begun = time.monotonic()

    reading = await orchestrator_of(iris, fake_clock, deadline_s=1.5).jobs(contract_of(), JobId("/me/boom"))

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.TIMEOUT
    assert time.monotonic() - begun < 6
    for pid in iris.pids_file.read_text().split():
        await eventually(partial(_is_dead, int(pid)))


def _is_dead(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


async def eventually(condition: Callable[[], bool], within_s: float = 5) -> None:
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - another process has no event to wait for
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("text", "attempt"),
    [
        ("[23:59:58] task=/me/boom/0 | a | b\n[00:00:03] task=/me/boom/train/1 | Traceback\n  more\n", None),
        (PRINTED_NEW, 1),
    ],
    ids=["A", "C"],
)
async def test_printed_lines_get_their_dates_across_midnight(iris: FakeIris, text: str, attempt: int | None) -> None:
    iris.says("job", "logs", stdout=text)
    clock = FakeClock(datetime(2026, 11, 30, 0, 10, tzinfo=UTC))
    since = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)

    reading = await orchestrator_of(iris, clock).log(contract_of(), JobId("/me/boom"), since)

    assert isinstance(reading, Known), reading
    assert [(line.text, line.at, line.task, line.attempt) for line in reading.value.lines] == [
        ("a | b", datetime(2026, 11, 29, 23, 59, 58, tzinfo=UTC), "/me/boom/0", attempt),
        ("Traceback", datetime(2026, 11, 30, 0, 0, 3, tzinfo=UTC), "/me/boom/train/1", attempt),
        ("  more", datetime(2026, 11, 30, 0, 0, 3, tzinfo=UTC), "/me/boom/train/1", attempt),
    ]


async def test_where_only_seconds_can_be_asked_the_second_of_the_submission_is_left_out(iris: FakeIris) -> None:
    """A namesake's last words may stand in it; a CLI without --since-ms cannot tell."""
    refusal = "Usage: iris job logs [OPTIONS] JOB_ID\n\nError: No such option '--since-ms'.\n"
    iris.says("job", "logs", "--since-ms", stderr=refusal, exit_code=2)
    iris.says("job", "logs", stdout="[12:00:00] task=/me/boom/0 | old\n[12:00:01] task=/me/boom/0 | new\n")
    clock = FakeClock(datetime(2026, 11, 29, 12, 1, tzinfo=UTC))
    submitted_at = datetime(2026, 11, 29, 12, 0, 0, 500_000, tzinfo=UTC)

    reading = await orchestrator_of(iris, clock).log(contract_of(), JobId("/me/boom"), submitted_at)

    assert isinstance(reading, Known), reading
    assert reading.value.text == "new"
    assert iris.calls[-1][:4] == ["job", "logs", "--since-seconds", "60"]


@pytest.mark.parametrize(
    ("job_help", "generation", "verb"),
    [
        (HELP_OLD, Generation.OLD, ["job", "stop", "--no-include-children", "/me/boom"]),
        (HELP_MIDDLE, Generation.MIDDLE, ["job", "stop", "--no-include-children", "/me/boom"]),
        (HELP_NEW, Generation.NEW, ["job", "cancel", "/me/boom"]),
    ],
)
async def test_a_stop_is_exact_in_every_generation(  # noqa: PLR0917 - a table's row and three fixtures
    iris: FakeIris, fake_clock: FakeClock, tmp_path: Path, job_help: str, generation: Generation, verb: list[str]
) -> None:
    iris.says("job", "--help", stdout=job_help)
    iris.says(*verb, stdout="Terminated jobs:\n  /me/boom\n")
    contract = contract_of()
    orchestrator = orchestrator_of(iris, fake_clock)
    launcher = launcher_of(iris, fake_clock, tmp_path, orchestrator)

    outcome = await launcher.stop(contract, *granted(contract, fake_clock, stop="/me/boom"))

    assert outcome == Done(detail="/me/boom was told to end")
    assert await orchestrator.cli.generation() is generation
    assert iris.calls[-1] == verb


@pytest.mark.parametrize(
    ("stderr", "expected"),
    [
        ("Error: No job named '/me/boom'. Did you mean: /me/boom2?\n", Done),
        ("Error: No job named '/me/boom2'.\n", Uncertain),
        (TRACEBACK + "Request failed: error sending request for url: Connection refused\n", Uncertain),
        (TRACEBACK + "permission denied\n", Refused),
    ],
)
async def test_a_stop_is_done_only_when_the_controller_says_so(
    iris: FakeIris, fake_clock: FakeClock, tmp_path: Path, stderr: str, expected: type
) -> None:
    iris.says("job", "--help", stdout=HELP_NEW)
    iris.says("job", "cancel", stderr=stderr, exit_code=1)
    contract = contract_of()

    outcome = await launcher_of(iris, fake_clock, tmp_path).stop(
        contract, *granted(contract, fake_clock, stop="/me/boom")
    )

    assert type(outcome) is expected


def launcher_of(
    iris: FakeIris, clock: FakeClock, tmp_path: Path, orchestrator: IrisOrchestrator | None = None
) -> IrisLauncher:
    settings = settings_of(iris).model_copy(update={"submit_deadline": timedelta(seconds=2)})
    asked = orchestrator or orchestrator_of(iris, clock)
    redactor = Redactor(["hunter2hunter2"])
    return IrisLauncher(settings, asked, locks=tmp_path / "locks", clock=clock, redactor=redactor)


def granted(contract: Contract, clock: FakeClock, *, stop: str | None = None) -> tuple[RelaunchPlan, Grant]:
    plan = RelaunchPlan(
        run_id=contract.run_id,
        instance="",
        stop=JobId(stop) if stop else None,
        command=contract.command,
        command_sha256=contract.command_sha256,
        directory=contract.checkout,
        job_id=JobId("/me/boom-r1"),
        output_root=contract.output_root,
        resume_from=None,
        source_sha=None,
        config_digest=contract.config_digest,
        changes=(),
    )
    expires_at = clock.now() + timedelta(hours=1)
    by = PersonName("ana")
    grant = Grant(request=1, run_id=contract.run_id, digest=plan.digest, by=by, at=clock.now(), expires_at=expires_at)
    return plan, grant


@pytest.mark.parametrize(
    ("stdout", "stderr", "exit_code", "expected"),
    [
        ("/me/boom-r1\n", "I20261129 iris.cli.job Job submitted: /me/boom-r1\n", 0, Done(detail="/me/boom-r1")),
        ("", "I20261129 iris.cli.job Job submitted: /me/boom-r1\n", 0, Done(detail="/me/boom-r1")),
        ("nothing useful\n", "", 0, "did not print the planned /me/boom-r1"),
        ("/me/decoy\n", "", 0, "printed /me/decoy, which is not the planned /me/boom-r1"),
        ("/me/boom-r1\n/dev/null\n", "", 0, "printed /dev/null, which is not the planned /me/boom-r1"),
        ("/me/boom-r1\n", "iris.cli.job Job submitted: /me/decoy\n", 0, "printed /me/decoy, which is not"),
        ("", TOO_OLD, 1, "exit code 1: marin-iris client is too old (build 2026-06-18; minimum 2026-11-15). — upgrade"),
        ("", "iris.client.client.JobAlreadyExists: Job /me/boom-r1 already exists and is still running\n", 1, "exists"),
        ("", TRACEBACK + "Job /me/boom-r1 is unschedulable: no scaling group provides gpu\n", 1, "is unschedulable"),
        (
            "",
            "Usage: iris job run [OPTIONS] CMD...\n\nError: No such option '--nope'.\n",
            2,
            "exit code 2: No such option",
        ),
        ("", "Usage: notify [OPTIONS]\n", 2, "exit code 2: Usage: notify"),
        ("", "hook: Authentication failed\n", 1, "exit code 1: hook: Authentication failed"),
        ("", TRACEBACK + "Request failed: error sending request\n", 1, "error sending request"),
        ("/me/boom-r1\n", "Connection lost\n", 1, "printed /me/boom-r1, then failed with exit code 1: Connection lost"),
    ],
)
async def test_a_submission_is_done_only_when_it_names_the_planned_job_and_no_failure_is_proof(  # noqa: PLR0917 - a row
    iris: FakeIris,
    fake_clock: FakeClock,
    tmp_path: Path,
    stdout: str,
    stderr: str,
    exit_code: int,
    expected: Done | str,
) -> None:
    iris.says("job", "run", stdout=stdout, stderr=stderr, exit_code=exit_code)
    contract = contract_of(str(iris.path), "--cluster", "marin", "job", "run", "--no-wait", "--", "python", "t.py")

    outcome = await launcher_of(iris, fake_clock, tmp_path).submit(
        contract, *granted(contract, fake_clock), fence=no_fence
    )

    if isinstance(expected, Done):
        assert outcome == expected
    else:
        assert isinstance(outcome, Uncertain), outcome
        assert outcome.is_over
        assert expected in outcome.detail
    (call,) = iris.calls
    assert call == ["job", "run", "--job-name", "boom-r1", "--user", "me", "--no-wait", "--", "python", "t.py"]


async def test_a_launch_script_that_names_another_job_than_the_contract_is_not_believed(
    iris: FakeIris, fake_clock: FakeClock, tmp_path: Path
) -> None:
    script = tmp_path / "launch.sh"
    script.write_text("echo /me/decoy\n")
    contract = contract_of("sh", str(script), "--no-wait")
    plan, grant = granted(contract, fake_clock)
    plan = plan.model_copy(update={"job_id": JobId("/me/boom")})
    grant = grant.model_copy(update={"digest": plan.digest})

    outcome = await launcher_of(iris, fake_clock, tmp_path).submit(contract, plan, grant, fence=no_fence)

    expected = "the submit command printed /me/decoy, which is not the planned /me/boom"
    assert outcome == Uncertain(detail=expected, is_over=True)


async def test_a_submission_ended_by_a_signal_counts_as_cut_off(
    fake_clock: FakeClock, tmp_path: Path, iris: FakeIris
) -> None:
    script = tmp_path / "launch.sh"
    script.write_text("kill -9 $$\n")
    contract = contract_of("sh", str(script), "--no-wait")
    plan, grant = granted(contract, fake_clock)
    plan = plan.model_copy(update={"job_id": JobId("/me/boom")})
    grant = grant.model_copy(update={"digest": plan.digest})

    outcome = await launcher_of(iris, fake_clock, tmp_path).submit(contract, plan, grant, fence=no_fence)

    assert isinstance(outcome, Uncertain), outcome
    assert "was ended by signal 9" in outcome.detail
    assert not outcome.is_over


async def test_the_fence_is_passed_under_the_lock_and_stops_the_submission(
    iris: FakeIris, fake_clock: FakeClock, tmp_path: Path
) -> None:
    """A Hero that slept until another one took over finds out only here, and while it finds out the other waits."""
    contract = contract_of(str(iris.path), "--cluster", "marin", "job", "run", "--no-wait", "--", "python", "t.py")
    launcher = launcher_of(iris, fake_clock, tmp_path)
    seen: list[bool] = []

    async def closed() -> None:
        seen.append(await launcher.is_submitting(contract))
        raise LeaseLostError("bot")

    with pytest.raises(LeaseLostError):
        await launcher.submit(contract, *granted(contract, fake_clock), fence=closed)

    assert seen == [True]
    assert iris.calls == []
    assert not await launcher.is_submitting(contract)


async def test_a_submission_that_hangs_is_cut_off_and_uncertain_and_locks_meanwhile(
    iris: FakeIris, fake_clock: FakeClock, tmp_path: Path
) -> None:
    iris.says("job", "run", hangs=True)
    contract = contract_of(str(iris.path), "--cluster", "marin", "job", "run", "--no-wait", "--", "python", "t.py")
    launcher = launcher_of(iris, fake_clock, tmp_path)
    plan, grant = granted(contract, fake_clock)

    under_way = asyncio.create_task(launcher.submit(contract, plan, grant, fence=no_fence))
    await eventually(lambda: bool(iris.calls))
    meanwhile = await launcher.is_submitting(contract), await launcher.submit(contract, plan, grant, fence=no_fence)
    outcome = await under_way

    assert meanwhile[0]
    assert isinstance(meanwhile[1], Uncertain)
    assert isinstance(outcome, Uncertain)
    assert not outcome.is_over, "it was cut off"
    assert len(iris.calls) == 1
    await eventually(lambda: not SubmissionLocks(tmp_path / "locks").is_held(contract.run_id))


async def test_an_orphan_that_outlives_hero_still_holds_the_lock(tmp_path: Path) -> None:
    """Hero killed by SIGKILL closes its own descriptor; the submitting process keeps the inherited one."""
    locks = SubmissionLocks(tmp_path)
    with locks.hold(RunId("boom")) as descriptor:
        orphan = await asyncio.create_subprocess_exec("sleep", "600", pass_fds=(descriptor,))

    held_with_orphan = locks.is_held(RunId("boom"))
    orphan.kill()
    await orphan.wait()

    assert held_with_orphan
    assert not locks.is_held(RunId("boom"))


async def test_a_submitter_whose_hero_was_killed_is_still_seen(
    iris: FakeIris, fake_clock: FakeClock, tmp_path: Path
) -> None:
    """Hero dies by SIGKILL in the middle of a submission; the next Hero must not take silence for "never submitted"."""
    iris.says("job", "run", hangs=True)
    contract = contract_of(str(iris.path), "--cluster", "marin", "job", "run", "--no-wait", "--", "python", "t.py")
    plan, grant = granted(contract, fake_clock)
    hero = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        HERO,
        *(value.model_dump_json() for value in (contract, plan, grant)),
        str(tmp_path / "locks"),
        cwd=Path(__file__).parents[2],
    )
    await eventually(lambda: iris.pids_file.exists() and " " in iris.pids_file.read_text(), within_s=20)

    hero.kill()
    await hero.wait()
    next_hero = launcher_of(iris, fake_clock, tmp_path)
    while_it_lives = await next_hero.is_submitting(contract)
    again = await next_hero.submit(contract, plan, grant, fence=no_fence)
    for pid in iris.pids_file.read_text().split():
        os.kill(int(pid), signal.SIGKILL)

    assert while_it_lives
    assert isinstance(again, Uncertain)
    assert len(iris.calls) == 1
    await eventually(lambda: not SubmissionLocks(tmp_path / "locks").is_held(contract.run_id))


async def test_secrets_in_the_submitters_output_stay_out_of_the_outcome(
    iris: FakeIris, fake_clock: FakeClock, tmp_path: Path
) -> None:
    iris.says("job", "run", stderr="Error: cannot log in with hunter2hunter2\n", exit_code=1)
    contract = contract_of(str(iris.path), "--cluster", "marin", "job", "run", "--no-wait", "--", "python", "t.py")

    outcome = await launcher_of(iris, fake_clock, tmp_path).submit(
        contract, *granted(contract, fake_clock), fence=no_fence
    )

    assert "hunter2" not in outcome.detail


async def test_nothing_is_run_without_a_grant_for_this_very_plan(
    iris: FakeIris, fake_clock: FakeClock, tmp_path: Path
) -> None:
    contract = contract_of(str(iris.path), "--cluster", "marin", "job", "run", "--no-wait", "--", "python", "t.py")
    changed = contract.model_copy(update={"environment": {"SEED": "2"}})
    launcher = launcher_of(iris, fake_clock, tmp_path)
    plan, grant = granted(contract, fake_clock, stop="/me/boom")
    other = plan.model_copy(update={"output_root": "/elsewhere"})

    outcomes = (
        await launcher.submit(contract, other, grant, fence=no_fence),
        await launcher.stop(contract, other, grant),
        await launcher.submit(changed, plan, grant, fence=no_fence),
    )

    assert [type(outcome) for outcome in outcomes] == [Refused] * 3
    assert iris.calls == []


async def test_a_program_that_is_missing_is_refused(fake_clock: FakeClock, tmp_path: Path, iris: FakeIris) -> None:
    missing = str(tmp_path / "no-such-iris")
    contract = contract_of(missing, "job", "run", "--no-wait", "--", "python", "t.py")
    orchestrator = IrisOrchestrator(IrisSettings(cluster="marin", cli=missing), fake_clock)

    outcome = await launcher_of(iris, fake_clock, tmp_path).submit(
        contract, *granted(contract, fake_clock), fence=no_fence
    )
    reading = await orchestrator.jobs(contract, JobId("/me/boom"))

    assert isinstance(outcome, Refused)
    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.REFUSED


@pytest.mark.parametrize(
    "controller", ["controller: {local: {port: 0}}\n", "controller:\n  # here\n\n  name: x\n  local:\n    port: 0\n"]
)
async def test_a_local_cluster_file_is_refused_since_each_command_would_start_an_empty_one(
    iris: FakeIris, fake_clock: FakeClock, tmp_path: Path, controller: str
) -> None:
    config = tmp_path / "local.yaml"
    config.write_text(f"name: x\n{controller}scale_groups: {{}}\n")
    orchestrator = IrisOrchestrator(IrisSettings(config=config, cli=str(iris.path)), fake_clock)

    reading = await orchestrator.jobs(contract_of(), JobId("/me/boom"))

    assert isinstance(reading, Unknown)
    assert "controller_url" in reading.detail
    assert iris.calls == []


async def test_heros_own_secrets_do_not_reach_the_program(
    iris: FakeIris, fake_clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERO_GITHUB__TOKEN", "ghp_heros-own")
    monkeypatch.setenv("WANDB_API_KEY", "for-the-job")
    script = tmp_path / "launch.sh"
    script.write_text('env > "$OUT"\necho "Job submitted: /me/boom" >&2\n')
    contract = contract_of("sh", str(script), "--no-wait").model_copy(
        update={"environment": {"OUT": str(tmp_path / "env"), "PATH": os.environ["PATH"]}}
    )
    plan, _ = granted(contract, fake_clock)
    plan = plan.model_copy(update={"job_id": JobId("/me/boom")})
    grant = granted(contract, fake_clock)[1].model_copy(update={"digest": plan.digest})

    outcome = await launcher_of(iris, fake_clock, tmp_path).submit(contract, plan, grant, fence=no_fence)

    assert outcome == Done(detail="/me/boom")
    assert "HERO_" not in (tmp_path / "env").read_text()
    assert "WANDB_API_KEY=for-the-job" in (tmp_path / "env").read_text()
