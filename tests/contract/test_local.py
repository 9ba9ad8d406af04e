"""Local jobs are real process groups here, and they are really killed."""

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bot.actions import local_supervisor
from bot.actions.local import SUPERVISOR, LocalLauncher
from bot.actions.ports import Submission
from bot.clock import SystemClock
from bot.errors import LeaseLostError
from bot.model.action import Done, Refused, StepOutcome, Uncertain
from bot.model.contract import Contract, LocalContract
from bot.model.job import Job, JobState
from bot.model.plan import Grant
from bot.model.planned import RelaunchPlan
from bot.model.reading import Gap, Known, Unknown
from bot.model.value import JobId, PersonName, RunId, Value
from bot.sources import local_processes
from bot.sources.local import LOG_BYTES, LocalOrchestrator, cut_lines
from bot.sources.local_files import JobRecord, lock_path
from tests.fakes.fence import no_fence
from tests.fakes.waiting import until

CLOCK = SystemClock()
WAIT = "import signal; print('up', flush=True); signal.pause()"
DEAF = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True)\nwhile True: signal.pause()"


class Bench:
    """One run's contract on a directory of its own, and what a Hero would do with it."""

    def __init__(self, root: Path, script: str, *, run_id: str = "hero-1", grace: float = 10.0) -> None:
        self.root = root
        self.contract = Contract(
            run_id=RunId(run_id),
            dri=PersonName("ada"),
            command=(sys.executable, "-c", script, "--token=very-secret-argument"),
            environment={"COLOUR": "teal"},
            checkout=str(root),
            output_root=str(root / "out"),
            orchestrator=LocalContract(kind="local", directory="jobs"),
        )
        self.launcher = LocalLauncher(CLOCK, grace=timedelta(seconds=grace))
        self.job_id = JobId(f"/local/{run_id}-0")

    @property
    def directory(self) -> Path:
        return self.root / "jobs" / self.job_id.removeprefix("/local/")

    def plan(self, *, stop: JobId | None = None) -> RelaunchPlan:
        return RelaunchPlan(
            run_id=self.contract.run_id,
            instance="",
            stop=stop,
            command=("scrubbed",),
            command_sha256=self.contract.command_sha256,
            directory=self.contract.checkout,
            job_id=self.job_id,
            output_root=self.contract.output_root,
            resume_from=None,
            source_sha=None,
            config_digest="",
            changes=(),
        )

    async def submit(self, launcher: LocalLauncher | None = None) -> StepOutcome:
        plan = self.plan()
        return await (launcher or self.launcher).submit(self.contract, plan, grant_of(plan), fence=no_fence)

    async def stop(self) -> StepOutcome:
        plan = self.plan(stop=self.job_id)
        return await self.launcher.stop(self.contract, plan, grant_of(plan))

    async def job(self) -> Job:
        """Ask as a Hero that has just been started would."""
        reading = await LocalOrchestrator(CLOCK).jobs(self.contract, self.job_id)
        assert isinstance(reading, Known), reading
        assert len(reading.value) == 1
        return reading.value[0]

    async def is_in(self, state: JobState) -> bool:
        return (await self.job()).state is state

    async def ended(self, state: JobState) -> Job:
        await until(lambda: self.is_in(state), what=f"{self.job_id} is {state}")
        return await self.job()

    async def says(self, word: str) -> None:
        await until(lambda: word in self.output(), what=f"the output has {word!r}")

    def output(self) -> str:
        file = self.directory / "output.log"
        return file.read_text() if file.exists() else ""

    def record(self) -> JobRecord:
        return JobRecord.model_validate_json((self.directory / "job.json").read_bytes())

    def pid(self) -> int:
        command = self.record().command
        assert command is not None
        return command.pid


def grant_of(plan: RelaunchPlan) -> Grant:
    now = CLOCK.now()
    return Grant(
        request=7,
        run_id=plan.run_id,
        digest=plan.digest,
        by=PersonName("ada"),
        at=now,
        expires_at=now + timedelta(hours=1),
    )


def as_json(value: Value) -> dict[str, Any]:
    return value.model_dump(mode="json")


def spawn(program: str, **options: Any) -> subprocess.Popen[str]:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", program], **pipes, **options)


def spawn_supervisor(directory: Path, lock: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", SUPERVISOR, str(directory), str(lock)],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=(lock,),
        text=True,
    )


type MakeBench = Callable[..., Bench]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[MakeBench]:
    made: list[Bench] = []

    def make(script: str, *, run_id: str = "hero-1", grace: float = 10.0) -> Bench:
        made.append(Bench(tmp_path, script, run_id=run_id, grace=grace))
        return made[-1]

    yield make
    for each in made:
        with contextlib.suppress(FileNotFoundError, ValidationError):
            kill(each.record())


def kill(record: JobRecord) -> None:
    for process in (local_processes.find(record.supervisor), *local_processes.living(record)):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process:
                process.kill()


async def test_a_job_is_found_from_its_first_moment_to_its_end(bench: MakeBench) -> None:
    run = bench("input_ = bytearray(40_000_000); print('up', flush=True); open('go').read()")
    os.mkfifo(run.root / "go")

    outcome = await run.submit()
    begun = await run.job()
    await run.says("up")
    (run.root / "go").write_text("")
    ended = await run.ended(JobState.SUCCEEDED)

    assert outcome == Done(detail=run.job_id)
    assert begun.state is JobState.RUNNING
    assert ended.instance_id == begun.instance_id
    assert ended.finished_at is not None
    assert ended.submitted_at < ended.finished_at
    assert isinstance(ended.tasks, Known)
    assert ended.tasks.value[0].exit_code == 0
    assert (ended.tasks.value[0].peak_memory_bytes or 0) > 40_000_000


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ("import sys; sys.exit(3)", 3, "exit code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, "ended by signal 9"),
        ("import os, signal; os.killpg(0, signal.SIGKILL)", -9, "ended by signal 9"),
    ],
    ids=["exit", "killed", "kills its own group"],
)
async def test_a_failure_keeps_its_exit_code(bench: MakeBench, script: str, code: int, words: str) -> None:
    run = bench(script)

    await run.submit()
    job = await run.ended(JobState.FAILED)

    assert isinstance(job.tasks, Known)
    assert job.tasks.value[0].exit_code == code
    assert job.error == words


async def test_a_command_that_cannot_be_run_is_a_failed_job_that_says_why(bench: MakeBench) -> None:
    run = bench("")
    run.contract = run.contract.model_copy(update={"command": ("no-such-program", "--token=very-secret-argument")})

    await run.submit()
    job = await run.ended(JobState.FAILED)

    assert job.error == "exit code 127"
    assert "no-such-program cannot be run: No such file or directory" in run.output()
    assert "secret" not in run.output()


async def test_a_job_whose_supervisor_was_killed_runs_on_and_its_end_is_not_guessed(bench: MakeBench) -> None:
    run = bench(WAIT)
    await run.submit()
    await run.says("up")

    os.kill(run.record().supervisor.pid, signal.SIGKILL)
    await until(lambda: local_processes.find(run.record().supervisor) is None)
    orphan = await run.job()
    os.kill(run.pid(), signal.SIGKILL)
    job = await run.ended(JobState.WORKER_FAILED)

    assert orphan.state is JobState.RUNNING
    assert "its supervisor died" in job.error
    assert isinstance(job.tasks, Known)
    assert job.tasks.value[0].exit_code is None


async def test_a_job_outlives_the_hero_that_started_it(bench: MakeBench) -> None:
    """Ctrl-C, a closed terminal and the OOM killer all end Hero's whole process group."""
    run = bench(WAIT)
    program = (
        "import asyncio, json, sys\n"
        "from bot.actions.local import LocalLauncher\nfrom bot.clock import SystemClock\n"
        "from bot.model.contract import Contract\nfrom bot.model.plan import Grant, RelaunchPlan\n"
        "contract, plan, grant = [kind.model_validate(each) for kind, each in\n"
        "    zip((Contract, RelaunchPlan, Grant), json.load(sys.stdin))]\n"
        "from tests.fakes.fence import no_fence\n"
        "said = asyncio.run(LocalLauncher(SystemClock()).submit(contract, plan, grant, fence=no_fence))\n"
        "print(said.kind, flush=True)\n"
        "import signal; signal.pause()\n"
    )
    plan = run.plan()
    parts = (run.contract.model_dump(mode="json", exclude={"cadence"}), as_json(plan), as_json(grant_of(plan)))

    with spawn(program, process_group=0) as hero:
        assert hero.stdin is not None
        assert hero.stdout is not None
        hero.stdin.write(json.dumps(parts))
        hero.stdin.close()
        said = await asyncio.to_thread(hero.stdout.readline)
        os.killpg(hero.pid, signal.SIGHUP)
        os.killpg(hero.pid, signal.SIGKILL)
    await run.says("up")

    assert said == "done\n"
    assert (await run.job()).state is JobState.RUNNING
    assert not await run.launcher.is_submitting(run.contract)
    assert isinstance(await run.submit(), Uncertain)


async def test_a_submission_that_outlives_its_hero_is_seen_until_it_is_a_job_or_none(bench: MakeBench) -> None:
    """The supervisor inherits the run's lock: killed between start and answer, Hero finds out, and need not guess."""
    run = bench(WAIT)
    (run.root / "jobs").mkdir()

    for fate in ("dies", "begins"):
        handle = os.open(lock_path(run.contract), os.O_RDWR | os.O_CREAT)
        fcntl.flock(handle, fcntl.LOCK_EX)
        begun = spawn_supervisor(run.directory, handle)
        os.close(handle)
        with begun:
            meanwhile = await run.launcher.is_submitting(run.contract)
            if fate == "dies":
                begun.kill()
                begun.wait()
            else:
                order = {"argv": run.contract.command, "cwd": run.contract.checkout}
                begun.communicate(json.dumps(order))
        await until(lambda: not_submitting(run))

        assert meanwhile is True
        found = await run.launcher.jobs(run.contract, run.job_id)
        assert isinstance(found, Known)
        assert len(found.value) == (fate == "begins")


async def not_submitting(run: Bench) -> bool:
    return not await run.launcher.is_submitting(run.contract)


async def test_of_many_submissions_at_once_exactly_one_begins(bench: MakeBench) -> None:
    run = bench("import os; open('began', 'a').write('x'); print('up', flush=True); open('go').read()")
    os.mkfifo(run.root / "go")

    outcomes = await asyncio.gather(*(run.submit(LocalLauncher(CLOCK)) for _ in range(4)))
    await run.says("up")
    (run.root / "go").write_text("")
    await run.ended(JobState.SUCCEEDED)
    again = await run.submit()

    assert sorted(outcome.kind for outcome in outcomes) == ["done", "uncertain", "uncertain", "uncertain"]
    assert isinstance(again, Uncertain)
    assert (run.root / "began").read_text() == "x"


async def test_the_fence_is_passed_under_the_lock_and_stops_the_submission(bench: MakeBench) -> None:
    run = bench(WAIT)
    seen: list[bool] = []

    async def closed() -> None:
        seen.append(await LocalLauncher(CLOCK).is_submitting(run.contract))
        raise LeaseLostError("bot")

    plan = run.plan()
    with pytest.raises(LeaseLostError):
        await run.launcher.submit(run.contract, plan, grant_of(plan), fence=closed)

    assert seen == [True]
    assert not run.directory.exists()
    assert not await run.launcher.is_submitting(run.contract)


async def test_nothing_is_started_or_stopped_without_a_grant_for_exactly_that(bench: MakeBench) -> None:
    run = bench(WAIT)
    plan = run.plan()
    other = grant_of(plan.model_copy(update={"job_id": JobId("/local/hero-1-1")}))
    late = grant_of(plan).model_copy(update={"expires_at": CLOCK.now() - timedelta(seconds=1)})
    edited = run.contract.model_copy(update={"environment": {"COLOUR": "red"}})

    outcomes = [
        await run.launcher.submit(run.contract, plan, other, fence=no_fence),
        await run.launcher.submit(run.contract, plan, late, fence=no_fence),
        await run.launcher.submit(edited, plan, grant_of(plan), fence=no_fence),
        await run.launcher.stop(run.contract, plan, other),
    ]

    assert [type(outcome) for outcome in outcomes] == [Refused] * 4
    assert not (run.root / "jobs").exists()


async def test_a_stop_ends_one_job_and_no_neighbour(bench: MakeBench) -> None:
    run, neighbour = bench(WAIT, run_id="hero-1"), bench(WAIT, run_id="hero-1-0")
    for each in (run, neighbour):
        await each.submit()
        await each.says("up")

    outcome = await run.stop()
    job = await run.job()
    again = await run.stop()

    assert outcome == Done(detail="/local/hero-1-0 ended on SIGTERM")
    assert job.state is JobState.KILLED
    assert job.error == "stopped on request R7"
    assert isinstance(job.tasks, Known)
    assert job.tasks.value[0].exit_code == -15
    assert again == Done(detail="/local/hero-1-0 had ended already: killed")
    assert (await neighbour.job()).state is JobState.RUNNING


async def test_a_job_that_saves_on_sigterm_and_exits_well_was_still_stopped(bench: MakeBench) -> None:
    run = bench(
        "import signal, sys; signal.signal(15, lambda *_: (print('saved'), sys.exit(0)))\n"
        "print('up', flush=True); signal.pause()"
    )
    await run.submit()
    await run.says("up")

    await run.stop()

    assert (await run.job()).state is JobState.KILLED
    assert run.output() == "up\nsaved\n"


@pytest.mark.parametrize("is_supervised", [True, False], ids=["with its supervisor", "without it"])
async def test_a_deaf_job_and_what_it_has_detached_are_killed_after_the_grace(
    bench: MakeBench, *, is_supervised: bool
) -> None:
    run = bench(
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {DEAF!r}], start_new_session=True)\n" + DEAF,
        grace=0.2,
    )
    await run.submit()
    await until(lambda: run.output().count("up") == 2)
    record = run.record()
    everyone = local_processes.living(record)
    if not is_supervised:
        os.kill(record.supervisor.pid, signal.SIGKILL)
        await until(lambda: local_processes.find(record.supervisor) is None)

    outcome = await run.stop()

    assert len(everyone) == 2
    assert isinstance(outcome, Done)
    assert "was killed" in outcome.detail
    assert (await run.job()).state is JobState.KILLED
    assert not [process for process in everyone if local_processes.is_living(process)]


async def test_a_job_has_not_ended_while_something_that_it_left_behind_lives(bench: MakeBench) -> None:
    """A worker that outlives its trainer still writes to the output root; a second one must not join it."""
    worker = (
        "import signal, sys\n"
        "def end(*_): print('asked', flush=True); open('go').read(); sys.exit()\n"
        "signal.signal(15, end); print('up', flush=True); signal.pause()"
    )
    run = bench(
        "import subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', {worker!r}], start_new_session=True)\n"
        "open('ready').read(); sys.exit(1)"
    )
    os.mkfifo(run.root / "go")
    os.mkfifo(run.root / "ready")
    await run.submit()
    await run.says("up")
    await asyncio.to_thread((run.root / "ready").write_text, "")

    await run.says("asked")
    meanwhile = await run.job()
    await asyncio.to_thread((run.root / "go").write_text, "")
    job = await run.ended(JobState.FAILED)

    assert meanwhile.state is JobState.RUNNING
    assert job.error == "exit code 1"


async def test_a_stranger_with_the_pid_of_a_dead_job_is_neither_taken_for_it_nor_stopped(bench: MakeBench) -> None:
    run = bench("")
    await run.submit()
    await run.ended(JobState.SUCCEEDED)
    with spawn(WAIT, start_new_session=True) as stranger:
        record = json.loads((run.directory / "job.json").read_text())
        for part in ("supervisor", "command"):
            record[part]["pid"] = stranger.pid
        (run.directory / "job.json").write_text(json.dumps(record))
        (run.directory / "exit.json").unlink()

        job = await run.job()
        outcome = await run.stop()

        assert job.state is JobState.WORKER_FAILED
        assert isinstance(outcome, Done)
        assert stranger.poll() is None
        stranger.kill()


async def test_neither_arguments_nor_heros_own_secrets_reach_a_file_or_the_job(
    bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERO_SLACK__BOT_TOKEN", "xoxb-very-secret")
    monkeypatch.setenv("hero_github__token", "ghp-very-secret")
    monkeypatch.setenv("ORDINARY", "kept")
    run = bench("import os; [print(name, text) for name, text in os.environ.items()]")

    await run.submit()
    await run.ended(JobState.SUCCEEDED)

    written = [file.read_text() for file in run.directory.iterdir()]
    assert not [text for text in written if "very-secret" in text]
    assert "COLOUR teal" in run.output()
    assert "ORDINARY kept" in run.output()


async def test_no_such_job_is_told_from_a_job_that_cannot_be_read(bench: MakeBench) -> None:
    run = bench("")
    orchestrator = LocalOrchestrator(CLOCK)

    before = await orchestrator.jobs(run.contract, run.job_id)
    before_log = await orchestrator.log(run.contract, run.job_id, None)
    run.directory.mkdir(parents=True)
    empty = await orchestrator.jobs(run.contract, run.job_id)
    (run.directory / "job.json").write_text('{"submitted_at": "yesterday"}')
    torn = await orchestrator.jobs(run.contract, run.job_id)
    foreign = await orchestrator.jobs(run.contract, JobId("/local/other-3"))
    crooked = await orchestrator.jobs(run.contract, JobId("/local/../hero-1-0"))

    assert isinstance(before, Known)
    assert before.value == ()
    assert isinstance(before_log, Known)
    for reading, words in (
        (empty, "holds no job.json"),
        (torn, "submitted_at"),
        (foreign, "no job of hero-1"),
        (crooked, "no local job id"),
    ):
        assert isinstance(reading, Unknown)
        assert reading.reason is Gap.UNRECOGNISED
        assert words in reading.detail


async def test_another_machines_job_is_unknown_and_not_dead(bench: MakeBench) -> None:
    run = bench("")
    await run.submit()
    await run.ended(JobState.SUCCEEDED)
    record = json.loads((run.directory / "job.json").read_text())
    record["host"] = "elsewhere"
    record["supervisor"]["start"] = "00000000-0000-4000-8000-000000000000:7"
    (run.directory / "job.json").write_text(json.dumps(record))

    reading = await LocalOrchestrator(CLOCK).jobs(run.contract, run.job_id)

    assert isinstance(reading, Unknown)
    assert "elsewhere" in reading.detail


@pytest.mark.parametrize("script", [WAIT, DEAF], ids=["asked", "forced"])
async def test_a_job_whose_directory_is_deleted_ends_with_its_supervisor(bench: MakeBench, script: str) -> None:
    """Nobody could find it again to stop it, and its supervisor must not wait for a disk to have room either."""
    run = bench(script, grace=0.2)
    await run.submit()
    await run.says("up")
    record = run.record()

    shutil.rmtree(run.root / "jobs")

    await until(lambda: not local_processes.is_alive(record), what="nothing of the job lives")
    assert not (run.root / "jobs").exists()


async def test_a_supervisor_obeys_sigterm_when_its_directory_is_gone(bench: MakeBench) -> None:
    run = bench(WAIT)
    await run.submit()
    await run.says("up")
    record = run.record()
    supervisor = local_processes.find(record.supervisor)
    assert supervisor is not None

    shutil.rmtree(run.root / "jobs")
    supervisor.terminate()

    await until(lambda: not local_processes.is_alive(record), what="nothing of the job lives")


def test_a_directory_that_is_moved_or_cannot_be_looked_into_is_not_deleted(tmp_path: Path) -> None:
    directory = tmp_path / "jobs" / "hero-1-0"
    directory.mkdir(parents=True)
    with (directory / "output.log").open("w") as output:
        said = [local_supervisor.has_been_deleted(directory, output=output.fileno())]
        directory.rename(tmp_path / "moved")
        said.append(local_supervisor.has_been_deleted(directory, output=output.fileno()))
        (tmp_path / "jobs").rmdir()
        (tmp_path / "jobs").write_text("a file: the path below it is ENOTDIR")
        said.append(local_supervisor.has_been_deleted(directory, output=output.fileno()))
        (tmp_path / "jobs").unlink()
        shutil.rmtree(tmp_path / "moved")

        assert said == [False, False, False]
        assert local_supervisor.has_been_deleted(directory, output=output.fileno())


async def test_prepare_names_the_job_and_changes_nothing(bench: MakeBench) -> None:
    run = bench("")

    submission = run.launcher.prepare(run.contract, number=4)

    assert submission == Submission(job_id=JobId("/local/hero-1-4"), command=run.contract.command)
    assert list(run.root.iterdir()) == []


async def test_the_log_is_the_end_of_the_output(bench: MakeBench) -> None:
    run = bench("print('x' * 99 + '\\n', end='', flush=True)\nfor n in range(20_000): print(f'{n:099}')\nprint('end')")
    await run.submit()
    await run.ended(JobState.SUCCEEDED)

    reading = await LocalOrchestrator(CLOCK).log(run.contract, run.job_id, None)

    assert isinstance(reading, Known)
    assert reading.value.is_cut
    assert reading.value.lines[-1].text == "end"
    assert reading.value.lines[-2].text == f"{19_999:099}"
    assert {len(line.text) for line in reading.value.lines[:-1]} == {99}
    assert sum(len(line.text) + 1 for line in reading.value.lines) <= LOG_BYTES


def test_a_line_that_is_still_being_written_waits_for_its_end() -> None:
    raw = b"step=1 loss=2.5\nstep=2 loss=12"

    writing, settled = (cut_lines(raw, is_cut=False, is_settled=flag) for flag in (False, True))

    assert [line.text for line in writing.lines] == ["step=1 loss=2.5"]
    assert [line.text for line in settled.lines] == ["step=1 loss=2.5", "step=2 loss=12"]


@given(raw=st.binary(max_size=200), is_cut=st.booleans(), is_settled=st.booleans())
def test_any_bytes_are_lines(raw: bytes, is_cut: bool, is_settled: bool) -> None:
    tail = cut_lines(raw, is_cut=is_cut, is_settled=is_settled)

    assert not [line for line in tail.lines if "\n" in line.text or "\r" in line.text]
    assert tail.is_cut is is_cut


@pytest.fixture
def sleeper() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", WAIT], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_supervisor_and_reader_tell_processes_apart_in_the_same_way(sleeper: int) -> None:
    assert local_supervisor.start_of(sleeper) == local_processes.start_of(sleeper) != ""
    assert local_supervisor._start_by_ps(sleeper) == local_processes._start_by_ps(sleeper) != ""
    assert local_supervisor.start_of(2**22 + 1) == local_processes.start_of(2**22 + 1) == ""


def test_the_process_table_is_the_same_without_proc(sleeper: int) -> None:
    by_proc, by_ps = local_supervisor._processes_by_proc(), local_supervisor._processes_by_ps()

    assert by_ps[sleeper] == by_proc[sleeper]
    assert sleeper in local_supervisor.members()


# Other live jobs of the run


async def test_another_live_job_of_the_run_is_found_by_its_directory_and_no_other_runs(bench: MakeBench) -> None:
    run = bench(WAIT)
    assert isinstance(await run.submit(), Done)
    await run.says("up")
    later, orchestrator = JobId("/local/hero-1-3"), LocalOrchestrator(CLOCK)
    ended = run.root / "jobs" / "hero-1-1"
    ended.mkdir()
    (ended / "exit.json").write_text(
        json.dumps({"exit_code": 0, "finished_at": CLOCK.now().isoformat(), "peak_rss_bytes": 1})
    )
    (run.root / "jobs" / "hero-12-0").mkdir()

    beside = await orchestrator.neighbours(run.contract, later, (run.job_id, JobId("/me/on-iris")))
    itself = await orchestrator.neighbours(run.contract, run.job_id, ())
    (run.root / "jobs" / "hero-1-2").mkdir()
    torn = await orchestrator.neighbours(run.contract, later, ())

    assert isinstance(beside, Known), beside
    assert [(job.job_id, job.state) for job in beside.value] == [(run.job_id, JobState.RUNNING)]
    assert isinstance(itself, Known)
    assert itself.value == ()
    assert isinstance(torn, Unknown)
    assert torn.reason is Gap.UNRECOGNISED
