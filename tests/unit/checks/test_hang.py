"""What a stall is told with: which tasks stand apart, on which nodes, which ranks are behind, where the threads are."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.hang import Counted, HangEvidence, OddRank, RankStatistics, TaskStack, TaskUse, ThreadStack
from bot.model.job import Attempt, TaskState
from bot.model.reading import Gap, Known, Unknown
from bot.model.snapshot import Snapshot, Source
from bot.model.telemetry import Phase, Telemetry
from bot.model.verdict import Fail
from checks.hang import hang_evidence
from checks.progress import STALLED, STARTUP
from checks.telemetry import GONE
from tests.fakes.snapshots import AT, JOB, attempt, job, later, rows, snapshot, task, unknown
from tests.unit.checks.story import verdict

TRAIN = f"{JOB}/train"
MOVED = AT - timedelta(minutes=16)


def use(index: int, cores: float, **fields: Any) -> TaskUse:
    given_: dict[str, Any] = {"memory_bytes": 12 * 2**30, "samples": 10, "last_at": AT} | fields
    return TaskUse(task_id=f"{TRAIN}/{index}", cores=cores, **given_)


def stack(index: int, *frames: str, minutes_ago: float = 5, name: str = "MainThread") -> TaskStack:
    threads = (ThreadStack(name=name, is_idle=True, frames=frames),)
    return TaskStack(task_id=f"{TRAIN}/{index}", at=AT - timedelta(minutes=minutes_ago), threads=threads)


def evidence(
    cores: list[float] | Unknown = unknown(),  # noqa: B008 - frozen
    *,
    stacks: tuple[TaskStack, ...] | Unknown = (),
    ranks: RankStatistics | Unknown | None = None,
    **fields: Any,
) -> HangEvidence:
    """Return evidence of a gang: what its tasks use, by index."""
    used = cores if isinstance(cores, Unknown) else tuple(use(n, each, **fields) for n, each in enumerate(cores))
    return HangEvidence.model_validate(
        {
            "window_began_at": AT - timedelta(minutes=10),
            "use": used if isinstance(used, Unknown) else Known(value=used, at=AT),
            "stacks": stacks if isinstance(stacks, Unknown) else Known(value=stacks, at=AT),
            "ranks": ranks if isinstance(ranks, Unknown) else Known(value=ranks, at=AT),
        }
    )


def gang(
    hang: HangEvidence | Unknown, *, tasks: int = 8, tried: tuple[Attempt, ...] = (), shift: int = 0, **fields: Any
) -> Snapshot:
    """Return a look at a coordinator and, below it, a gang that runs on node-0, node-1 …

    Args:
        hang: what is on record.
        tasks: how many.
        tried: earlier attempts of each task, on the node of its index and ``shift`` more.
        shift: see above.
        fields: of the snapshot.
    """

    def one(index: int) -> Any:
        before = tuple(each.model_copy(update={"node": f"node-{index + shift}"}) for each in tried)
        last = attempt(len(tried), node=f"node-{index}", uid=f"uid-{index}-{len(tried)}")
        return task(index, job_id=TRAIN, attempts=(*before, last))

    child = job(job_id=TRAIN, parent=JOB, tasks=tuple(one(n) for n in range(tasks)))
    seen = snapshot(jobs=(job(), child), **fields)
    return seen.model_copy(update={"hang": hang if isinstance(hang, Unknown) else Known(value=hang, at=AT)})


def said(seen: Snapshot) -> tuple[str, ...]:
    return hang_evidence(seen, MOVED)


def hung(number: int) -> Attempt:
    """Return an attempt that the trainer's own watchdog ended."""
    return attempt(number, TaskState.FAILED, exit_code=124, finished_at=AT - timedelta(minutes=40))


def test_tasks_that_use_no_cpu_are_told_from_those_that_spin_with_their_nodes() -> None:
    found = said(gang(evidence([7.9, 8.0, 7.9, 0.003, 7.8, 0.0, 7.9, 8.1])))

    assert found[0] == (
        "2 of 8 tasks use no CPU: 3, 5 (on node-3, node-5); the others spin at 7.8 to 8.1 cores, since 03:50 UTC"
    )


def test_a_stuck_rack_is_found_by_what_it_uses_less_than_the_others() -> None:
    """marin-community/marin#8870: tasks 112 to 127 at 4.0 cores, the other ten racks at 7.9."""
    cores = [4.0 if 112 <= n < 128 else 7.9 for n in range(176)]

    found = said(gang(evidence(cores), tasks=176))

    assert found[0].startswith("16 of 176 tasks spin at 4.0 cores: 112-127 (on node-112, node-113")
    assert "and 8 more); the others spin at 7.9 cores" in found[0]


@pytest.mark.parametrize(
    ("cores", "says"),
    [
        ([7.9, 8.1, 8.0], "all 3 tasks alike: spin at 7.9 to 8.1 cores"),
        ([0.0, 0.001], "all 2 tasks alike: use no CPU"),
        ([0.3], "its only task: use 0.3 cores"),
        ([1.0, 1.0, 1.0, 9.0], "1 of 4 tasks spin at 9.0 cores: 3 (on node-3); the others spin at 1.0 cores"),
    ],
)
def test_tasks_that_are_alike_are_one_word(cores: list[float], says: str) -> None:
    assert said(gang(evidence(cores), tasks=len(cores)))[0] == f"{says}, since 03:50 UTC"


def test_of_which_tasks_nothing_is_recorded_is_said_and_not_taken_for_idle() -> None:
    found = said(gang(evidence([7.9, 7.9, 7.9])))
    nothing = said(gang(evidence([])))

    assert "of tasks 3-7 no use of processors is on record: whether they spin is unknown" in found
    assert nothing[0] == "no use of processors is on record of its 8 tasks since 03:50 UTC"
    assert not any("no CPU" in line for line in (*found, *nothing))


def test_the_coordinator_that_waits_is_none_of_the_tasks_that_are_compared() -> None:
    waiting = evidence([7.9] * 8)
    both = waiting.model_copy(update={"use": Known(value=(*_used(waiting), _coordinator()), at=AT)})

    assert said(gang(both))[0].startswith("all 8 tasks alike")


def _used(of: HangEvidence) -> tuple[TaskUse, ...]:
    assert isinstance(of.use, Known)
    return of.use.value


def _coordinator() -> TaskUse:
    return use(0, 0.0).model_copy(update={"task_id": f"{JOB}/0"})


def test_what_accelerators_do_is_told_where_it_is_recorded_and_said_to_be_missing_where_not() -> None:
    """marin-community/marin#8870: it separates a kernel that spins from one that was never launched."""
    dark = said(gang(evidence([7.9] * 8)))
    mixed = tuple(use(n, 7.9, accelerator_fraction=0.0 if n == 2 else 1.0) for n in range(8))
    lit = said(gang(evidence([]).model_copy(update={"use": Known(value=mixed, at=AT)})))

    assert "use of accelerators is not recorded" in dark
    assert "use of accelerators: 0% (task 2), 100% (tasks 0-1, 3-7)" in lit
    assert "memory of a task: 12.0 GiB" in dark
    assert "memory of a task: 9.5 MiB" in said(gang(evidence([1.0], memory_bytes=10_000_000), tasks=1))


def test_the_nodes_that_the_hung_attempts_share_are_named() -> None:
    same = said(gang(evidence([7.9] * 3), tasks=3, tried=(hung(0),)))
    some = said(gang(evidence([7.9, 7.9, 0.0]), tasks=3, tried=(hung(0), hung(1)), shift=1))
    none = said(gang(evidence([7.9] * 3), tasks=3, tried=(hung(0),), shift=9))

    assert (
        "attempt 0 hung as well (ended by the watchdog, exit 124), on the same 3 nodes: node-0, node-1, node-2" in same
    )
    assert (
        "attempts 0, 1 hung as well (ended by the watchdog, exit 124); the attempts that hung shared 2 nodes of 3: "
        "node-1, node-2" in some
    )
    assert "of those, tasks stand apart on node-2" in some
    assert any("on none of the nodes of now: node-10, node-11, node-9" in line for line in none)


def test_an_attempt_that_ended_otherwise_did_not_hang() -> None:
    lost = attempt(0, TaskState.WORKER_FAILED, finished_at=AT)

    found = said(gang(evidence([7.9] * 8), tried=(lost,)))

    assert "on 8 nodes: node-0, node-1, node-2, node-3, node-4, node-5, node-6, node-7" in found


RANKS = RankStatistics(
    at=AT - timedelta(minutes=2),
    trigger="periodic",
    communicators=24,
    disagreeing=3,
    missing=1,
    unresponsive=1,
    counted=(Counted(communicator="0xae94", collective="AllReduce", fewest=1200, most=1203),),
    odd=(OddRank(communicator="0xae94", rank="17", host="10.0.0.2", says=("missing", "unresponsive")),),
)


def test_ranks_that_are_behind_are_told_with_the_warning_that_one_sample_is_no_verdict() -> None:
    found = said(gang(evidence([7.9] * 8, ranks=RANKS)))

    assert (
        "NCCL RAS at 03:58:00 UTC (periodic): 3 of 24 communicators disagree on how far they are; ranks: 1 missing, "
        "1 unresponsive" in found
    )
    assert any("AllReduce in 0xae94, 3 calls (1200 to 1203); one sample may catch" in line for line in found)
    assert "odd ranks: rank 17 on 10.0.0.2 (missing, unresponsive)" in found


def test_ras_that_gave_no_answer_or_half_of_one_leaves_the_ranks_unknown() -> None:
    failed = RankStatistics(at=AT, failed="client_timeout", trigger="stall")
    half = RANKS.model_copy(update={"is_whole": False})

    assert "NCCL RAS at 04:00:00 UTC (stall) gave no answer: client_timeout; which ranks are behind is unknown" in said(
        gang(evidence([7.9] * 8, ranks=failed))
    )
    assert "that answer did not arrive whole: a rank that it does not name may still be odd" in said(
        gang(evidence([7.9] * 8, ranks=half))
    )


def test_threads_that_stand_elsewhere_come_first() -> None:
    usual, alone = "_run_grug_local (moe_hero/train.py:585)", "recv (socket.py:12)"
    stacks = (*(stack(n, usual) for n in range(8) if n != 5), stack(5, alone, usual, minutes_ago=20))

    found = said(gang(evidence([7.9] * 8, stacks=stacks)))

    begin = found.index("thread dumps of 8 of 8 tasks, from 03:40:00 UTC on, the earliest of them before the last step")
    assert found[begin + 1 : begin + 3] == (
        f"main thread of task 5: {alone} < {usual}",
        f"main thread of tasks 0-4, 6-7: {usual}",
    )


def test_each_part_that_cannot_be_read_is_said_as_unknown_and_hides_no_other() -> None:
    dark = unknown(detail="no answer in 20 s")

    found = said(gang(evidence(dark, stacks=dark, ranks=RANKS)))

    assert "use of processors: unknown, no answer in 20 s" in found
    assert "where its threads stand: unknown, no answer in 20 s" in found
    assert any("on 8 nodes" in line for line in found)
    assert any("communicators disagree" in line for line in found)


def test_what_was_read_and_holds_nothing_is_said_apart_from_what_could_not_be_read() -> None:
    found = said(gang(evidence([7.9] * 8)))

    assert found[-1] == "not on record: where its threads stand, statistics of ranks (NCCL RAS)"


def test_when_none_of_it_can_be_read_the_nodes_are_still_told() -> None:
    found = said(gang(unknown(detail="no answer in 30 s")))

    assert found == (
        "on 8 nodes: node-0, node-1, node-2, node-3, node-4, node-5, node-6, node-7",
        "what its tasks do is unknown: no answer in 30 s",
    )


@pytest.mark.parametrize("reason", [Gap.NOT_CONFIGURED, Gap.NOT_YET])
def test_where_nothing_keeps_it_nothing_is_said(reason: Gap) -> None:
    assert said(gang(unknown(reason))) == ()


def test_a_stall_a_start_that_does_not_end_and_a_silent_trainer_are_told_with_it() -> None:
    """The words of the finding, its severity and its key are the same with it: only the evidence is more."""
    hang = Known(value=evidence([7.9, 7.9, 0.0]), at=AT)
    trained = [snapshot(metrics=rows(1, 50, until=later(0))), snapshot(later(16))]
    heard = Telemetry(phase=Phase.TRAINING, phase_at=AT, last_row_at=AT, is_of_current_execution=True)
    silent = snapshot(later(60)).model_copy(update={"telemetry": Known(value=heard, at=later(60))})
    for check, story in ((STALLED, trained), (STARTUP, [snapshot(later(60))]), (GONE, [silent])):
        bare, told = _last(check, story), _last(check, [*story[:-1], _hung(story[-1], hang)])

        assert set(told.finding.evidence) > set(bare.finding.evidence)
        assert any("stand" in line or "no use of processors" in line for line in told.finding.evidence)
        assert told.finding.model_copy(update={"evidence": ()}) == bare.finding.model_copy(update={"evidence": ()})
        assert Source.HANG in check.needs


def _hung(seen: Snapshot, hang: Known[HangEvidence]) -> Snapshot:
    return seen.model_copy(update={"hang": hang})


def _last(check: Any, story: list[Snapshot]) -> Fail:
    last = verdict(check, *story)
    assert isinstance(last, Fail), last
    return last


@given(
    st.lists(st.one_of(st.just(0.0), st.floats(0, 64)), max_size=40),
    st.integers(1, 40),
    st.integers(0, 3),
    st.integers(0, 5),
)
def test_whatever_is_on_record_each_task_is_told_once_and_each_line_is_one_line(
    cores: list[float], tasks: int, retries: int, shift: int
) -> None:
    seen = gang(evidence(cores), tasks=tasks, tried=tuple(hung(n) for n in range(retries)), shift=shift)

    found = said(seen)

    assert found
    assert all(line and len(line.splitlines()) == 1 and len(line) < 1000 for line in found)
    known = min(len(cores), tasks)
    assert (known < tasks) == any("no use of processors is on record" in line for line in found)
