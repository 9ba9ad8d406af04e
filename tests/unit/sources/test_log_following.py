"""Reading only what is new gives the very tail that reading all of it would give."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.clock import Clock
from bot.model.reading import Known, Reading
from bot.model.snapshot import LogTail
from bot.model.value import JobId, RunId
from bot.sources import local
from bot.sources.iris.following import LogFollower
from bot.sources.kept import Kept
from bot.sources.local import Followed, cut_lines, read_on
from tests.fakes.clock import FakeClock

JOB = JobId("/me/boom")
RUN = RunId("boom")
SUBMITTED = datetime(2026, 11, 29, 3, tzinfo=UTC)
NEWEST = 6


class LogService:
    """What the log service does with ``tail``, ``since_ms`` and ``cursor``, as it was seen to (finelog 0.2.71)."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.written = 0
        self.ticks = 0
        self.asked: list[int | None] = []
        self.sent = 0
        self.next_answer: Any = None

    def write(self, text: str, late_s: float = 0, *, key: str = f"{JOB}/0:0") -> None:
        self.written += 1
        self.ticks += 1
        at = SUBMITTED + timedelta(seconds=10 * self.ticks - late_s)
        row = {"timestamp": {"epochMs": str(int(at.timestamp() * 1000))}, "data": text, "key": key}
        self.rows.append(row | {"seq": str(self.written)})

    def begin_anew(self) -> None:
        self.rows, self.written = [], 0

    async def fetch_logs(self, question: dict[str, Any]) -> Any:
        self.asked.append(question.get("cursor"))
        if self.next_answer is not None:
            answer, self.next_answer = self.next_answer, None
            return answer
        behind = question.get("cursor", 0)
        found = [
            row
            for row in self.rows
            if int(row["seq"]) > behind
            and row["key"].startswith(question["source"])
            and int(row["timestamp"]["epochMs"]) > question.get("since_ms", 0)
        ][-question["max_lines"] :]
        self.sent += len(found)
        return {"entries": found, "cursor": found[-1]["seq"] if found else str(behind)}


def follower(service: LogService, clock: Clock | None = None) -> LogFollower:
    return LogFollower(service, clock or FakeClock(), newest=NEWEST)  # type: ignore[arg-type]  # only what it asks


def known(reading: Reading[LogTail]) -> LogTail:
    assert isinstance(reading, Known), reading
    return reading.value


def texts(tail: LogTail) -> list[str]:
    return [line.text for line in tail.lines]


writes = st.lists(st.tuples(st.sampled_from(["same", "a", "b"]), st.sampled_from([0.0, 0.0, 25.0])), max_size=9)


@given(st.lists(writes, max_size=8), st.sets(st.integers(0, 7)))
async def test_however_lines_arrive_the_tail_is_that_of_a_whole_read(
    looks: list[list[tuple[str, float]]], restarts: set[int]
) -> None:
    """Equal lines, lines of neighbours, lines that come late, and a service that loses all and counts from 1 again."""
    service = LogService()
    following = follower(service)
    for n, written in enumerate(looks):
        if n in restarts:
            service.begin_anew()
        for text, late_s in written:
            service.write(text, late_s)
            service.write("a neighbour's", key="/me/boom2/0:0")

        followed = await following.tail(RUN, JOB, SUBMITTED)
        whole = await follower(service).tail(RUN, JOB, SUBMITTED)

        assert followed == whole


async def test_only_new_lines_travel_and_the_one_before_them() -> None:
    service = LogService()
    following = follower(service)
    for n in range(4):
        service.write(f"line {n}")
    await following.tail(RUN, JOB, SUBMITTED)
    service.sent = 0

    service.write("line 4")
    tail = known(await following.tail(RUN, JOB, SUBMITTED))

    assert texts(tail) == [f"line {n}" for n in range(5)]
    assert service.sent == 2


@pytest.mark.parametrize("answer", [{"entries": "soon"}, {"entries": [{"data": "no time"}]}, "<html>", {}])
async def test_an_answer_that_is_lost_or_odd_loses_no_line(answer: Any) -> None:
    service = LogService()
    following = follower(service)
    service.write("one")
    service.write("two")
    await following.tail(RUN, JOB, SUBMITTED)

    service.write("three")
    service.next_answer = answer
    await following.tail(RUN, JOB, SUBMITTED)
    service.write("four")
    tail = known(await following.tail(RUN, JOB, SUBMITTED))

    assert texts(tail) == ["one", "two", "three", "four"]
    assert service.asked[-1] in {1, 2}, "it went on from where it was"


async def test_a_new_instance_under_the_same_id_begins_without_the_old_ones_lines() -> None:
    service = LogService()
    following = follower(service)
    service.write("old")
    service.write("old")
    before = known(await following.tail(RUN, JOB, SUBMITTED))
    resubmitted = SUBMITTED + timedelta(seconds=25)

    empty = known(await following.tail(RUN, JOB, resubmitted))
    service.write("new")
    after = known(await following.tail(RUN, JOB, resubmitted))

    assert (texts(before), texts(empty), texts(after)) == (["old", "old"], [], ["new"])


async def test_a_line_of_the_very_millisecond_of_the_submission_counts() -> None:
    service = LogService()
    service.write("first words", late_s=10)

    assert texts(known(await follower(service).tail(RUN, JOB, SUBMITTED))) == ["first words"]


async def test_a_service_without_numbers_is_read_whole_each_time() -> None:
    service = LogService()
    following = follower(service)
    for _ in range(2):
        row = {"timestamp": {"epochMs": "1795965300000"}, "data": "hello", "key": f"{JOB}/0:0"}
        service.next_answer = {"entries": [row, row]}

        tail = known(await following.tail(RUN, JOB, None))

        assert texts(tail) == ["hello", "hello"]
    assert service.asked == [None, None]


def test_only_so_many_runs_are_kept_and_the_one_longest_unasked_goes() -> None:
    kept: Kept[int] = Kept(most=2)
    kept.put(RunId("a"), 1)
    kept.put(RunId("b"), 2)
    assert kept.get(RunId("a")) == 1

    kept.put(RunId("c"), 3)

    assert [kept.get(RunId(name)) for name in "abc"] == [1, None, 3]


class Counted:
    """A file that says how much of it was read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.bytes_read = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, most: int) -> bytes:
        found = self._file.read(most)
        self.bytes_read += len(found)
        return found


def put(file: Any, content: bytes) -> None:
    """Make this the content of the same file."""
    file.seek(0)
    file.truncate()
    file.write(content)
    file.flush()


contents = st.lists(
    st.tuples(st.sampled_from(["append", "append", "cut", "anew"]), st.binary(max_size=40) | st.just(b"step=1\n" * 6)),
    max_size=10,
)


@given(contents)
def test_whatever_happens_to_a_file_its_end_is_that_of_a_whole_read(changes: list[tuple[str, bytes]]) -> None:
    """It grows, is cut to nothing and grows again, or is written anew, past the place where the last read ended."""
    held = b""
    with pytest.MonkeyPatch.context() as patch, TemporaryFile() as file:
        patch.setattr(local, "LOG_BYTES", 64)
        kept: Followed | None = None
        for how, new in changes:
            held = {"append": held + new, "cut": new, "anew": new * 3}[how]
            put(file, held)

            kept = read_on(file, JOB, kept)

            assert (kept.end, kept.size) == (held[-64:], len(held))


def test_of_a_file_that_grew_only_the_new_bytes_and_a_guard_are_read(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(b"step=1 loss=2.5\n" * 40_000)
    with path.open("r+b") as raw:
        file: Any = Counted(raw)
        kept = read_on(file, JOB, None)
        before = file.bytes_read
        raw.seek(0, 2)
        raw.write(b"step=2 loss=2.4\n" * 10)
        raw.flush()
        kept = read_on(file, JOB, kept)

    assert before == 640_000
    assert file.bytes_read - before == 4096 + 160
    assert cut_lines(kept.end, is_cut=False, is_settled=True).lines[-1].text == "step=2 loss=2.4"


def test_a_file_that_was_cut_and_has_outgrown_its_old_length_is_read_whole() -> None:
    """As ``copytruncate`` leaves it: the same file, longer than at the last look, and nothing in it is as it was."""
    old, new = b"step=1 loss=2.5\n" * 1000, b"step=7 loss=2.1\n" * 1200
    with TemporaryFile() as file:
        put(file, old)
        kept = read_on(file, JOB, None)
        put(file, new)
        followed = read_on(file, JOB, kept)

    assert followed.end == new


def test_another_jobs_output_is_never_joined_to_this_ones(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(b"one\n")
    with path.open("rb") as file:
        kept = read_on(file, JobId("/local/a-1"), None)
        Path(tmp_path / "other.log").write_bytes(b"one\ntwo\n")
        with (tmp_path / "other.log").open("rb") as other:
            counted: Any = Counted(other)
            followed = read_on(counted, JobId("/local/a-2"), kept)

    assert followed.end == b"one\ntwo\n"
