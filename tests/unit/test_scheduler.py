"""When runs are due: on time, one at a time, and neither flooded nor silenced by a clock that jumps."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot.clock import SystemClock
from bot.errors import LeaseLostError
from bot.model.record import Record
from bot.model.run import Run
from bot.model.value import RunId
from bot.scheduler import GUARD_EVERY, GUARD_GRACE, Scheduler, pause_until_next
from tests.fakes.clock import FakeClock
from tests.fakes.snapshots import AT, RUN, contract, instance, later
from tests.fakes.waiting import until

FAR = datetime(2126, 1, 1, tzinfo=UTC)
"""So late that APScheduler's own timer, which reads the machine's clock, stays out of these tests: what the guardian
does alone must be enough, since the timer is what may fail."""
CADENCE = timedelta(minutes=15)
OTHER = RunId("other-run")


class Checks:
    """Counts checks, and holds them up where a test says so."""

    def __init__(self, pause: timedelta = CADENCE) -> None:
        self.pause = pause
        self.begun: list[RunId] = []
        self.ended = 0
        self.at_once = 0
        self.most_at_once = 0
        self.hold = asyncio.Event()
        self.hold.set()
        self.error: BaseException | None = None

    async def __call__(self, run_id: RunId) -> timedelta:
        self.begun.append(run_id)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.hold.wait()
            if self.error is not None:
                raise self.error
        finally:
            self.at_once -= 1
            self.ended += 1
        return self.pause


@asynccontextmanager
async def scheduling(
    check: Callable[[RunId], Awaitable[timedelta]], clock: FakeClock | SystemClock, jitter: timedelta = timedelta()
) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(check, clock, jitter=jitter)
    running = asyncio.create_task(scheduler.run())
    await asyncio.sleep(0)
    yield scheduler
    running.cancel()
    await asyncio.wait((running,))


async def settle() -> None:
    """Let everything that can go on do so."""
    for _ in range(20):
        await asyncio.sleep(0)


async def tick(clock: FakeClock, delta: timedelta) -> None:
    """Let time pass, and the guardian look once."""
    clock.advance(delta)
    await settle()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Draw no tracebacks: that costs more than the tests."""
    with capture_logs():
        yield


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(FAR)


async def test_a_run_is_checked_at_once_when_it_is_watched_and_then_at_its_cadence(clock: FakeClock) -> None:
    checks = Checks()
    async with scheduling(checks, clock) as scheduler:
        scheduler.watch(RUN)
        scheduler.watch(RUN)
        await settle()
        assert checks.begun == [RUN]

        await tick(clock, CADENCE - timedelta(seconds=1))
        assert checks.begun == [RUN]
        await tick(clock, GUARD_GRACE + GUARD_EVERY)

        assert checks.begun == [RUN, RUN]
        assert scheduler.watched == {RUN}


async def test_a_late_check_runs_once_however_late_and_misses_are_merged(clock: FakeClock) -> None:
    """Field report R16: a host asleep for hours over a dozen cadences."""
    checks = Checks()
    async with scheduling(checks, clock) as scheduler:
        scheduler.watch(RUN)
        await settle()

        await tick(clock, timedelta(hours=6))
        await tick(clock, GUARD_EVERY)
        await tick(clock, GUARD_EVERY)

        assert checks.begun == [RUN, RUN]


async def test_a_suspended_machine_is_noticed_though_its_monotonic_clock_stood_still(clock: FakeClock) -> None:
    checks = Checks()
    async with scheduling(checks, clock) as scheduler:
        scheduler.watch(RUN)
        await settle()

        clock.jump(timedelta(hours=8))
        await tick(clock, GUARD_EVERY)

        assert checks.begun == [RUN, RUN]


@pytest.mark.parametrize("jump", [timedelta(hours=3), timedelta(days=400)])
async def test_a_wall_clock_that_jumps_forward_costs_one_early_check(clock: FakeClock, jump: timedelta) -> None:
    checks = Checks()
    async with scheduling(checks, clock) as scheduler:
        scheduler.watch(RUN)
        await settle()

        clock.jump(jump)
        for _ in range(10):
            await tick(clock, GUARD_EVERY)

        assert checks.begun == [RUN, RUN]


@pytest.mark.parametrize("jump", [timedelta(hours=-3), timedelta(days=-400)])
async def test_a_wall_clock_that_jumps_backward_silences_nothing(clock: FakeClock, jump: timedelta) -> None:
    checks = Checks()
    async with scheduling(checks, clock) as scheduler:
        scheduler.watch(RUN)
        await settle()
        clock.jump(jump)

        for count in (2, 3):
            await tick(clock, CADENCE)
            await tick(clock, GUARD_GRACE + GUARD_EVERY)
            assert len(checks.begun) == count


@given(st.lists(st.tuples(st.integers(-7_200, 7_200), st.integers(1, 1_200)), min_size=1, max_size=15))
def test_whatever_the_clocks_do_checks_neither_pile_up_nor_stay_away(moves: list[tuple[int, int]]) -> None:
    async def live() -> None:
        clock, checks = FakeClock(FAR), Checks()
        async with scheduling(checks, clock) as scheduler:
            scheduler.watch(RUN)
            await settle()
            for jump_s, pass_s in moves:
                before = len(checks.begun)
                clock.jump(timedelta(seconds=jump_s))
                await tick(clock, timedelta(seconds=pass_s))
                assert len(checks.begun) <= before + 1
            before = len(checks.begun)
            await tick(clock, CADENCE + GUARD_GRACE + GUARD_EVERY)
            assert len(checks.begun) == before + 1
            assert checks.most_at_once == 1

    asyncio.run(live())


async def test_a_run_is_never_checked_twice_at_once(clock: FakeClock) -> None:
    checks = Checks()
    checks.hold.clear()
    async with scheduling(checks, clock) as scheduler:
        scheduler.watch(RUN)
        await settle()

        for _ in range(5):
            scheduler.check_soon(RUN)
            scheduler.watch(RUN)
            await tick(clock, CADENCE)
        assert checks.begun == [RUN]
        assert scheduler.overdue() == ()
        checks.hold.set()
        await settle()

        assert checks.begun == [RUN, RUN], "asked for while it was checked: once more right after, however often"
        assert checks.most_at_once == 1


async def test_one_run_that_hangs_holds_up_no_other(clock: FakeClock) -> None:
    """Field report R17: a call that never returned kept the only instance busy for ever."""
    begun: list[RunId] = []

    async def check(run_id: RunId) -> timedelta:
        begun.append(run_id)
        if run_id == RUN:
            await asyncio.Event().wait()
        return CADENCE

    async with scheduling(check, clock) as scheduler:
        scheduler.watch(RUN)
        scheduler.watch(OTHER)
        await settle()
        await tick(clock, CADENCE + GUARD_GRACE + GUARD_EVERY)

        assert begun == [RUN, OTHER, OTHER]


async def test_a_check_cut_off_at_its_limit_is_due_again(clock: FakeClock) -> None:
    checks = Checks()
    checks.error = TimeoutError()
    async with scheduling(checks, clock) as scheduler:
        scheduler.watch(RUN)
        await settle()
        assert scheduler.due_at(RUN) == clock.now() + timedelta(minutes=1)

        await tick(clock, timedelta(minutes=1) + GUARD_GRACE + GUARD_EVERY)

        assert checks.begun == [RUN, RUN]


async def test_a_check_that_raises_is_planned_again_and_takes_nothing_down(clock: FakeClock) -> None:
    checks = Checks()
    async with scheduling(checks, clock) as scheduler:
        scheduler.watch(RUN)
        scheduler.watch(OTHER)
        checks.error = ValueError("our bug")
        await settle()
        checks.error = None

        await tick(clock, timedelta(minutes=1) + GUARD_GRACE + GUARD_EVERY)

        assert sorted(checks.begun) == sorted([RUN, OTHER] * 2)


async def test_a_lost_lease_ends_the_scheduler(clock: FakeClock) -> None:
    checks = Checks()
    checks.error = LeaseLostError("another Hero took over")
    scheduler = Scheduler(checks, clock, jitter=timedelta())
    scheduler.watch(RUN)

    with pytest.raises(BaseExceptionGroup) as lost:
        await scheduler.run()

    assert lost.group_contains(LeaseLostError)


async def test_a_run_asked_for_is_checked_now_and_then_at_its_cadence_again(clock: FakeClock) -> None:
    checks = Checks()
    async with scheduling(checks, clock) as scheduler:
        scheduler.watch(RUN)
        await settle()
        await tick(clock, timedelta(minutes=5))

        scheduler.check_soon(RUN)
        await settle()

        assert checks.begun == [RUN, RUN]
        assert scheduler.due_at(RUN) == clock.now() + CADENCE


async def test_a_run_that_is_late_shows_as_such(clock: FakeClock) -> None:
    scheduler = Scheduler(Checks(), clock, jitter=timedelta())
    scheduler.watch(RUN)
    assert scheduler.overdue() == ()

    clock.advance(GUARD_GRACE + timedelta(seconds=1))

    assert scheduler.overdue() == (RUN,)


async def test_the_timer_itself_makes_a_run_due_on_the_loop_and_long_before_the_guardian() -> None:
    """APScheduler calls plain functions in a thread; a queue filled there wakes nobody up."""
    threads: set[int] = set()
    done = asyncio.Event()

    async def check(_run_id: RunId) -> timedelta:
        if threads:
            done.set()
        threads.add(threading.get_ident())
        return timedelta(milliseconds=20)

    asyncio.get_running_loop().set_debug(True)  # complains of calls from another thread
    async with scheduling(check, SystemClock()) as scheduler:
        scheduler.watch(RUN)
        async with asyncio.timeout(GUARD_EVERY.total_seconds() / 2):
            await done.wait()

    assert threads == {threading.get_ident()}


@pytest.mark.parametrize("jitter_s", [0, 15, 600])
async def test_jitter_only_delays_and_by_a_tenth_at_most(clock: FakeClock, jitter_s: int) -> None:
    checks = Checks()
    most = min(timedelta(seconds=jitter_s), CADENCE / 10)
    async with scheduling(checks, clock, timedelta(seconds=jitter_s)) as scheduler:
        for number in range(50):
            scheduler.watch(RunId(f"run-{number}"))
        await until(lambda: checks.ended == 50)
        await settle()

        late = [scheduler.due_at(RunId(f"run-{n}")) for n in range(50)]
        spread = [at - clock.now() - CADENCE for at in late if at is not None]

    assert len(spread) == 50
    assert all(timedelta() <= each <= most for each in spread)
    assert len(set(spread)) > 1 or jitter_s == 0


# Cadences


def at_work(minutes_ago: float, ended_at: datetime | None = None) -> Record:
    launch = instance(launched_at=later(-minutes_ago), ended_at=ended_at)
    return Record(run=Run(run_id=RUN), instances=(launch,))


@pytest.mark.parametrize(
    ("known", "kind", "pause"),
    [
        (None, "production", CADENCE),
        (at_work(60), "production", CADENCE),
        (at_work(60), "diagnostic", timedelta(seconds=570)),
        (None, "diagnostic", timedelta(seconds=570)),
        (at_work(0), "production", timedelta(seconds=120)),
        (at_work(0), "diagnostic", timedelta(seconds=120)),
        (at_work(1.5), "production", timedelta(seconds=30)),
        (at_work(2), "production", CADENCE),
        (at_work(1, ended_at=AT), "production", CADENCE),
    ],
)
def test_the_pause_after_a_check_is_the_procedures(known: Record | None, kind: str, pause: timedelta) -> None:
    assert pause_until_next(known, contract(kind=kind, cadence={}), CADENCE, AT) == pause


def test_a_contracts_own_cadences_count() -> None:
    own = contract(kind="diagnostic", cadence={"after_submit": "60s", "steady": "5m"})

    assert pause_until_next(at_work(0), own, CADENCE, AT) == timedelta(seconds=60)
    assert pause_until_next(at_work(60), own, CADENCE, AT) == timedelta(minutes=5)
    checked = contract(kind="diagnostic", cadence={"check": "3m"})
    assert pause_until_next(at_work(60), checked, timedelta(minutes=3), AT) == timedelta(minutes=3)


def test_a_clock_that_jumped_back_below_the_launch_makes_no_long_pause() -> None:
    assert pause_until_next(at_work(-600), contract(kind="production"), CADENCE, AT) == CADENCE
