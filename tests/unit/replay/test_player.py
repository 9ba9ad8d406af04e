"""A file is judged as the live run would have been: the same checks, and incidents that open and resolve."""

import math
import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from bot.model.snapshot import MetricRow
from bot.replay.looks import looks
from bot.replay.player import Replay, replay
from bot.replay.reading import Logged
from tests.unit.checks.curves import decay, scaled

BEGAN = datetime(2026, 7, 1, tzinfo=UTC)


def _logged(rows: Iterable[MetricRow], attempt: int = 0) -> list[Logged]:
    return [Logged(number, row, attempt) for number, row in enumerate(rows, start=2)]


def _timed(rows: Iterable[MetricRow], seconds: float = 10.0) -> list[MetricRow]:
    return [row.model_copy(update={"at": BEGAN + timedelta(seconds=seconds * row.step)}) for row in rows]


def _said(found: Replay) -> list[tuple[str, int, int, int | None]]:
    assert not found.broken
    return [(told.check, told.first_step, told.opened_step, told.resolved_step) for told in found.incidents]


def test_a_spike_opens_at_the_next_look_and_resolves_at_the_one_after() -> None:
    run = scaled(decay(rows=400), 2.5, 210, 230)

    found = replay(_logged(run), 50)

    assert _said(found) == [("loss.spike", 210, 250, 300)]
    assert (found.rows, found.looks) == (400, 8)
    assert found.incidents[0].severity.value == "critical"


def test_a_healthy_run_tells_nothing() -> None:
    assert _said(replay(_logged(decay(rows=1_000, noise=0.05)), 50)) == []


def test_nan_that_stays_is_one_incident_that_goes_on() -> None:
    run = [*decay(rows=120), *(MetricRow(step=step, values={"loss": math.nan}) for step in range(121, 400))]

    assert _said(replay(_logged(run), 50)) == [("numerics.nonfinite", 121, 150, None)]


@pytest.mark.parametrize(("apart", "is_told"), [(0.0015, False), (0.01, True)])
def test_another_attempt_is_a_launch_whose_losses_are_compared_at_equal_steps(apart: float, is_told: bool) -> None:
    run = decay(rows=100)
    again = [MetricRow(step=row.step, values={"loss": row.values["loss"] + apart}) for row in run[50:]]

    found = _said(replay([*_logged(run), *_logged(again, 1)], 50))

    assert bool(found) is is_told
    assert all(check == "resume.mismatch" for check, *_ in found)


def test_a_restart_from_scratch_is_no_spike() -> None:
    run = decay("exponential", rows=400)

    found = replay([*_logged(run), *_logged(scaled(run, 1.0001), 1)], 50)

    assert _said(found) == []


def test_with_timestamps_a_look_is_due_every_cadence_too() -> None:
    run = _timed(decay(rows=100), seconds=60)

    at = [look.snapshot.at for look in looks(_logged(run), 50)]

    gaps = [late - early for early, late in pairwise(at)]
    assert all(timedelta() < gap <= timedelta(minutes=15) for gap in gaps)


def test_a_pause_of_hours_is_a_stall_of_then() -> None:
    run = _timed(decay(rows=300))
    paused = [*run[:150], *(row.model_copy(update={"at": row.at + timedelta(hours=5)}) for row in run[150:] if row.at)]

    found = replay(_logged(paused), 50)

    assert [check for check, *_ in _said(found)] == ["progress.stalled"]
    assert found.incidents[0].first_step == 150
    assert found.incidents[0].resolved_step == 200


def test_clocks_that_restart_or_jump_hang_nothing() -> None:
    run = _timed(decay(rows=100))
    ahead = run[50].model_copy(update={"at": BEGAN + timedelta(days=365 * 500)})

    found = replay([*_logged([*run[:50], ahead, *run[51:]]), *_logged(run, 1)], 50)

    assert not found.broken
    assert found.looks < 40


def test_disorder_raises_nothing_and_alarms_nothing() -> None:
    dice = random.Random(1)
    run = decay(rows=300)
    doubled = [row for row in run for _ in range(2)]
    gaps = [row for row in run if dice.random() < 0.3]
    shuffled = list(run)
    dice.shuffle(shuffled)

    for rows in (doubled, gaps, shuffled, run[::-1], run[:1]):
        assert not replay(_logged(rows), 50).broken
    for rows in (doubled, gaps, run[:1]):
        assert _said(replay(_logged(rows), 50)) == []


@pytest.mark.parametrize("every", [1, 7, 50, 1_000])
def test_how_often_is_looked_does_not_change_what_is_found(every: int) -> None:
    run = scaled(decay(rows=600), 2.5, 210, 260)

    found = _said(replay(_logged(run), every))

    assert [(check, first) for check, first, *_ in found] == [("loss.spike", 210)]
