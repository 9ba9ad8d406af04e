"""Whatever dies, lies, hangs or changes at any moment of a trial: never two coordinators, never a second fork."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot.model.action import ActionState, StepName
from bot.model.conduct import Stage
from bot.model.job import TaskState
from bot.model.planned import NoPlan
from tests.fakes.snapshots import JOB, RUN
from tests.unit.actions.trial_world import CHILD, CHILD_JOB, HANDOFF, Bench, child_contract
from tests.unit.actions.world import Killed


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Draw no tracebacks: that costs more than the tests."""
    with capture_logs():
        yield


async def live_on(bench: Bench, *, lives: int = 200) -> None:
    """Let one Hero after the other carry the action on, until it is over."""
    while bench.state() is ActionState.GRANTED and lives:
        lives -= 1
        with suppress(Killed):
            await bench.work(polls=2000)
        bench.a_new_one()


async def a_bench(kind: str) -> Bench:
    """Return a world with a granted action of that kind, of which nothing is begun."""
    bench = Bench()
    if kind == "rollback":
        await bench.after_cutover()
        await bench.grant_rollback()
    else:
        await bench.grant_cutover()
    bench.knife.moments.clear()
    return bench


@pytest.mark.parametrize(
    ("kind", "submissions", "live"), [("cutover", [CHILD], CHILD_JOB), ("rollback", [CHILD, RUN], JOB)]
)
async def test_a_hero_killed_at_any_moment_has_done_each_thing_once_in_the_end(
    kind: str, submissions: list[str], live: str
) -> None:
    """Law 3, at every boundary: each commit, each question, each change, before and after it."""
    whole = await a_bench(kind)
    await whole.work()
    moments = list(whole.knife.moments)
    assert len(moments) > 50

    for place, name in enumerate(moments):
        bench = await a_bench(kind)
        bench.knife.at = place
        with pytest.raises(BaseExceptionGroup) as death:
            await bench.work()
        assert death.group_contains(Killed)
        bench.knife.at = None
        bench.a_new_one()
        await live_on(bench)

        where = f"killed at {place}, {name}"
        assert bench.state() is ActionState.DONE, (where, bench.action.noted)
        assert bench.world.submissions == submissions, where
        assert bench.world.forks == 1, where
        assert bench.world.live() == [live], where
        assert bench.world.wrongs == [], where


async def test_a_hero_killed_over_and_over_gets_there() -> None:
    bench = await a_bench("cutover")
    deaths = 0

    def die(moment: str) -> str:
        nonlocal deaths
        if len(bench.knife.moments) % 13 == 12 and deaths < 60:
            bench.knife.moments.append("died")
            deaths += 1
            raise Killed(moment)
        bench.knife.moments.append(moment)
        return ""

    bench._touch = die
    await live_on(bench)

    assert deaths > 5
    assert bench.state() is ActionState.DONE, bench.action.noted
    assert (bench.world.forks, bench.world.submissions, bench.world.wrongs) == (1, [CHILD], [])


CHANGES = ("the fork", "the stop", "the submission")
MOMENTS = (
    *(f"before {what}" for what in CHANGES),
    *(f"after {what}" for what in CHANGES),
    *("read jobs", "read tracker", "read checkpoints", "read neighbours", "read log", "read metrics"),
    *("before a commit", "after a commit"),
)
FAULTS = ("dark", "kill", "lost", "cut", "late", "sleep", "handoff", "contract", "retry", "crash", "stall")
"""What may go wrong at one moment. Some mean something at a question, some at a change, some anywhere."""

UNDONE_AFTER = timedelta(minutes=20)
"""So long after the child's contract was edited somebody takes that back: before, nobody can say where its job is."""

type Faults = dict[tuple[str, int], str]
"""What goes wrong, by the moment's name and how often that was passed."""

faults_at_changes = st.tuples(st.sampled_from(MOMENTS[:6]), st.integers(1, 3))
faults_anywhere = st.tuples(st.sampled_from(MOMENTS[6:]), st.integers(1, 40))
some_faults = st.dictionaries(st.one_of(faults_at_changes, faults_anywhere), st.sampled_from(FAULTS), max_size=8)


class Fate:
    """Lets the faults come at their moments."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.passed: Counter[str] = Counter()
        self.bench: Bench | None = None
        """None while nothing goes wrong."""

    def __call__(self, moment: str) -> str:
        bench = self.bench
        if bench is None:
            return ""
        self.passed[moment] += 1
        fault = self.faults.get((moment, self.passed[moment]), "")
        world = bench.world
        match fault:
            case "kill":
                raise Killed(moment)
            case "sleep":
                bench.clock.advance(timedelta(hours=1))
            case "handoff":
                world.saved[RUN] = tuple(each for each in world.saved[RUN] if each != HANDOFF)
            case "contract":
                world.contracts[CHILD] = child_contract(source_sha="e" * 40)
                world.undone.append((bench.clock.monotonic() + UNDONE_AFTER.total_seconds(), child_contract()))
            case "retry" if CHILD_JOB in world.live():
                world.retry(TaskState.FAILED)
            case "crash" if CHILD_JOB in world.live():
                world.end(CHILD_JOB)
            case "stall":
                world.steps[CHILD] = ()
            case _:
                pass
        return fault


async def live_through(faults: Faults) -> Bench:
    """Conduct a whole trial under these faults: the cut-over and, unless the child trains, the way back."""
    fate = Fate(faults)
    bench = Bench(fate)
    await bench.grant_cutover()
    fate.bench = bench
    await live_on(bench)
    assert bench.state() is not ActionState.GRANTED, bench.action
    assert bench.world.wrongs == []
    if JOB in bench.world.live():
        assert bench.world.submissions == []
        return bench
    bench.at_stage(Stage.NO_GO)
    for _ in range(20):
        bench.world.contracts[CHILD] = child_contract()
        fate.bench = None  # what is read to ask is read again and again
        promised = bench.world.contracts[RUN]
        plan = await bench.planner.plan(promised, bench.store.records[RUN])  # type: ignore[arg-type]
        assert not isinstance(plan, NoPlan), plan
        bench.grant(plan)
        fate.bench = bench
        await live_on(bench)
        assert bench.state() is not ActionState.GRANTED, bench.action
        assert bench.world.wrongs == []
        if bench.state() is ActionState.DONE or JOB in bench.world.live():
            return bench
    raise AssertionError(bench.action.noted)


def assert_in_order(bench: Bench) -> None:
    """Assert what has to be so however a trial went."""
    world = bench.world
    assert world.wrongs == []
    assert world.forks <= 1
    assert len(world.live()) == 1, "in the end the one or the other trains"
    assert set(world.stops) <= {JOB, CHILD_JOB}
    for action in bench.store.records[RUN].actions:
        assert action.tries.get(StepName.FORK, 0) <= 2
        assert action.submits <= 2


@pytest.mark.parametrize("moment", MOMENTS[:6])
async def test_no_fault_at_a_change_makes_two_of_anything(moment: str) -> None:
    for fault in FAULTS:
        for nth in (1, 2):
            assert_in_order(await live_through({(moment, nth): fault}))


@settings(max_examples=100, deadline=None)
@given(some_faults)
def test_no_sequence_of_failures_makes_two_coordinators_a_second_fork_or_a_change_that_nobody_granted(
    faults: Faults,
) -> None:
    assert_in_order(asyncio.run(live_through(faults)))


def test_the_faults_are_met() -> None:
    """The property above has something to say: each of these ends a cut-over, and the way back is found."""
    for fault, noted in (("retry", "retry of"), ("crash", "ended"), ("stall", "the start-up hangs")):
        bench = asyncio.run(live_through({("after the submission", 1): fault}))
        first = bench.store.records[RUN].actions[0]
        assert first.state is ActionState.FAILED
        assert noted in first.noted
        assert bench.world.live() == [JOB]
