"""The store against real SQLite files: what is accepted is kept, whoever writes at once and whatever breaks."""

import asyncio
import math
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.exc import StatementError

from bot.channels.ports import Ledger
from bot.errors import ConfigurationError, LeaseLostError, StoreError, StoreFullError
from bot.model.action import ActionState, StepName
from bot.model.audit import AuditEntry
from bot.model.conduct import Stage, Trial
from bot.model.delivery import Awaited, ChannelName, Later, Never, Posted, Sent
from bot.model.incident import Incident
from bot.model.plan import RequestState
from bot.model.record import Decision, Telling
from bot.model.run import Instance, Progress, Run, RunState
from bot.model.trialplan import RollbackPlan
from bot.model.value import CheckId, JobId, RunId
from bot.model.verdict import Finding, Severity
from bot.redaction import Redactor
from bot.store.leases import Lease
from bot.store.store import Store
from tests.fakes.clock import START, FakeClock
from tests.fakes.decisions import ANN, RUN, a_reply, a_request, a_telling, an_action
from tests.unit.actions.trial_world import a_trial_plan

SLACK = ChannelName.SLACK
SECRET = "xoxb-1234567890-abcdefghijklmnop"
OTHER = RunId("other-run")
TTL = timedelta(seconds=30)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hero.db"


@pytest.fixture
async def store(file: Path, clock: FakeClock) -> AsyncIterator[Store]:
    store = await open_store(file, clock)
    yield store
    await store.close()


async def open_store(file: Path, clock: FakeClock) -> Store:
    return await Store.open(f"sqlite:///{file}", clock, Redactor((SECRET,)), busy_timeout=timedelta(milliseconds=100))


async def apply(store: Store, decision: Decision, run_id: RunId | None = RUN) -> None:
    async with store.transaction() as tx:
        await tx.apply(decision, run_id, START)


def entry(detail: str, what: str = "request_asked") -> AuditEntry:
    return AuditEntry(at=START, run_id=RUN, who="ann", what=what, detail=detail)


async def keys(store: Store, channel: ChannelName = SLACK) -> list[str]:
    return [delivery.key for delivery in await store.due_deliveries(channel)]


# Writing at once


async def test_fifty_tasks_that_read_and_then_write_all_commit(store: Store) -> None:
    """Field report R28: a reader that becomes a writer fails at once with "database is locked"."""

    async def count_up() -> None:
        async with store.transaction() as tx:
            run = (await tx.record(RUN)).run
            await tx.apply(
                Decision(run=run.model_copy(update={"milestone_step": (run.milestone_step or 0) + 1})), RUN, START
            )
        assert await store.record(RUN) is not None

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        for _ in range(50):
            group.create_task(count_up())

    record = await store.record(RUN)
    assert record is not None
    assert record.run.milestone_step == 50


async def test_two_processes_write_to_one_file_in_turns(store: Store, file: Path, clock: FakeClock) -> None:
    second = await Store.open(f"sqlite:///{file}", clock, Redactor())

    async def write(which: Store, run_id: RunId) -> None:
        for step in range(20):
            async with which.transaction() as tx:
                await tx.apply(Decision(run=Run(run_id=run_id, milestone_step=step)), run_id, START)

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(write(second, OTHER))
        group.create_task(write(store, RUN))
    await second.close()

    assert [run.milestone_step for run in await store.runs()] == [19, 19]


async def test_an_approval_and_a_check_that_arrive_together_are_both_stored(store: Store) -> None:
    await apply(store, Decision(requests=(a_request(1),)))
    assert await store.receive("slack", "Ev1", a_reply("approve R1"))

    async def approve() -> None:
        (reply,) = await store.pending_inbox()
        async with store.transaction() as tx:
            granted = a_request(1).model_copy(update={"state": RequestState.GRANTED})
            assert await tx.redeem(1, granted)
            await tx.apply(Decision(actions=(an_action(1, granted),)), RUN, START)
            await tx.inbox_done(reply.number)

    async def check() -> None:
        async with store.transaction() as tx:
            run = (await tx.record(RUN)).run
            await tx.apply(Decision(run=run.model_copy(update={"state": RunState.FAILED})), RUN, START)

    async with asyncio.TaskGroup() as group:
        group.create_task(approve())
        group.create_task(check())

    record = await store.record(RUN)
    assert record is not None
    assert (record.run.state, record.requests[0].state) == (RunState.FAILED, RequestState.GRANTED)
    assert record.active_action == an_action(1, a_request(1))
    assert await store.pending_inbox() == ()


async def test_a_cancelled_transaction_stores_nothing_and_blocks_nobody(store: Store) -> None:
    inside = asyncio.Event()

    async def never_ends() -> None:
        async with store.transaction() as tx:
            await tx.apply(Decision(run=Run(run_id=RUN)), RUN, START)
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(never_ends())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await store.runs() == ()
    await apply(store, Decision(run=Run(run_id=OTHER)))
    assert [run.run_id for run in await store.runs()] == [OTHER]


async def test_a_write_cancelled_at_any_moment_is_stored_whole_or_not_at_all(store: Store) -> None:
    async def write(run_id: RunId) -> None:
        decision = Decision(run=Run(run_id=run_id), audit=(entry(run_id),), tell=(a_telling(run_id),))
        async with store.transaction() as tx:
            await tx.apply(decision, run_id, START)

    for turns in range(60):
        task = asyncio.create_task(write(RunId(f"run-{turns}")))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})

    await apply(store, Decision(run=Run(run_id=OTHER)))
    stored = {run.run_id for run in await store.runs()} - {OTHER}
    assert stored == {each.detail for each in await store.audit()}
    assert {f"{run_id}/slack" for run_id in stored} == {d.key for d in await store.due_deliveries(SLACK, limit=100)}


# Breaking


WRITER = """
import asyncio, sys
from bot.model.record import Decision, Telling
from bot.model.run import Run
from bot.redaction import Redactor
from bot.store.store import Store
from tests.fakes.clock import START, FakeClock
from tests.fakes.decisions import a_reply, a_telling

async def main():
    store = await Store.open(f"sqlite:///{sys.argv[1]}", FakeClock(), Redactor())
    await store.receive("slack", "Ev1", a_reply("status"))
    async with store.transaction() as tx:
        await tx.apply(Decision(run=Run(run_id="accepted"), tell=(a_telling("sent"),)), "accepted", START)
    (delivery,) = await store.due_deliveries("slack")
    await store.delivery_begun(delivery.number)
    async with store.transaction() as tx:
        await tx.apply(Decision(run=Run(run_id="half-done"), tell=(a_telling("half"),)), "half-done", START)
        await tx.inbox_done(1)
        print("inside", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_killed_process_leaves_what_it_accepted_and_nothing_half_done(file: Path, clock: FakeClock) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(file), stdout=asyncio.subprocess.PIPE, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"inside\n"
    process.send_signal(signal.SIGKILL)
    await process.wait()

    store = await open_store(file, clock)
    assert [run.run_id for run in await store.runs()] == ["accepted"]
    assert [event.event_id for event in await store.pending_inbox()] == ["Ev1"]
    (delivery,) = await store.due_deliveries(SLACK)
    assert (delivery.key, delivery.attempt, delivery.first_intent_at) == ("sent/slack", 1, START)
    await store.close()


async def test_a_full_disk_is_told_and_loses_nothing_that_was_accepted(store: Store) -> None:
    """Field report R29. A page limit makes SQLite answer as a full disk does."""
    await apply(store, Decision(run=Run(run_id=RUN)))
    limit_pages(store, 1)
    too_much = tuple(entry("x" * 10_000) for _ in range(20))

    with pytest.raises(StoreFullError, match="no space is left"):
        await apply(store, Decision(run=Run(run_id=OTHER), audit=too_much))
    assert "free some" in store.trouble
    with pytest.raises(StoreFullError):
        await store.receive("slack", "Ev1", a_reply("x" * 20_000))

    assert [run.run_id for run in await store.runs()] == [RUN]
    limit_pages(store, 1_000_000)
    assert await store.receive("slack", "Ev1", a_reply("x" * 20_000))
    assert store.trouble == ""


def limit_pages(store: Store, pages: int) -> None:
    """Let the file grow to so many pages and no further; 1 means not at all."""

    def limit(connection: sqlite3.Connection, _record: object, _proxy: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA max_page_count = {pages}")
        cursor.close()

    event.listen(store._engine.sync_engine, "checkout", limit)


async def test_nothing_of_a_transaction_is_stored_when_a_part_failed_and_its_caller_went_on(store: Store) -> None:
    limit_pages(store, 1)

    async def go_on_regardless() -> None:
        async with store.transaction() as tx:
            await tx.apply(Decision(run=Run(run_id=RUN)), RUN, START)
            with pytest.raises(StoreFullError):
                await tx.apply(Decision(audit=tuple(entry("x" * 10_000) for _ in range(20))), None, START)

    with pytest.raises(StoreError, match="its caller went on; nothing was stored"):
        await go_on_regardless()
    assert await store.runs() == ()


async def test_a_database_locked_by_another_program_is_named_with_the_fix(store: Store, file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreError, match=r"hero\.db: locked by another process; stop the other program"):
            await apply(store, Decision(run=Run(run_id=RUN)))
        assert await store.runs() == ()
        other.execute("ROLLBACK")

    await apply(store, Decision(run=Run(run_id=RUN)))
    assert store.trouble == ""


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_a_file_that_was_taken_away_under_hero_takes_nothing_more(
    store: Store, file: Path, clock: FakeClock, *, is_replaced: bool
) -> None:
    """SQLite would go on in the deleted file, and Hero would promise what no restart finds again."""
    await apply(store, Decision(run=Run(run_id=RUN)))
    aside = put_aside(file)
    if is_replaced:
        await (await open_store(file, clock)).close()

    gone = r"hero\.db: the database file was removed or replaced under Hero; stop Hero and put it back"
    for attempt in (
        store.receive("slack", "Ev1", a_reply("approve R1")),
        store.acquire_lease("bot", "hero", TTL),
        store.probe(),
        store.runs(),
    ):
        with pytest.raises(StoreError, match=gone):
            await attempt
    assert "was removed or replaced" in store.trouble
    assert {each.name for each in beside(file)} == ({"hero.db"} if is_replaced else set())

    for each in beside(aside):
        each.rename(file.parent / each.name)
    assert [run.run_id for run in await store.runs()] == [RUN]
    assert await store.receive("slack", "Ev1", a_reply("approve R1"))


def beside(file: Path) -> list[Path]:
    """The database and what SQLite keeps beside it."""
    return list(file.parent.glob(f"{file.name}*"))


def put_aside(file: Path) -> Path:
    """Move the database with all that belongs to it; return where it is."""
    folder = file.parent / "aside"
    folder.mkdir()
    for each in beside(file):
        each.rename(folder / each.name)
    return folder / file.name


async def test_a_file_that_goes_while_a_transaction_is_under_way_stores_nothing(store: Store, file: Path) -> None:
    aside: list[Path] = []

    async def lose_it_midway() -> None:
        async with store.transaction() as tx:
            await tx.apply(Decision(run=Run(run_id=RUN)), RUN, START)
            aside.append(put_aside(file))

    with pytest.raises(StoreError, match="was removed or replaced"):
        await lose_it_midway()

    for each in beside(*aside):
        each.rename(file.parent / each.name)
    assert await store.runs() == ()


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
async def test_a_log_that_was_taken_from_beside_the_database_takes_nothing_more_and_loses_nothing(
    store: Store, file: Path, clock: FakeClock, suffix: str
) -> None:
    """A second program would begin a log of its own, and each would overwrite what the other stored."""
    await apply(store, Decision(run=Run(run_id=RUN)))
    file.with_name(file.name + suffix).unlink()

    with pytest.raises(StoreError, match=rf"hero\.db{suffix}: was removed or replaced under Hero"):
        await store.receive("slack", "Ev1", a_reply("approve R1"))
    with pytest.raises(StoreError, match="stop Hero with SIGTERM"):
        await store.runs()
    await store.close()

    again = await open_store(file, clock)
    kept = await again.runs()
    await again.close()
    assert [run.run_id for run in kept] == [RUN]


async def test_connections_that_come_and_go_take_their_log_with_them_unnoticed(store: Store) -> None:
    await apply(store, Decision(run=Run(run_id=RUN)))

    await store._engine.dispose()

    assert [run.run_id for run in await store.runs()] == [RUN]


async def test_a_transaction_inside_a_transaction_is_refused_rather_than_waiting_for_itself(store: Store) -> None:
    with pytest.raises(AssertionError, match="wait for itself"):
        async with store.transaction():
            await store.receive("slack", "Ev1", a_reply("status"))


@pytest.mark.parametrize("url", ["postgresql://host/hero", "hero.db", "sqlite://host/hero.db"])
async def test_a_url_that_names_no_sqlite_file_is_refused_with_the_fix(url: str, clock: FakeClock) -> None:
    with pytest.raises(ConfigurationError, match=r"\[bot\] database: .* write it as sqlite:///PATH"):
        await Store.open(url, clock, Redactor())


async def test_a_missing_directory_is_named(tmp_path: Path, clock: FakeClock) -> None:
    with pytest.raises(ConfigurationError, match="away does not exist; create it"):
        await Store.open(f"sqlite:///{tmp_path}/away/hero.db", clock, Redactor())


def test_a_file_that_is_no_database_is_named(file: Path, clock: FakeClock) -> None:
    file.write_bytes(b"just some notes\n" * 100)

    with pytest.raises(StoreError, match="damaged or no SQLite database"):
        asyncio.run(open_store(file, clock))


async def test_a_store_without_a_file_leaves_none_behind(clock: FakeClock) -> None:
    store = await Store.open("sqlite://", clock, Redactor())
    await store.probe()
    scratch = store._scratch
    assert scratch is not None
    assert scratch.is_dir()

    await store.close()

    assert not scratch.exists()


# The inbox


async def test_an_event_that_comes_again_is_stored_once_also_after_a_restart(file: Path, clock: FakeClock) -> None:
    """Field report R02."""
    store = await open_store(file, clock)
    copies = [store.receive("slack", "Ev1", a_reply("status")) for _ in range(3)]
    assert sorted(await asyncio.gather(*copies)) == [False, False, True]
    await store.close()

    store = await open_store(file, clock)
    assert await store.receive("slack", "Ev1", a_reply("status")) is False
    assert await store.receive("github", "Ev1", a_reply("status")) is True
    async with store.transaction() as tx:
        await tx.inbox_done(1)
    assert await store.receive("slack", "Ev1", a_reply("status")) is False
    assert [event.source for event in await store.pending_inbox()] == ["github"]
    await store.close()


async def test_an_event_is_handled_once(store: Store) -> None:
    await store.receive("slack", "Ev1", a_reply("status"))
    async with store.transaction() as tx:
        await tx.inbox_done(1)

    async def handle_again() -> None:
        async with store.transaction() as tx:
            await tx.apply(Decision(run=Run(run_id=RUN)), RUN, START)
            await tx.inbox_done(1)

    with pytest.raises(StoreError, match="handled already"):
        await handle_again()

    assert await store.runs() == ()


async def test_a_failed_event_waits_for_its_retry_and_is_given_up_in_the_end(store: Store, clock: FakeClock) -> None:
    await store.receive("slack", "Ev1", a_reply("status"))
    async with store.transaction() as tx:
        await tx.inbox_failed(1, "broken", START + timedelta(seconds=10))

    assert await store.pending_inbox() == ()
    clock.advance(timedelta(seconds=10))
    (again,) = await store.pending_inbox()
    assert again.attempt == 1
    async with store.transaction() as tx:
        await tx.inbox_failed(1, "broken again", None)
    assert await store.pending_inbox() == ()
    assert (await store.counts())["inbox_given_up"] == 1


async def test_workers_are_woken_after_the_commit(store: Store) -> None:
    slack, github = store.outbox_filled.listen(), store.outbox_filled.listen()

    await store.receive("slack", "Ev1", a_reply("status"))
    async with store.transaction() as tx:
        await tx.apply(Decision(tell=(a_telling("a"),), actions=(an_action(1, a_request(1)),)), RUN, START)
        assert not slack.is_set()

    assert slack.is_set()
    assert store.inbox_arrived.is_set()
    assert store.actions_granted.is_set()
    slack.clear()
    assert github.is_set()


async def test_saving_an_action_again_wakes_nobody(store: Store) -> None:
    action = an_action(1, a_request(1))
    await apply(store, Decision(actions=(action,)))
    store.actions_granted.clear()

    async with store.transaction() as tx:
        await tx.save_action(action.begun(StepName.VERIFY, START))

    assert not store.actions_granted.is_set()
    assert await store.unfinished_actions() == (action.begun(StepName.VERIFY, START),)


# The outbox


async def test_the_most_severe_goes_first_and_within_it_the_oldest(store: Store) -> None:
    await apply(
        store,
        Decision(
            tell=(
                a_telling("status"),
                a_telling("failed", severity=Severity.CRITICAL),
                a_telling("asked", severity=Severity.CRITICAL, slot="request:1"),
                a_telling("warned", severity=Severity.WARNING),
            )
        ),
    )

    assert await keys(store) == ["failed/slack", "asked/slack", "warned/slack", "status/slack"]


async def test_messages_are_counted_by_channel_and_an_edit_or_the_live_status_is_none(
    store: Store, clock: FakeClock
) -> None:
    both = (SLACK, ChannelName.GITHUB)

    async def send(*tell: Telling) -> None:
        await apply(store, Decision(tell=tell))
        for channel in both:
            for delivery in await store.due_deliveries(channel):
                await store.delivery_begun(delivery.number)
                await store.delivery_ended(delivery.number, Sent(message_id="1"))

    await send(a_telling("days ago"))
    clock.advance(timedelta(days=3))
    await send(a_telling("failed", channels=both), a_telling("asked", slot="request:1"), a_telling("l1", slot="live"))
    await send(a_telling("answered", slot="request:1"), a_telling("l2", slot="live"), a_telling("of", run_id=OTHER))
    await apply(store, Decision(tell=(a_telling("not sent yet"),)))

    async with store.transaction() as tx:
        told = await tx.told(RUN, clock.now())

    assert told.day == {SLACK: 2, ChannelName.GITHUB: 1}
    assert told.week == {SLACK: 3, ChannelName.GITHUB: 1}


async def test_a_request_never_overtakes_the_failure_it_is_about(store: Store, clock: FakeClock) -> None:
    tell = (
        a_telling("failed", severity=Severity.CRITICAL),
        a_telling("asked", severity=Severity.CRITICAL, slot="request:1"),
        a_telling("elsewhere", run_id=OTHER),
    )
    await apply(store, Decision(tell=tell))
    failed, asked, _ = await store.due_deliveries(SLACK)
    await store.delivery_begun(failed.number)
    await store.delivery_ended(failed.number, Later(reason="429", after=timedelta(seconds=30)))

    assert await store.delivery_begun(asked.number) is None
    assert await keys(store) == ["elsewhere/slack"]
    clock.advance(timedelta(seconds=30))
    assert await keys(store) == ["failed/slack", "asked/slack", "elsewhere/slack"]


async def test_the_edits_of_one_message_keep_their_order_whatever_their_severity(store: Store) -> None:
    """The older one was begun, so it may have reached people and cannot be dropped."""
    await apply(store, Decision(tell=(a_telling("opened", slot="incident:1"),)))
    (opened,) = await store.due_deliveries(SLACK)
    await store.delivery_begun(opened.number)

    await apply(store, Decision(tell=(a_telling("worse", slot="incident:1", severity=Severity.CRITICAL),)))

    assert await keys(store) == ["opened/slack"]
    await store.delivery_ended(opened.number, Sent(message_id="C1:1.0"))
    assert await keys(store) == ["worse/slack"]


async def test_newer_content_for_a_message_takes_the_place_of_what_was_never_begun(store: Store) -> None:
    for hour in range(5):
        await apply(store, Decision(tell=(a_telling(f"live-{hour}", slot="live"),)))
    await apply(store, Decision(tell=(a_telling("other", slot="live", run_id=OTHER), a_telling("plain"))))

    assert await keys(store) == ["live-4/slack", "other/slack", "plain/slack"]
    assert await store.delivery_begun(1) is None


async def test_news_that_makes_older_news_untrue_drops_it_unless_it_was_begun(store: Store) -> None:
    """The graver one goes first: a doubt that came after its own end would be believed."""
    await apply(store, Decision(tell=(a_telling("doubt-1"), a_telling("doubt-2"), a_telling("else"))))
    begun = next(d for d in await store.due_deliveries(SLACK) if d.key == "doubt-1/slack")
    await store.delivery_begun(begun.number)

    end = a_telling("end", severity=Severity.CRITICAL, replaces=("doubt-1", "doubt-2"))
    await apply(store, Decision(tell=(end,)))

    assert await keys(store) == ["end/slack", "doubt-1/slack", "else/slack"]


async def test_the_same_news_makes_one_delivery_a_channel(store: Store) -> None:
    news = a_telling("failed", channels=(SLACK, ChannelName.GITHUB))

    await apply(store, Decision(tell=(news,)))
    await apply(store, Decision(tell=(news,)))

    assert await keys(store) == ["failed/slack"]
    assert await keys(store, ChannelName.GITHUB) == ["failed/github"]


async def test_a_send_is_counted_before_it_and_settled_after_it(store: Store, clock: FakeClock) -> None:
    await apply(store, Decision(tell=(a_telling("asked", slot="request:1"), a_telling("lost", run_id=OTHER))))

    first = await store.delivery_begun(1)
    await store.delivery_ended(1, Later(reason="timeout", is_uncertain=True), retry_after=timedelta(seconds=5))
    clock.advance(timedelta(seconds=5))
    second = await store.delivery_begun(1)
    await store.delivery_ended(1, Sent(message_id="C1:1.0", link="https://slack/p1"))
    await store.delivery_begun(2)
    await store.delivery_ended(2, Never(reason="channel_not_found", fix="invite Hero"))

    assert first is not None
    assert second is not None
    assert [(each.attempt, each.first_intent_at) for each in (first, second)] == [(0, START), (1, START)]
    posted = Posted(channel=SLACK, run_id=RUN, slot="request:1", message_id="C1:1.0", link="https://slack/p1")
    assert await store.posted(SLACK, RUN, "request:1") == posted
    assert await keys(store) == []
    assert (await store.counts())["deliveries_failed"] == 1


async def test_a_channel_finds_its_threads_and_cursors_again(store: Store) -> None:
    ledger: Ledger = store
    thread = Posted(channel=SLACK, run_id=RUN, slot="thread", message_id="C1:1.0")

    await ledger.save_posted(thread.model_copy(update={"message_id": "C1:0.5"}))
    await ledger.save_posted(thread)
    await ledger.save_posted(thread.model_copy(update={"slot": "live", "message_id": "C1:2.0"}))
    await ledger.save_cursor("slack/C1", "5.0")

    assert await ledger.threads(SLACK) == (thread,)
    assert await ledger.threads(ChannelName.GITHUB) == ()
    assert await ledger.cursor("slack/C1") == "5.0"
    assert await ledger.cursor("slack/C2") is None
    async with store.transaction() as tx:
        assert await tx.find_run_by_thread(SLACK, "C1:1.0") == RUN
        assert await tx.find_run_by_thread(SLACK, "C1:2.0") is None


async def test_a_conversation_is_over_when_its_run_ended_a_day_ago_and_nothing_is_asked(
    store: Store, clock: FakeClock
) -> None:
    states = {
        "done": Run(run_id=RunId("done"), state=RunState.COMPLETED, last_told_at=START),
        "runs": Run(run_id=RunId("runs"), state=RunState.RUNNING, last_told_at=START),
        "fresh": Run(run_id=RunId("fresh"), state=RunState.FAILED, last_told_at=START + timedelta(hours=20)),
    }
    for run in states.values():
        await apply(store, Decision(run=run), run.run_id)
    failed = Run(run_id=RUN, state=RunState.FAILED, last_told_at=START)
    await apply(store, Decision(run=failed, requests=(a_request(1),)))
    clock.advance(timedelta(hours=25))

    assert await store.awaited() == Awaited(asked=frozenset({RUN}), over=frozenset({RunId("done")}))


async def test_pruning_keeps_a_week_of_events_and_all_that_is_unfinished(store: Store, clock: FakeClock) -> None:
    for event_id in ("handled", "waiting"):
        await store.receive("slack", event_id, a_reply("status"))
    async with store.transaction() as tx:
        await tx.inbox_done(1)
        await tx.apply(Decision(tell=(a_telling("sent"), a_telling("due"))), RUN, START)
    await store.delivery_begun(1)
    await store.delivery_ended(1, Sent(message_id="C1:1.0"))

    clock.advance(timedelta(days=6))
    assert await store.prune(clock.now()) == 0
    clock.advance(timedelta(days=2))
    assert await store.prune(clock.now()) == 2

    assert [event.event_id for event in await store.pending_inbox()] == ["waiting"]
    assert await keys(store) == ["due/slack"]


# Records


async def test_what_was_decided_is_read_back_as_it_was(store: Store) -> None:
    run = Run(run_id=RUN, progress=Progress(loss=math.nan, tokens_per_second=math.inf, steps_per_s=-math.inf))
    instances = tuple(
        Instance(run_id=RUN, number=n, job_id=JobId(f"/ann/{n}"), submitted_at=START, launched_at=START)
        for n in range(60)
    )
    finding = Finding(check=CheckId("job.ended"), key="x", severity=Severity.CRITICAL, summary="Ended", advice="Ask")
    incidents = tuple(
        Incident(number=n, run_id=RUN, check=finding.check, key="x", finding=finding, opened_at=START) for n in (1, 2)
    )
    memories = {CheckId("loss.spike"): '{"window":[NaN]}'}

    await apply(
        store,
        Decision(run=run, instances=instances, incidents=incidents, requests=(a_request(7),), memories=memories),
    )

    record = await store.record(RUN)
    assert record is not None
    assert record.run.progress.loss is not None
    assert math.isnan(record.run.progress.loss)
    assert (record.run.progress.tokens_per_second, record.run.progress.steps_per_s) == (math.inf, -math.inf)
    assert record.instances == instances[10:]
    assert record.incidents == incidents
    assert record.open_request == a_request(7)
    assert record.open_request.digest == a_request(7).digest
    assert record.memories == memories
    assert (record.next_incident, record.next_request, record.next_action) == (3, 8, 1)
    assert await store.record(OTHER) is None


async def test_a_child_of_two_trials_is_the_living_ones_whichever_was_agreed_to_first(store: Store) -> None:
    def of(run_id: RunId, request: int, stage: Stage) -> Run:
        plan = a_trial_plan(run_id=run_id)
        trial = Trial(plan=plan, request=request, agreed_by=ANN, agreed_at=START, stage=stage)
        return Run(run_id=run_id, trial=trial)

    for run in (of(RUN, 3, Stage.RUNNING), of(OTHER, 8, Stage.CLOSED), of(RunId("third"), 5, Stage.CLOSED)):
        await apply(store, Decision(run=run), run.run_id)
    async with store.transaction() as tx:
        child = await tx.record(a_trial_plan().child_run_id)
    assert (child.trial_of, child.trial_stage) == (RUN, Stage.RUNNING)

    await apply(store, Decision(run=of(RUN, 3, Stage.CLOSED)))
    async with store.transaction() as tx:
        child = await tx.record(a_trial_plan().child_run_id)
    assert (child.trial_of, child.trial_stage) == (OTHER, Stage.CLOSED), "the latest of those that are over"


@pytest.mark.parametrize(("stage", "oldest"), [(Stage.NO_GO, 3), (Stage.CLOSED, 11)])
async def test_every_action_and_request_of_a_trial_under_way_stays_on_record(
    store: Store, stage: Stage, oldest: int
) -> None:
    trial = Trial(plan=a_trial_plan(run_id=RUN), request=3, agreed_by=ANN, agreed_at=START, stage=stage)
    numbers = range(1, 31)
    answered = tuple(a_request(n).model_copy(update={"state": RequestState.GRANTED}) for n in numbers)
    over = tuple(an_action(n, a_request(n)).model_copy(update={"state": ActionState.DONE}) for n in numbers)
    await apply(store, Decision(run=Run(run_id=RUN, trial=trial), requests=answered, actions=over))

    record = await store.record(RUN)

    assert record is not None
    assert [each.number for each in record.requests] == list(range(oldest, 31))
    assert [each.grant.request for each in record.actions] == list(range(oldest, 31))


async def test_the_rollbacks_of_its_trial_are_on_a_child_s_record(store: Store) -> None:
    """They are the old run's, and stop the child's job."""
    plan = a_trial_plan(run_id=RUN)
    trial = Trial(plan=plan, request=3, agreed_by=ANN, agreed_at=START, stage=Stage.NO_GO)
    back = RollbackPlan(run_id=RUN, trial=plan.digest, child_run_id=plan.child_run_id, stop=None, launch=None)
    asked = [a_request(number).model_copy(update={"state": RequestState.GRANTED}) for number in (2, 4, 5)]
    done = [an_action(each.number, each).model_copy(update={"state": ActionState.DONE}) for each in asked]
    rollbacks = [each.model_copy(update={"plan": back}) for each in done[:2]]
    await apply(store, Decision(run=Run(run_id=RUN, trial=trial), requests=tuple(asked), actions=(*rollbacks, done[2])))

    async with store.transaction() as tx:
        child = await tx.record(plan.child_run_id)

    assert child.rollbacks == (rollbacks[1],), "neither an earlier trial's nor what is no rollback"


async def test_a_number_is_never_given_twice(store: Store, file: Path) -> None:
    await apply(store, Decision(requests=(a_request(3), a_request(2))))
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("DELETE FROM requests")

    async with store.transaction() as tx:
        assert (await tx.record(OTHER)).next_request == 4


async def test_a_decision_on_an_old_record_is_refused(store: Store) -> None:
    await apply(store, Decision(requests=(a_request(1),)))
    with pytest.raises(StoreError, match="request R1 of other-run was changed or taken"):
        await apply(store, Decision(requests=(a_request(1, OTHER),)), OTHER)

    await apply(store, Decision(requests=(a_request(1).model_copy(update={"state": RequestState.DENIED}),)))
    with pytest.raises(StoreError, match="was changed or taken"):
        await apply(store, Decision(requests=(a_request(1),)))


async def test_a_request_that_is_redeemed_twice_at_once_is_granted_once(store: Store) -> None:
    """Field report R43."""
    await apply(store, Decision(requests=(a_request(1),)))
    granted = a_request(1).model_copy(update={"state": RequestState.GRANTED, "decided_by": ANN})

    async def redeem() -> bool:
        async with store.transaction() as tx:
            return await tx.redeem(1, granted)

    async with asyncio.TaskGroup() as group:
        tries = [group.create_task(redeem()) for _ in range(10)]

    assert sorted(each.result() for each in tries) == [False] * 9 + [True]
    async with store.transaction() as tx:
        assert await tx.find_request(1) == granted
        assert await tx.open_requests() == ()


async def test_a_yes_to_another_plan_redeems_nothing(store: Store) -> None:
    await apply(store, Decision(requests=(a_request(1),)))
    other_plan = a_request(1).plan.model_copy(update={"output_root": "gs://elsewhere"})

    async with store.transaction() as tx:
        assert not await tx.redeem(
            1, a_request(1).model_copy(update={"plan": other_plan, "state": RequestState.GRANTED})
        )


async def test_one_yes_is_never_carried_out_twice(store: Store) -> None:
    done = an_action(1, a_request(1)).model_copy(update={"state": ActionState.DONE})
    await apply(store, Decision(actions=(done,)))

    with pytest.raises(StoreError, match="refused"):
        await apply(store, Decision(actions=(an_action(2, a_request(1)),)))
    with pytest.raises(StoreError, match="was changed or taken"):
        await apply(store, Decision(actions=(an_action(1, a_request(1)),)))
    await apply(store, Decision(actions=(an_action(2, a_request(2)),)))
    with pytest.raises(StoreError, match="refused"):
        await apply(store, Decision(actions=(an_action(3, a_request(3)),)))


# Leases


async def test_an_old_holder_cannot_write_once_another_took_over(store: Store, clock: FakeClock) -> None:
    """Field report R30."""
    old = await taken(store, "old")
    assert await store.acquire_lease("runs", "new", TTL) is None
    clock.advance(TTL)
    new = await taken(store, "new")
    assert new.fence > old.fence

    with pytest.raises(LeaseLostError, match="taken by another Hero"):
        async with store.transaction(old) as tx:
            await tx.apply(Decision(run=Run(run_id=RUN)), RUN, START)
    with pytest.raises(LeaseLostError):
        await store.renew_lease(old, TTL)
    with pytest.raises(LeaseLostError):
        await store.delivery_begun(1, lease=old)
    await store.release_lease(old)

    async with store.transaction(new) as tx:
        await tx.apply(Decision(run=Run(run_id=OTHER)), OTHER, START)
    assert [run.run_id for run in await store.runs()] == [OTHER]


async def taken(store: Store, holder: str) -> Lease:
    lease = await store.acquire_lease("runs", holder, TTL)
    assert lease is not None
    return lease


async def test_a_lease_that_ran_out_untaken_goes_on_with_the_next_transaction(store: Store, clock: FakeClock) -> None:
    lease = await taken(store, "laptop")
    clock.advance(timedelta(hours=1))

    async with store.transaction(lease):
        pass

    assert await store.acquire_lease("runs", "other", TTL) is None


async def test_a_lease_that_is_renewed_or_released_says_so_to_others(store: Store, clock: FakeClock) -> None:
    lease = await taken(store, "one")
    clock.advance(TTL / 2)
    lease = await store.renew_lease(lease, TTL)
    clock.advance(TTL / 2)
    assert await store.acquire_lease("runs", "two", TTL) is None

    await store.release_lease(lease)

    assert await store.acquire_lease("runs", "two", TTL) is not None


# What is kept, and how


async def test_the_audit_can_be_read_and_added_to_and_nothing_else(store: Store, file: Path) -> None:
    await apply(store, Decision(audit=(entry("one"), entry("two"), entry("three"))))

    with closing(sqlite3.connect(file)) as other:
        for change in (
            "UPDATE audit SET who = 'nobody'",
            "DELETE FROM audit",
            "INSERT OR REPLACE INTO audit (number, at, who, what, detail) VALUES (1, '', 'nobody', '', '')",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                other.execute(change)

    assert await store.audit(RUN, limit=2) == (entry("two"), entry("three"))
    assert await store.audit(OTHER) == ()
    assert len(await store.audit()) == 3


async def test_a_secret_is_in_no_byte_of_the_database(store: Store, file: Path) -> None:
    text = f"the token is {SECRET}"
    finding = Finding(check=CheckId("job.ended"), severity=Severity.INFO, summary=text, evidence=(text,), advice=text)
    incident = Incident(number=1, run_id=RUN, check=finding.check, key="", finding=finding, opened_at=START)
    action = an_action(1, a_request(1)).model_copy(update={"noted": text})

    await store.receive("slack", "Ev1", a_reply(text))
    await apply(
        store,
        Decision(
            run=Run(run_id=RUN, gaps=(text,), blocked_reason=text),
            incidents=(incident,),
            requests=(a_request(1).model_copy(update={"note": text, "reason": text}),),
            actions=(action,),
            memories={CheckId("job.ended"): f'{{"seen": "{text}"}}'},
            tell=(a_telling("failed", headline=text),),
            audit=(entry(text),),
        ),
    )
    await store.delivery_begun(1)
    await store.delivery_ended(1, Later(reason=text))
    async with store.transaction() as tx:
        await tx.inbox_failed(1, text, None)

    written = b"".join(path.read_bytes() for path in file.parent.iterdir())
    assert b"the token is" in written
    assert SECRET.encode() not in written
    record = await store.record(RUN)
    assert record is not None
    assert record.incidents[0].finding.key == ""


async def test_a_time_without_a_zone_is_refused(store: Store) -> None:
    naive = datetime(2026, 11, 29, 3, 0)  # noqa: DTZ001 - the point of the test

    with pytest.raises(StatementError, match="has no time zone"):
        async with store.transaction() as tx:
            await tx.apply(Decision(tell=(a_telling("a"),)), RUN, naive)


async def test_times_come_back_aware_and_in_utc(store: Store) -> None:
    await store.receive("slack", "Ev1", a_reply("status"))

    (stored,) = await store.pending_inbox()

    assert stored.received_at == START
    assert stored.received_at.utcoffset() == timedelta()


async def test_what_is_promised_is_on_the_disk(store: Store) -> None:
    async with store._read() as connection:
        pragmas = [
            (await connection.exec_driver_sql(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]

    assert pragmas == ["wal", 2, 1]


async def test_only_our_own_user_can_read_what_people_wrote(store: Store, file: Path) -> None:
    await store.probe()

    assert {path.stat().st_mode & 0o077 for path in file.parent.iterdir()} == {0}
