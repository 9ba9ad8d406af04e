"""The W&B source through the real SDK against a local server: what it makes of the service's habits and faults."""

import math
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.clock import Clock, SystemClock
from bot.commands.service_probes import probe_wandb
from bot.model.contract import Contract
from bot.model.job import Job
from bot.model.launched import LaunchedConfig
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.snapshot import LogTail, Metrics
from bot.model.tracker import ForkPoint, TrackerRunState, TrackerState
from bot.redaction import Redactor
from bot.settings import WandbSettings
from bot.sources.config.source import ConfigReader
from bot.sources.iris.program import child_environment
from bot.sources.wandb.source import WandbMetrics, WandbSource
from tests.fakes import snapshots
from tests.fakes.waiting import until
from tests.fakes.wandb import STARTED, FakeWandb, fresh_sdk

DEADLINE = timedelta(seconds=3)
"""The SDK takes its time limit once in a process, so it is one for all tests here."""
NAME = "hero-12d8b6f0"
NO_LOG: Reading[LogTail] = Known(value=LogTail(lines=(), is_cut=False), at=STARTED)
NO_JOBS = Unknown(reason=Gap.NOT_CONFIGURED, detail="no orchestrator", at=STARTED)


@pytest.fixture(scope="module", autouse=True)
def helper_process() -> Iterator[None]:
    with fresh_sdk():
        yield


@pytest.fixture
def wb() -> Iterator[FakeWandb]:
    with FakeWandb() as server:
        yield server


@pytest.fixture
def source(wb: FakeWandb) -> WandbSource:
    return source_of(wb)


def source_of(wb: FakeWandb, clock: Clock | None = None, **fields: Any) -> WandbSource:
    given: dict[str, Any] = {"entity": wb.entity, "project": "hero", "base_url": wb.url, "api_key": wb.key}
    return WandbSource(WandbSettings.model_validate(given | {"deadline": DEADLINE} | fields), clock or SystemClock())


def contract(**tracker: Any) -> Contract:
    return snapshots.contract(
        tracker={"mode": "online", "id": "abc123"} | tracker,
        metrics={"step": "global_step", "loss": "train/loss", "grad_norm": "grad_norm/total"},
    )


async def metrics(
    source: WandbSource, cursor: str = "", *, since: datetime | None = None, of: Contract | None = None
) -> Reading[Metrics]:
    asked = WandbMetrics(source)
    return await asked.metrics(of or contract(), since=since, cursor=cursor, log=NO_LOG, jobs=NO_JOBS)


async def known(source: WandbSource, cursor: str = "", **given: Any) -> Metrics:
    reading = await metrics(source, cursor, **given)
    assert isinstance(reading, Known), reading
    return reading.value


async def state(source: WandbSource, of: Contract | None = None) -> TrackerState:
    reading = await source.tracker(of or contract())
    assert isinstance(reading, Known), reading
    return reading.value


def steps(found: Metrics) -> list[int]:
    return [row.step for row in found.rows]


# identity


async def test_the_state_tells_who_the_run_is_and_nothing_else_of_its_config(
    wb: FakeWandb, source: WandbSource
) -> None:
    run = wb.run("hero", "abc123", NAME, config={"iris_job_id": "/me/hero", "aws_secret": "hunter2"})
    run.heartbeat_at = "2026-11-29T04:00:00"  # the service sends it with and without Z
    wb.log(run, {"train/loss": math.nan, "global_step": 70, "password": 7})

    found = await state(source)

    assert (found.entity, found.project, found.id, found.name) == ("acme", "hero", "abc123", NAME)
    assert found.state is TrackerRunState.RUNNING
    assert found.heartbeat_at == datetime(2026, 11, 29, 4, tzinfo=UTC)
    assert found.created_at == STARTED
    assert (found.last_step, found.trainer_step, found.last_row_at) == (0, 70, STARTED)
    assert math.isnan(found.summary["loss"])
    assert found.execution == "/me/hero"
    assert found.url == f"{wb.url}/acme/hero/runs/abc123"
    assert "hunter2" not in found.model_dump_json()
    assert "password" not in found.model_dump_json()


async def test_every_look_is_fresh(wb: FakeWandb, source: WandbSource) -> None:
    run = wb.run("hero", "abc123")
    first = await state(source)
    run.state, run.display_name = "crashed", "renamed"

    second = await state(source)

    assert (first.state, second.state, second.name) == (TrackerRunState.RUNNING, TrackerRunState.CRASHED, "renamed")


async def test_others_with_the_same_display_name_are_told(wb: FakeWandb, source: WandbSource) -> None:
    wb.run("hero", "abc123", NAME)
    wb.run("hero", "older", NAME, state="failed")
    wb.run("hero", "other", "another name")
    wb.run("elsewhere", "far", NAME)

    assert (await state(source)).namesakes == ("older",)


async def test_a_name_that_one_run_has_finds_it_and_one_that_several_have_is_refused(
    wb: FakeWandb, source: WandbSource
) -> None:
    wb.run("hero", "abc123", NAME)
    by_name = contract(id=None, name=NAME)
    assert (await state(source, by_name)).id == "abc123"

    wb.run("hero", "def456", NAME)
    reading = await source.tracker(by_name)

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.REFUSED
    assert "abc123, def456" in reading.detail


@pytest.mark.parametrize("of", [contract(id="gone"), contract(project="nowhere"), contract(id=None, name="nobody")])
async def test_a_run_that_is_not_there_is_a_positive_answer(wb: FakeWandb, source: WandbSource, of: Contract) -> None:
    wb.run("hero", "abc123")

    assert (await state(source, of)).state is TrackerRunState.MISSING
    assert (await known(source, of=of)).rows == ()


async def test_a_run_that_vanished_is_not_an_empty_history(wb: FakeWandb, source: WandbSource) -> None:
    wb.log_steps(wb.run("hero", "abc123"), range(3))
    cursor = (await known(source)).cursor
    wb.delete("hero", "abc123")

    reading = await metrics(source, cursor)

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.UNRECOGNISED


async def test_a_state_from_the_future_is_unrecognised(wb: FakeWandb, source: WandbSource) -> None:
    wb.run("hero", "abc123", state="hibernating")

    reading = await source.tracker(contract())

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.UNRECOGNISED
    assert "hibernating" in reading.detail


# rows


async def test_rows_are_handed_out_once_under_the_trainers_own_step(wb: FakeWandb, source: WandbSource) -> None:
    run = wb.run("hero", "abc123")
    for n in range(5):
        wb.log(run, {"train/loss": 2.0 - n / 10, "global_step": 100 + 10 * n})

    first = await known(source)
    second = await known(source, first.cursor)
    wb.log(run, {"train/loss": 1.0, "global_step": 150})
    third = await known(source, second.cursor)

    assert steps(first) == [100, 110, 120, 130, 140]
    assert first.rows[0].values == {"loss": 2.0}
    assert first.rows[1].at == STARTED + timedelta(seconds=10)
    assert (steps(second), steps(third)) == ([], [150])


async def test_every_spelling_of_not_a_number_arrives(wb: FakeWandb, source: WandbSource) -> None:
    """Field report R21."""
    run = wb.run("hero", "abc123")
    given: list[Any] = [math.nan, math.inf, -math.inf, None, "NaN", "Infinity"]
    for n, loss in enumerate(given):
        wb.log(run, {"train/loss": loss, "global_step": n})

    found = await known(source)

    assert [str(row.values["loss"]) for row in found.rows] == ["nan", "inf", "-inf", "nan", "nan", "inf"]
    assert found.unreadable == 0


async def test_a_single_nan_in_a_long_history_is_found_and_the_tail_alone_is_read(
    wb: FakeWandb, source: WandbSource
) -> None:
    """Field report R20: a sample of some 500 rows would miss it."""
    run = wb.run("hero", "abc123")
    wb.log_steps(run, range(9000))
    cursor = (await known(source)).cursor
    wb.log_steps(run, range(9000, 12000))
    run.rows[10_321]["train/loss"] = math.nan
    asked = len(wb.queries)

    found = await known(source, cursor)

    assert steps(found) == list(range(9000, 12000))
    assert [row.step for row in found.rows if math.isnan(row.values["loss"])] == [10_321]
    assert wb.queries[asked:].count("HistoryPage") == 4
    assert min(v["minStep"] for v in wb.variables[asked:] if "minStep" in v) == 8999


async def test_the_first_look_at_a_long_history_is_bounded(wb: FakeWandb, source: WandbSource) -> None:
    wb.log_steps(wb.run("hero", "abc123"), range(20_000))

    found = await known(source)

    assert steps(found) == list(range(15_000, 20_000))


class SlowClock(SystemClock):
    """A machine on which a row takes 10 ms."""

    looks = 0

    def monotonic(self) -> float:
        self.looks += 1
        return self.looks * 0.01


async def test_what_was_read_in_time_is_handed_out_and_the_next_look_goes_on_there(wb: FakeWandb) -> None:
    wb.log_steps(wb.run("hero", "abc123"), range(400))
    slow = source_of(wb, clock=SlowClock())
    found, looks = [await known(slow)], 0
    while found[-1].rows:
        found.append(await known(slow, found[-1].cursor))
        looks += 1

    assert [step for each in found for step in steps(each)] == list(range(400))
    assert looks >= 2


async def test_steps_in_strides_of_millions_cost_few_questions(wb: FakeWandb, source: WandbSource) -> None:
    run = wb.run("hero", "abc123")
    for n in range(40):
        wb.log(run, {"train/loss": 2.0, "global_step": n}, step=4_000_000 * n)

    found = await known(source)

    assert steps(found) == list(range(40))
    assert wb.queries.count("HistoryPage") <= 2


async def test_rows_without_the_trainers_step_belong_to_the_step_before(wb: FakeWandb, source: WandbSource) -> None:
    run = wb.run("hero", "abc123")
    wb.log(run, {"train/loss": 2.0, "global_step": 7})
    cursor = (await known(source)).cursor
    wb.log(run, {"grad_norm/total": math.inf})

    found = await known(source, cursor)

    assert [(row.step, row.values) for row in found.rows] == [(7, {"grad_norm": math.inf})]


# resumed, forked, rewound


async def test_after_a_restart_the_rows_that_the_tracker_drops_do_not_look_like_a_stall(
    wb: FakeWandb, source: WandbSource
) -> None:
    """Field report R22: relaunched from step 110 while the history ends at 161."""
    run = wb.run("hero", "abc123")
    wb.log_steps(run, range(162))
    cursor = (await known(source)).cursor
    relaunched = STARTED + timedelta(hours=1)
    run.heartbeat_at = "2026-11-29T04:05:00Z"
    assert not wb.log(run, {"train/loss": 2.0, "global_step": 110}, step=110)

    reading = await metrics(source, cursor, since=relaunched)
    wb.log(run, {"train/loss": 2.0, "global_step": 162}, step=162, at=relaunched + timedelta(minutes=9))
    after = await known(source, cursor, since=relaunched)

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.UNRELIABLE
    assert "161" in reading.detail
    assert steps(after) == [162]


async def test_a_relaunch_that_the_tracker_has_not_heard_of_has_no_rows(wb: FakeWandb, source: WandbSource) -> None:
    wb.log_steps(wb.run("hero", "abc123"), range(162))

    assert (await known(source, since=STARTED + timedelta(hours=1))).rows == ()


async def test_inherited_rows_are_no_progress_of_a_fork(wb: FakeWandb, source: WandbSource) -> None:
    parent = wb.run("hero", "parent")
    wb.log_steps(parent, range(50))
    fork = wb.fork("hero", parent, "abc123", 40)

    first = await known(source)
    wb.log_steps(fork, range(41, 44))
    second = await known(source, first.cursor)

    assert (await state(source)).forked_from == ForkPoint(run_id="parent", step=40)
    assert steps(first) == []
    assert steps(second) == [41, 42, 43]


@pytest.mark.parametrize("grown_to", [33, 80])
async def test_a_rewound_history_is_read_again_from_there(wb: FakeWandb, source: WandbSource, grown_to: int) -> None:
    """The last step went down; or it did, and has grown past the old one again between two looks."""
    run = wb.run("hero", "abc123")
    wb.log_steps(run, range(51))
    cursor = (await known(source)).cursor
    wb.rewind(run, 30)
    for step in range(31, grown_to + 1):
        at = STARTED + timedelta(hours=2, seconds=step)
        wb.log(run, {"train/loss": 3.0, "global_step": step}, step=step, at=at)

    found = await known(source, cursor)
    again = await known(source, found.cursor)

    assert steps(found) == list(range(31, grown_to + 1))
    assert {row.values["loss"] for row in found.rows} == {3.0}
    assert steps(again) == []
    assert (await state(source)).resumed_from == 30


# a service that cannot be relied on


@pytest.mark.parametrize("seen_before", [False, True])
async def test_a_scan_without_rows_although_there_are_some_is_unreliable(
    wb: FakeWandb, source: WandbSource, seen_before: bool
) -> None:
    """Field report R19; the sample and the summary still tell how far the run is."""
    run = wb.run("hero", "abc123")
    wb.log_steps(run, range(100, 161))
    cursor = (await known(source)).cursor if seen_before else ""
    wb.log_steps(run, range(161, 200))
    run.hides_rows = True

    reading = await metrics(source, cursor)
    run.hides_rows = False
    after = await known(source, cursor)

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.UNRELIABLE
    assert "in a sample of it: 199, in the summary: 199" in reading.detail
    assert (await state(source)).last_step == 199
    assert steps(after) == list(range(161 if seen_before else 100, 200))


async def test_a_summary_with_data_and_a_history_without_is_unreliable(wb: FakeWandb, source: WandbSource) -> None:
    run = wb.run("hero", "abc123")
    run.summary = {"_step": 12, "train/loss": 1.0}

    reading = await metrics(source)

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.UNRELIABLE


async def test_a_run_that_has_logged_nothing_yet_is_known_to_be_empty(wb: FakeWandb, source: WandbSource) -> None:
    wb.run("hero", "abc123")

    assert (await known(source)).rows == ()
    assert (await state(source)).last_step is None


@pytest.mark.parametrize(
    ("status", "gap"), [(401, Gap.REFUSED), (403, Gap.REFUSED), (404, Gap.REFUSED), (400, Gap.UNRECOGNISED)]
)
async def test_a_refusal_is_not_a_missing_run(wb: FakeWandb, source: WandbSource, status: int, gap: Gap) -> None:
    wb.run("hero", "abc123")
    await state(source)
    wb.keep_failing(status)

    readings = (await source.tracker(contract()), await metrics(source))

    assert [reading.reason for reading in readings if isinstance(reading, Unknown)] == [gap, gap]


@pytest.mark.parametrize(("key", "said"), [("x" * 45, "not accepted"), ("short", "40+ characters")])
async def test_a_bad_key_is_refused_and_not_shown(wb: FakeWandb, key: str, said: str) -> None:
    reading = await source_of(wb, api_key=key).tracker(contract())

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.REFUSED
    assert said in reading.detail
    assert key not in reading.detail


async def test_without_a_key_nothing_is_asked(wb: FakeWandb) -> None:
    reading = await source_of(wb, api_key=None).tracker(contract())

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.REFUSED
    assert wb.queries == []


async def test_a_server_that_is_not_there_is_unreachable(wb: FakeWandb) -> None:
    reading = await source_of(wb, base_url="http://127.0.0.1:9").tracker(contract())

    assert isinstance(reading, Unknown)
    assert reading.reason in {Gap.UNREACHABLE, Gap.TIMEOUT}


async def test_lasting_errors_are_bounded_and_end(wb: FakeWandb, source: WandbSource) -> None:
    wb.log_steps(wb.run("hero", "abc123"), range(3))
    wb.keep_failing(500, "HistoryPage")

    reading = await metrics(source)
    wb.recover()

    assert isinstance(reading, Unknown)
    assert reading.reason in {Gap.UNREACHABLE, Gap.TIMEOUT}
    assert steps(await known(source)) == [0, 1, 2]


async def test_a_short_rate_limit_is_waited_out(wb: FakeWandb, source: WandbSource) -> None:
    wb.run("hero", "abc123")
    await state(source)
    wb.fail(429, retry_after_s=1)

    assert (await state(source)).id == "abc123"


async def test_a_server_that_never_answers_costs_places_and_then_says_busy(wb: FakeWandb) -> None:
    source = source_of(wb, threads=1, deadline=timedelta(seconds=0.4))
    wb.log_steps(wb.run("hero", "abc123"), range(3))
    await until(lambda: _answers(source), what="the helper has started")
    wb.stall()

    first, second = await metrics(source), await metrics(source)
    wb.recover()

    assert isinstance(first, Unknown)
    assert isinstance(second, Unknown)
    assert (first.reason, second.reason) == (Gap.TIMEOUT, Gap.BUSY)


async def _answers(source: WandbSource) -> bool:
    return isinstance(await source.tracker(contract()), Known)


# what is left behind


async def test_what_steers_the_sdk_does_not_reach_child_processes(wb: FakeWandb, source: WandbSource) -> None:
    wb.run("hero", "abc123")
    await state(source)

    assert os.environ["WANDB_SERVICE"]
    assert not os.environ["WANDB_DIR"].startswith(os.environ["HOME"])
    assert [name for name in child_environment() if name.startswith("WANDB_")] == []


async def test_after_an_orderly_end_the_source_can_begin_again(wb: FakeWandb, source: WandbSource) -> None:
    wb.run("hero", "abc123")
    await state(source)

    await source.close()

    assert (await state(source_of(wb))).id == "abc123"


async def test_the_doctor_asks_for_every_tracked_run_and_names_a_missing_one(wb: FakeWandb) -> None:
    wb.run("hero", "abc123")
    key = {"entity": wb.entity, "project": "hero", "base_url": wb.url, "api_key": wb.key, "deadline": DEADLINE}

    probes = await probe_wandb(WandbSettings.model_validate(key), (contract(), contract(id="gone")), SystemClock())

    assert [probe.ok for probe in probes] == [True, True]
    assert probes[0].detail.endswith("is running")
    assert probes[1].fix.startswith("it appears when the trainer first logs")


async def test_without_a_key_the_doctor_says_which_trackers_are_not_read() -> None:
    (probe,) = await probe_wandb(WandbSettings(), (contract(),), SystemClock())

    assert contract().run_id in probe.detail
    assert probe.fix == "set HERO_WANDB__API_KEY or [wandb] api_key_file"


# configuration


async def test_the_runs_configuration_is_read_flat_and_without_secrets_and_never_from_the_launch_before(
    wb: FakeWandb, source: WandbSource
) -> None:
    trainer = {"num_train_steps": 9000, "progress_watchdog": {"step_timeout": "0:30:00"}, "loss_scale": math.inf}
    run = wb.run("hero", "abc123", NAME, config={"trainer": trainer, "hf_token": "hunter2", "flat.key": 1})
    run.heartbeat_at = "2026-11-29T04:00:00"
    promised = contract()
    reader = ConfigReader(SystemClock(), Redactor(), tracker=source)

    async def read(submitted_at: datetime) -> Reading[LaunchedConfig]:
        jobs: Reading[tuple[Job, ...]] = Known(
            value=(snapshots.job(submitted_at=submitted_at, started_at=submitted_at),), at=STARTED
        )
        return await reader.config(promised, jobs, await source.tracker(promised))

    ours = await read(datetime(2026, 11, 29, 3, 30, tzinfo=UTC))
    old = await read(datetime(2026, 11, 29, 4, 30, tzinfo=UTC))
    run.config["trainer"] = {"num_train_steps": 9500}
    again = await read(datetime(2026, 11, 29, 3, 30, tzinfo=UTC))

    assert isinstance(ours, Known), ours
    assert (ours.value.origin, ours.value.is_trackers) == ("W&B acme/hero/abc123", True)
    assert ours.value.count("final_step") == 9000
    assert ours.value.duration("step_watchdog") == timedelta(minutes=30)
    assert ours.value.values['"flat.key"'] == "1"
    assert "hunter2" not in ours.model_dump_json()
    assert not any("_wandb" in key for key in ours.value.values)
    assert isinstance(old, Unknown)
    assert "of an earlier instance" in old.detail
    assert isinstance(again, Known)
    assert again.value.count("final_step") == 9500


async def test_a_configuration_that_cannot_be_asked_for_is_unknown(wb: FakeWandb, source: WandbSource) -> None:
    wb.run("hero", "abc123", NAME, config={"seed": 1})
    elsewhere = contract(project="nowhere")

    assert isinstance(await source.config(contract()), Known)
    assert isinstance(await source.config(elsewhere), Unknown)
