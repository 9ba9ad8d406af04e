"""job.repeated: only progress beyond the failing window forgives a failure."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model.job import JobState, TaskState
from bot.model.snapshot import LogLine, LogTail, Snapshot
from bot.model.verdict import Fail, Pass, Severity, UnknownVerdict
from checks.failures import KEPT, Failure, Ledger
from checks.patterns import RepeatThresholds, pattern_in
from checks.repeats import REPEATED
from tests.fakes.clock import START
from tests.fakes.snapshots import (
    AT,
    JOB,
    attempt,
    contract,
    failed_job,
    job,
    later,
    row,
    rows,
    snapshot,
    task,
    unknown,
)
from tests.unit.checks.story import finding, verdict, verdicts

SEGFAULT = "Fatal Python error: Segmentation fault"
KEY_ERROR = (
    'Traceback (most recent call last):\n  File "/app/data.py", line 9, in load\n    x["text"]\nKeyError: \'text\''
)
LINK = "NCCL WARN Call to ibv_post_send failed: Xid 79 GPU has fallen off the bus"


def life(
    number: int, *, first: int, last: int, log: str = KEY_ERROR, hours: float = 1, node: str = "node-0"
) -> tuple[Snapshot, Snapshot]:
    """Return two looks at one launch: it trains from ``first`` to ``last``, then it is dead."""
    began = START + timedelta(days=number)
    died = began + timedelta(hours=hours)
    alive = job(submitted_at=began, started_at=began)
    dead = failed_job(1, submitted_at=began, started_at=began, finished_at=died, node=node)
    return (
        snapshot(died - timedelta(minutes=1), jobs=alive, metrics=[row(first), row(last)]),
        snapshot(died, jobs=dead, log=log),
    )


def test_one_failure_is_no_repetition() -> None:
    assert verdict(REPEATED, *life(0, first=1, last=500)) == Pass()


def test_the_same_failure_twice_is_critical_and_never_offered_for_a_relaunch() -> None:
    found = finding(REPEATED, *life(0, first=1, last=500), *life(1, first=400, last=480))

    assert found.severity is Severity.CRITICAL
    assert "the same failure 2 times" in found.summary
    assert "KeyError" in found.summary
    assert len(found.evidence) == 2
    assert not found.is_recoverable
    assert found.crash is None


def test_two_different_failures_in_the_same_place_are_a_repetition_too() -> None:
    found = finding(REPEATED, *life(0, first=1, last=500), *life(1, first=400, last=520, log=SEGFAULT))

    assert "2 failures in the same place" in found.summary


def test_two_different_failures_in_different_places_are_not() -> None:
    assert verdict(REPEATED, *life(0, first=1, last=500), *life(1, first=100, last=300, log=SEGFAULT)) == Pass()


@pytest.mark.parametrize(("reached", "is_forgiven"), [(550, False), (551, True)])
def test_only_progress_beyond_the_window_forgives(reached: int, is_forgiven: bool) -> None:
    story = (*life(0, first=1, last=500), *life(1, first=400, last=reached))

    assert (verdict(REPEATED, *story) == Pass()) is is_forgiven


def test_the_window_grows_with_the_step() -> None:
    story = (*life(0, first=90_000, last=100_000), *life(1, first=99_000, last=100_900))

    assert isinstance(verdict(REPEATED, *story), Fail)


def test_a_start_that_nobody_saw_train_forgives_nothing() -> None:
    """Unknown progress is no progress, however long it may have run."""
    unseen = job(submitted_at=later(9_000), started_at=later(9_000))
    dark = snapshot(later(9_500), jobs=unseen, metrics=unknown(at=later(9_500)))

    found = verdicts(REPEATED, [*life(0, first=1, last=500), dark, *life(9, first=490, last=499)])

    assert isinstance(found[-1], Fail)


def test_the_finding_stays_while_it_runs_again_and_goes_with_progress() -> None:
    story = (*life(0, first=1, last=500), *life(1, first=400, last=480))
    again = job(submitted_at=later(9_000), started_at=later(9_000))

    found = verdicts(
        REPEATED,
        [*story, *(snapshot(later(9_010 + i), jobs=again, metrics=[row(s)]) for i, s in enumerate((401, 530, 531)))],
    )

    assert [isinstance(each, Fail) for each in found[-3:]] == [True, True, False]


def test_a_crash_loop_is_found_whatever_each_life_died_of() -> None:
    """Field report R50: brief starts reset the counter, and the loop never reached its limit."""
    logs = (KEY_ERROR, SEGFAULT, LINK)
    story = [s for i in range(3) for s in life(i, first=i * 100, last=i * 100 + 1, log=logs[i], hours=0.2)]
    backwards = [s for i in range(3) for s in life(i, first=900 - i * 100, last=901 - i * 100, log=logs[i], hours=0.2)]

    assert "3 short lives in a row" in finding(REPEATED, *backwards).summary
    assert verdict(REPEATED, *story) == Pass()


def test_a_failure_without_a_known_step_still_counts() -> None:
    dead = [
        snapshot(later(i * 60), jobs=failed_job(1, submitted_at=later(i * 60 - 50)), log=KEY_ERROR) for i in range(2)
    ]

    assert "step unknown" in finding(REPEATED, *dead).summary


def test_a_second_failure_seen_half_blind_is_unknown_and_judged_when_the_readings_are_back() -> None:
    first, second = life(0, first=1, last=500), life(1, first=400, last=505, log=SEGFAULT)
    blinded = second[1].model_copy(update={"log": unknown(at=second[1].at), "metrics": unknown(at=second[1].at)})
    back = snapshot(second[1].at + timedelta(minutes=15), jobs=second[1].jobs.value, log=SEGFAULT, metrics=[row(505)])  # type: ignore[union-attr]

    found = verdicts(REPEATED, [*first, blinded, back])

    assert isinstance(found[-2], UnknownVerdict)
    assert isinstance(found[-1], Fail)


def test_steps_from_before_a_failure_that_are_read_late_forgive_nothing() -> None:
    first, second = life(0, first=1, last=500), life(1, first=650, last=690)
    dead = first[1].model_copy(update={"metrics": unknown(at=first[1].at)})
    back = first[1].model_copy(update={"metrics": snapshot(metrics=rows(501, 700)).metrics})

    assert isinstance(verdict(REPEATED, first[0], dead, back, *second), Fail)


def test_real_progress_forgives_also_a_failure_that_was_never_fully_read() -> None:
    first, second = life(0, first=1, last=500), life(1, first=400, last=900)
    dead = first[1].model_copy(update={"metrics": unknown(at=first[1].at)})

    assert verdict(REPEATED, first[0], dead, *second) == Pass()


def retried(*attempts: tuple[TaskState, float, float], error: str = KEY_ERROR) -> Iterator[Snapshot]:
    """Yield looks at one running job whose task is retried; each attempt is (state, first minute, last minute)."""
    yield snapshot(AT)
    numbers = count()
    past = tuple(
        attempt(n, state, exit_code=1, error=error, started_at=later(a), finished_at=later(b))
        for n, (state, a, b) in zip(numbers, attempts, strict=False)
    )
    now: datetime = later(attempts[-1][2] + 1)
    living = attempt(len(attempts), started_at=now)
    yield snapshot(now, jobs=job(tasks=(task(attempts=(*past, living)),)))


def test_retries_inside_a_job_that_keeps_running_are_counted() -> None:
    failed = TaskState.FAILED

    assert "the same failure 2 times" in finding(REPEATED, *retried((failed, 0, 40), (failed, 41, 90))).summary


def test_machines_that_were_taken_away_twice_are_no_repetition_unless_the_lives_are_short() -> None:
    lost = TaskState.PREEMPTED

    assert verdict(REPEATED, *retried((lost, 0, 40), (lost, 41, 90), error="preempted")) == Pass()
    assert isinstance(verdict(REPEATED, *retried((lost, 0, 9), (lost, 10, 19), (lost, 20, 29), error="x")), Fail)


def test_what_was_retried_before_hero_looked_is_not_counted() -> None:
    _, second = retried((TaskState.FAILED, 0, 40), (TaskState.FAILED, 41, 90))

    assert verdicts(REPEATED, [second, second]) == [Pass(), Pass()]


def test_progress_forgives_retries_though_the_job_still_lists_them() -> None:
    looks = [*retried((TaskState.FAILED, 0, 40), (TaskState.FAILED, 41, 90))]
    beyond = looks[1].model_copy(update={"metrics": snapshot(metrics=rows(1, 60)).metrics})

    assert isinstance(verdict(REPEATED, *looks), Fail)
    assert verdicts(REPEATED, [*looks, beyond, looks[1]])[-2:] == [Pass(), Pass()]


def test_an_end_whose_tasks_are_read_later_is_counted_once() -> None:
    blind_end = snapshot(jobs=job(JobState.FAILED, tasks=unknown(), finished_at=AT))

    assert verdict(REPEATED, snapshot(), blind_end, snapshot(later(15), jobs=failed_job(1), log=KEY_ERROR)) == Pass()


def test_a_job_that_somebody_stopped_is_no_failure() -> None:
    stopped = [snapshot(later(i * 60), jobs=job(JobState.KILLED, submitted_at=later(i * 60 - 50))) for i in range(3)]

    assert verdict(REPEATED, *stopped) == Pass()


def test_a_job_is_counted_once_however_often_it_is_looked_at() -> None:
    dead = failed_job(1)

    assert verdict(REPEATED, *(snapshot(later(i * 15), jobs=dead, log=KEY_ERROR) for i in range(5))) == Pass()


def test_the_ledger_is_bounded() -> None:
    book = Ledger(failures=tuple(Failure(job=str(i), attempt=0, signature=str(i), at=later(i)) for i in range(KEPT)))

    book = book.after(snapshot(later(99), jobs=failed_job(1, finished_at=later(99))), 50, 0.01)

    assert len(book.failures) == KEPT
    assert book.failures[-1].at == later(99)


def test_lives_of_unknown_length_are_not_called_short() -> None:
    lives = tuple(Failure(job=str(i), attempt=0, signature=str(i), at=later(i)) for i in range(5))

    assert pattern_in(lives, RepeatThresholds()) is None


# Two ledgers: a ceiling per cause, and a narrower one per cause and node


def lost(*nodes: str, state: TaskState = TaskState.WORKER_FAILED) -> Snapshot:
    """Return a look at a job that lost one machine after the other, each after 40 minutes, and runs on."""
    past = tuple(
        attempt(n, state, error="worker gone", node=node, started_at=later(50 * n), finished_at=later(50 * n + 40))
        for n, node in enumerate(nodes)
    )
    now = later(50 * len(nodes))
    return snapshot(now, jobs=job(tasks=(task(attempts=(*past, attempt(len(nodes), started_at=now))),)))


def test_the_same_node_lost_twice_is_named_and_to_be_taken_out() -> None:
    found = finding(REPEATED, snapshot(AT), lost("node-3", "node-7", "node-3"))

    assert "the same failure 2 times on node-3" in found.summary
    assert found.advice.startswith("Take node-3 out")
    assert len(found.evidence) == 2


@pytest.mark.parametrize(("nodes", "is_found"), [(3, False), (4, True)])
def test_machines_lost_on_different_nodes_have_the_wider_ceiling(nodes: int, is_found: bool) -> None:
    seen = lost(*(f"node-{n}" for n in range(nodes)))

    assert isinstance(verdict(REPEATED, snapshot(AT), seen), Fail) is is_found


def test_a_machine_that_was_taken_back_twice_is_not_to_blame() -> None:
    assert verdict(REPEATED, snapshot(AT), lost("node-3", "node-3", state=TaskState.PREEMPTED)) == Pass()


def test_a_bug_that_meets_the_run_on_one_node_is_not_blamed_on_it() -> None:
    found = finding(REPEATED, *life(0, first=1, last=500), *life(1, first=400, last=480))

    assert "node" not in found.summary
    assert not found.advice.startswith("Take")


def test_a_contract_may_move_each_ceiling() -> None:
    patient = contract(thresholds={"job.repeated": {"node": 3, "machine": 5}})

    assert verdict(REPEATED, snapshot(AT), lost("node-3", "node-3"), promised=patient) == Pass()
    assert "on node-3" in finding(REPEATED, snapshot(AT), lost(*["node-3"] * 3), promised=patient).summary


@settings(max_examples=60, deadline=None)
@given(nodes=st.lists(st.sampled_from(["a", "b", "c"]), min_size=2, max_size=6), data=st.data())
def test_observed_progress_between_failures_resets_both_ledgers_and_unknown_progress_neither(
    nodes: list[str], data: st.DataObject
) -> None:
    """Every look shows one more lost machine; between them the run is seen to move, is not seen, or stands."""
    between = data.draw(st.lists(st.sampled_from(["moved", "unknown", "still"]), min_size=len(nodes) - 1))
    story, step, since_progress = [snapshot(AT, metrics=[row(100)])], 100, [nodes[0]]
    for number in range(1, len(nodes) + 1):
        seen = lost(*nodes[:number])
        story.append(seen)
        if number == len(nodes):
            break
        match between[number - 1]:
            case "moved":
                step += 1_000
                since_progress = [nodes[number]]
                story.append(seen.model_copy(update={"metrics": snapshot(metrics=[row(step)]).metrics}))
            case "unknown":
                since_progress.append(nodes[number])
                story.append(seen.model_copy(update={"metrics": unknown(at=seen.at)}))
            case _:
                since_progress.append(nodes[number])

    last = verdict(REPEATED, *story)

    is_over = len(since_progress) >= 4 or since_progress.count(nodes[-1]) >= 2
    assert isinstance(last, Fail) is is_over


XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, GPU has fallen off the bus."
WATCHDOG = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE) ran for 600000 ms"


def gang(number: int, *, culprit: int | None, ended: Callable[[int], float]) -> Snapshot:
    """Return the end of a gang of four on nodes of its own launch: one rank's link breaks, the others time out."""
    began = START + timedelta(days=number)
    died = {rank: began + timedelta(hours=1, seconds=ended(rank)) for rank in range(4)}
    nodes = {rank: "node-bad" if rank == 2 else f"node-{number}{rank}" for rank in range(4)}
    tasks = tuple(
        task(r, TaskState.FAILED, exit_code=1, node=nodes[r], started_at=began, finished_at=died[r]) for r in range(4)
    )
    said = [] if culprit is None else [LogLine(text=XID, task=f"{JOB}/{culprit}", attempt=0)]
    said += [LogLine(text=f"[rank{r}] {WATCHDOG}", task=f"{JOB}/{r}", attempt=0) for r in range(4) if r != culprit]
    dead = job(JobState.FAILED, submitted_at=began, started_at=began, finished_at=max(died.values()), tasks=tasks)
    return snapshot(max(died.values()), jobs=dead, log=LogTail(lines=tuple(said), is_cut=False))


def test_a_cascade_of_time_outs_is_traced_to_the_rank_whose_link_broke_though_it_died_last() -> None:
    story = [gang(number, culprit=2, ended=lambda rank: 10.0 if rank == 2 else rank) for number in range(2)]

    found = finding(REPEATED, *story)

    assert "2 times on node-bad" in found.summary
    assert "collective_timeout" not in found.summary


def test_time_outs_whose_cause_is_not_known_blame_no_node() -> None:
    """The one that noticed first is a victim like the others."""
    story = [gang(number, culprit=None, ended=lambda rank: float(rank != 2)) for number in range(2)]

    found = finding(REPEATED, *story)

    assert "the same failure 2 times" in found.summary
    assert "node-bad" not in found.summary
    assert not found.advice.startswith("Take")


def test_a_bare_kill_is_no_memory_failure_however_often_it_comes() -> None:
    story = [
        *life(0, first=1, last=500, log="Killed", node="node-1"),
        *life(1, first=100, last=300, log="Killed", node="node-2"),
    ]

    found = finding(REPEATED, *story)

    assert "an end without a known cause 2 times" in found.summary
    assert "memory" not in f"{found.summary} {found.evidence} {found.advice}"
