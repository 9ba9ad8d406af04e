"""What a failure costs is worked out from what is on record, and what is not known is said and never guessed."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.hours import WorkingHours
from bot.model.incident import open_incident
from bot.model.run import Progress, Run, RunState
from bot.model.value import CheckId
from bot.model.verdict import Finding, Severity
from handlers.costs import (
    accelerators_of,
    decide_by_line,
    downtime_line,
    failure_costs,
    idle_line,
    next_save_line,
    replay_line,
    running_costs,
)
from tests.fakes.snapshots import AT, RUN, instance, later
from tests.unit.handlers.scene import PEOPLE, context, record, request

STALLED = Finding(check=CheckId("progress.stalled"), severity=Severity.WARNING, summary="no new step", advice="look")


def known(state: RunState = RunState.FAILED, *, ended: float | None = -60, **progress: Any) -> Any:
    run = Run(run_id=RUN, state=state, progress=Progress(**progress), last_checked_at=AT)
    ended_at = None if ended is None else later(ended)
    return record(run=run, instances=(instance(ended_at=ended_at),))


def test_an_hour_idle_of_256_accelerators_is_256_accelerator_hours() -> None:
    line = idle_line(known(accelerators=256), context(), AT)

    assert line == "idle: 1 h, 256 accelerator-hours (256 accelerators), since the job ended"


@pytest.mark.parametrize(
    ("before", "says"),
    [
        (known(), "idle: 1 h, accelerator-hours unknown, since the job ended"),
        (known(accelerators=0), "idle: 1 h, no accelerators, since the job ended"),
        (known(ended=None, accelerators=8), "idle: for how long is unknown, the end of the job was not seen"),
    ],
)
def test_what_is_not_known_of_the_idle_time_is_said(before: Any, says: str) -> None:
    assert idle_line(before, context(), AT) == says


def test_a_run_that_trains_or_died_this_minute_is_not_idle() -> None:
    assert idle_line(known(RunState.RUNNING), context(), AT) is None
    assert idle_line(known(ended=-0.5), context(), AT) is None


def test_a_run_that_stands_still_holds_its_accelerators() -> None:
    still = known(RunState.RUNNING, step=5, step_at=later(-30), accelerators=8)
    still = still.model_copy(update={"incidents": (open_incident(1, RUN, STALLED, AT),)})

    assert idle_line(still, context(), AT) == "held without a new step: 30 min, 4.0 accelerator-hours (8 accelerators)"
    assert "next save: none while no step is made" in running_costs(still, context(), AT)


def test_the_contract_counts_accelerators_only_where_its_words_do() -> None:
    assert accelerators_of(known(), context(hardware="H100x8", hardware_tasks=4)) == 32
    assert accelerators_of(known(accelerators=16), context(hardware="H100x8", hardware_tasks=4)) == 16
    assert accelerators_of(known(), context(hardware="v5p-64", hardware_tasks=8)) is None
    assert accelerators_of(known(), context(hardware="H100x8")) is None


def test_a_relaunch_says_which_steps_it_replays_and_how_long_that_takes() -> None:
    at_pace = known(step=1000, checkpoint_step=900, steps_per_s=0.05, accelerators=9)

    assert replay_line(at_pace, context(), 900) == (
        "steps to be trained again: 100 (last seen step 1000); about 33 min, 5.0 accelerator-hours (9 accelerators)"
    )
    assert "nothing is lost" in (replay_line(at_pace, context(), 1000) or "")
    assert replay_line(at_pace, context(), 1001) is None
    assert "all 1000 steps, no complete checkpoint is known" in (replay_line(at_pace, context(), None) or "")


def test_checkpoints_that_could_not_be_read_are_no_missing_checkpoints() -> None:
    dark = known(step=1000)
    dark = dark.model_copy(update={"run": dark.run.model_copy(update={"gaps": ("checkpoints: timeout (no answer)",)})})

    assert replay_line(dark, context(), None) == "to be trained again: unknown, the checkpoints could not be read"


def test_a_relaunched_run_says_how_long_nothing_was_trained() -> None:
    before, now = instance(ended_at=later(-90)), instance(1)
    both = known(accelerators=2).model_copy(update={"instances": (before, now)})

    assert downtime_line(both, context(), AT) == (
        "idle: 1 h 30 min, 3.0 accelerator-hours (2 accelerators), until it trained again"
    )
    assert downtime_line(known(), context(), AT) is None


def test_the_next_save_is_foretold_from_the_last_two_and_not_without_them() -> None:
    saves: dict[str, Any] = {"step": 1010, "step_at": AT, "checkpoint_step": 1000, "steps_per_s": 0.1}

    assert next_save_line(known(RunState.RUNNING, save_every_steps=100, **saves), AT) == (
        "next save: in about 15 min, at step 1100 (the last two were 100 steps apart)"
    )
    assert "unknown" in (next_save_line(known(RunState.RUNNING, **saves), AT) or "")
    assert next_save_line(known(save_every_steps=100, **saves), AT) is None


HOURS = {"timezone": "Europe/Berlin", "working_hours": "09:00-18:00"}


def asked_until(hours: float) -> str | None:
    """Return the line of a request asked on Friday at 12:00 UTC."""
    friday = datetime(2026, 11, 27, 12, tzinfo=UTC)
    people = (PEOPLE[0].model_copy(update=HOURS), *PEOPLE[1:])
    waiting = request(asked_at=friday, expires_at=friday + timedelta(hours=hours))
    return decide_by_line(waiting, context(people=people), friday)


def test_a_request_names_the_last_moment_of_the_dris_working_hours() -> None:
    assert asked_until(24) == "working hours: ada can still decide in them until 2026-11-27 18:00 CET"
    assert asked_until(2) == "working hours: ada can still decide in them until 2026-11-27 15:00 CET"
    assert asked_until(69) == "working hours: ada can still decide in them until 2026-11-30 10:00 CET"


def test_hours_that_end_before_anything_can_be_decided_and_persons_without_hours() -> None:
    saturday = datetime(2026, 11, 28, 12, tzinfo=UTC)
    people = (PEOPLE[0].model_copy(update=HOURS), *PEOPLE[1:])
    waiting = request(asked_at=saturday, expires_at=saturday + timedelta(hours=24))

    assert decide_by_line(waiting, context(people=people), saturday) == (
        "working hours: ada has none before this expires"
    )
    assert decide_by_line(waiting, context(), saturday) is None


MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))  # noqa: DTZ001 - given its zone right here


@given(since=MOMENTS, length=st.timedeltas(timedelta(minutes=1), timedelta(days=9)), night=st.booleans())
def test_the_last_working_moment_lies_in_working_hours_and_nothing_later_does(
    since: datetime, length: timedelta, night: bool
) -> None:
    hours = WorkingHours(hours="22:00-06:00" if night else "09:00-18:00", timezone="America/New_York")
    until = since + length

    last = hours.last_open(since, until)

    if last is None:
        assert hours.next_open(since) >= until
        return
    assert since < last <= until
    just_before = last - timedelta(microseconds=1)
    assert hours.next_open(just_before) == just_before
    assert last == until or hours.next_open(last) >= until


@given(
    step=st.none() | st.integers(0, 10**7),
    saved=st.none() | st.integers(0, 10**7),
    pace=st.none() | st.floats(1e-9, 1e6),
    every=st.none() | st.integers(1, 10**6),
    accelerators=st.none() | st.integers(0, 10**5),
    state=st.sampled_from(RunState),
    ended=st.none() | st.floats(-1e6, 10),
)
def test_costs_are_short_finite_and_never_below_zero(
    *,
    step: int | None,
    saved: int | None,
    pace: float | None,
    every: int | None,
    accelerators: int | None,
    state: RunState,
    ended: float | None,
) -> None:
    run = known(
        state,
        ended=ended,
        step=step,
        step_at=later(-3),
        checkpoint_step=saved,
        steps_per_s=pace,
        save_every_steps=every,
        accelerators=accelerators,
    )

    for line in (*failure_costs(run, context(), AT), *running_costs(run, context(), AT)):
        assert len(line) < 200
        assert not re.search(r"nan|inf\b|-\d", line)
        if accelerators is None:
            assert not re.search(r"\d accelerator-hours", line)
