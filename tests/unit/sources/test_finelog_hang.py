"""Thread dumps, NCCL's statistics and the use of processors, as Finelog's rows hold them."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import UnrecognisedError
from bot.model.hang import Counted, OddRank, RankStatistics
from bot.model.job import JobState
from bot.sources.finelog.executions import Executions
from bot.sources.finelog.hang import parse_columns, parse_use, running_tasks
from bot.sources.finelog.ranks import parse_ranks
from bot.sources.finelog.stacks import parse_dump, parse_stacks
from tests.fakes.snapshots import JOB, attempt, job, task, unknown

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
TRAIN = f"{JOB}/train"
TASKS = {
    f"{TRAIN}/{n}": task(n, job_id=TRAIN, attempts=(attempt(0), attempt(1, started_at=NOW - timedelta(hours=1))))
    for n in range(2)
}

DUMP = """Process 1: python train.py --wandb-key 0123456789abcdef
Python v3.12.3 (/usr/bin/python3.12)

Thread 1 (idle): "MainThread"
    _run_grug_local (/app/experiments/grug/moe_hero/train.py:585)
    <module> (_callable_runner.py:40)
Thread 0x7F1 (active+gil): "telemetry"
    send (rigging/telemetry.py:9)
    Arguments:
        password: "hunter2"
Thread 77 (idle)
    wait (threading.py:355)
Process 9: wandb-core
Error: Failed to find python version from target process
"""


def test_the_top_of_each_threads_stack_is_taken_and_nothing_that_may_be_a_secret() -> None:
    found = parse_dump(DUMP)

    assert [(each.name, each.is_idle, each.frames) for each in found] == [
        ("MainThread", True, ("_run_grug_local (moe_hero/train.py:585)", "<module> (_callable_runner.py:40)")),
        ("telemetry", False, ("send (rigging/telemetry.py:9)",)),
        ("thread 77", True, ("wait (threading.py:355)",)),
    ]


@given(st.text(), st.integers(0, 400))
def test_whatever_a_dump_holds_and_wherever_it_is_cut_it_is_read(other: str, cut: int) -> None:
    for dump in (other, DUMP[:cut] + other, DUMP.replace("MainThread", other)):
        found = parse_dump(dump)

        assert all(each.frames and each.name for each in found)
        assert not any("hunter2" in frame or "0123456789" in frame for each in found for frame in each.frames)


def dumped(index: int = 0, number: int = 1, *, minutes_ago: float = 5, dump: str = DUMP) -> dict[str, Any]:
    at = (NOW - timedelta(minutes=minutes_ago)).replace(tzinfo=None)
    encoded = base64.b64encode(dump.encode()).decode().rstrip("=")
    return {"source": f"{TRAIN}/{index}", "attempt_id": number, "captured_at": at, "dump": encoded}


def test_dumps_of_earlier_attempts_of_namesakes_and_of_other_tasks_are_left_alone() -> None:
    rows = [dumped(0), dumped(1, 0), dumped(1, 1, minutes_ago=61), dumped(7)]

    found = parse_stacks(rows, TASKS)

    assert [each.task_id for each in found] == [f"{TRAIN}/0"]
    assert found[0].at == NOW - timedelta(minutes=5)
    assert found[0].main is not None
    assert found[0].main.name == "MainThread"


@pytest.mark.parametrize("broken", [{"dump": None}, {"dump": "~~~~"}, {"captured_at": None}])
def test_a_dump_of_another_shape_is_unrecognised_and_not_empty(broken: dict[str, Any]) -> None:
    with pytest.raises(UnrecognisedError):
        parse_stacks([dumped() | broken], TASKS)


def gauge(
    name: str, value: float, *, seconds_ago: float = 60, execution: str = "iris:uid", **says: str
) -> dict[str, Any]:
    millis = int((NOW - timedelta(seconds=seconds_ago)).timestamp() * 1000)
    told = {"trigger": "periodic", **says}
    return {
        "seq": 1,
        "timestamp_ms": millis,
        "name": name,
        "value": value,
        "attributes_json": json.dumps(told),
        "execution_uid": execution,
    }


ANSWER = [
    gauge("ras_available", 1.0, outcome="success"),
    gauge("communicators", 2.0),
    gauge("communicator_state", 1.0, communicator_hash="0xa", collective_mismatch="true"),
    gauge("communicator_state", 1.0, communicator_hash="0xb", collective_mismatch="false"),
    gauge("communicator_ranks", 3.0, communicator_hash="0xa", rank_state="reported"),
    gauge("communicator_ranks", 1.0, communicator_hash="0xa", rank_state="missing"),
    gauge("communicator_ranks", 1.0, communicator_hash="0xa", rank_state="unresponsive"),
    gauge("communicator_ranks", 0.0, communicator_hash="0xb", rank_state="considered_dead"),
    gauge("collective_operations", 1200, communicator_hash="0xa", collective="AllReduce", rank_statistic="minimum"),
    gauge("collective_operations", 1203, communicator_hash="0xa", collective="AllReduce", rank_statistic="maximum"),
    gauge("collective_operations", 7, communicator_hash="0xb", collective="Broadcast", rank_statistic="minimum"),
    gauge("collective_operations", 7, communicator_hash="0xb", collective="Broadcast", rank_statistic="maximum"),
    gauge(
        "communicator_rank_status",
        0.0,
        communicator_hash="0xa",
        rank="17",
        rank_host="10.0.0.2",
        rank_state="missing",
        reasons="missing,unresponsive",
        unresponsive="true",
    ),
    gauge("communicator_rank_status", 1.0, communicator_hash="0xb", rank="3", rank_state="reported", async_error="0"),
]


def test_an_answer_of_ras_is_put_together_from_its_rows() -> None:
    assert parse_ranks(ANSWER, Executions()) == RankStatistics(
        at=NOW - timedelta(seconds=60),
        trigger="periodic",
        communicators=2,
        disagreeing=1,
        missing=1,
        unresponsive=1,
        counted=(Counted(communicator="0xa", collective="AllReduce", fewest=1200, most=1203),),
        odd=(OddRank(communicator="0xa", rank="17", host="10.0.0.2", says=("missing", "unresponsive")),),
    )


def test_the_older_form_with_a_count_for_each_rank_gives_the_same_range() -> None:
    per_rank = [
        gauge("collective_operations", count, communicator_hash="0xa", collective="AllReduce", rank=str(rank))
        for rank, count in enumerate((1203, 1200, 1203))
    ]

    found = parse_ranks([*ANSWER[:2], *per_rank], Executions())

    assert found is not None
    assert found.counted == (Counted(communicator="0xa", collective="AllReduce", fewest=1200, most=1203),)


def test_only_the_newest_answer_counts_and_one_of_another_execution_never() -> None:
    old = [each | {"timestamp_ms": each["timestamp_ms"] - 600_000} for each in ANSWER]
    fresh = [gauge("ras_available", 1.0, outcome="success"), gauge("communicators", 2.0)]
    others = [gauge("ras_available", 1.0, seconds_ago=1, execution="iris:old"), *ANSWER[2:4]]

    found = parse_ranks([*old, *fresh], Executions())
    own = parse_ranks([*old, *others], Executions(current=frozenset({"iris:uid"}), is_exact=True))

    assert found == RankStatistics(at=NOW - timedelta(seconds=60), trigger="periodic", communicators=2)
    assert own is not None
    assert own.at == NOW - timedelta(seconds=660)


def test_a_question_that_failed_and_an_answer_with_losses_are_not_taken_for_a_clean_bill() -> None:
    failed = parse_ranks([*ANSWER, gauge("ras_available", 0.0, seconds_ago=5, outcome="client_timeout")], Executions())
    lossy = parse_ranks([*ANSWER, gauge("ras_metric_records", 4, record_state="telemetry_lost")], Executions())
    short = parse_ranks(ANSWER[:1], Executions())

    assert failed is not None
    assert (failed.failed, failed.communicators) == ("client_timeout", None)
    assert lossy is not None
    assert not lossy.is_whole
    assert short is not None
    assert not short.is_whole
    assert parse_ranks([], Executions()) is None


@pytest.mark.parametrize("broken", [{"name": None}, {"timestamp_ms": "soon"}, {"attributes_json": "{"}])
def test_a_gauge_of_another_shape_is_unrecognised(broken: dict[str, Any]) -> None:
    with pytest.raises(UnrecognisedError):
        parse_ranks([*ANSWER, ANSWER[0] | broken], Executions())


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "name": st.sampled_from(["ras_available", "communicators", "collective_operations", "other"]),
                "value": st.one_of(st.none(), st.floats(), st.integers(), st.booleans()),
                "timestamp_ms": st.integers(1_700_000_000_000, 1_900_000_000_000),
                "attributes_json": st.sampled_from(["", "{}", '{"outcome": null}', '{"communicator_hash": ["x"]}']),
                "execution_uid": st.one_of(st.none(), st.text()),
            }
        ),
        max_size=8,
    )
)
def test_whatever_figures_come_they_make_an_answer_or_none(rows: list[dict[str, Any]]) -> None:
    found = parse_ranks(rows, Executions())

    assert found is None or found.failed or found.disagreeing >= 0


def used(index: int, number: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "task_id": f"{TRAIN}/{index}",
        "attempt_id": number,
        "samples": 10,
        "cpu_millicores": 7900,
        "memory_mb": 1024,
        "accelerator_pct": None,
        "last_at": NOW.replace(tzinfo=None),
        **fields,
    }


def test_use_is_of_the_newest_attempts_alone_in_whole_units() -> None:
    found = parse_use([used(1, accelerator_pct=50.0), used(0, 0), used(0), used(9)], TASKS)

    assert [(each.task_id, each.cores, each.memory_bytes, each.accelerator_fraction) for each in found] == [
        (f"{TRAIN}/0", 7.9, 2**30, None),
        (f"{TRAIN}/1", 7.9, 2**30, 0.5),
    ]
    assert found[0].last_at == NOW


@pytest.mark.parametrize(
    "broken", [{"cpu_millicores": None}, {"memory_mb": "much"}, {"samples": 1.5}, {"last_at": "soon"}]
)
def test_use_of_another_shape_is_unrecognised_and_not_no_use(broken: dict[str, Any]) -> None:
    with pytest.raises(UnrecognisedError):
        parse_use([used(0) | broken], TASKS)


def test_the_tasks_that_may_hang_are_those_at_the_bottom_of_what_lives() -> None:
    trainer = job(job_id=TRAIN, tasks=tuple(TASKS.values()))
    ended = job(JobState.FAILED, job_id=f"{JOB}/before", tasks=(task(job_id=f"{JOB}/before"),))
    dark = job(job_id=f"{JOB}/eval", tasks=unknown())

    assert running_tasks((job(), trainer, ended, dark)) == TASKS
    assert list(running_tasks((job(), ended))) == [f"{JOB}/0"]


@pytest.mark.parametrize("answer", [None, [], {}, {"namespaces": 1}, {"namespaces": [{"namespace": "log"}]}])
def test_tables_of_another_shape_are_unrecognised(answer: object) -> None:
    with pytest.raises(UnrecognisedError):
        parse_columns(answer)
