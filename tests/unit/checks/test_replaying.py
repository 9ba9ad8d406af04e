"""A replay that the tracker does not show is no stall, and a hang within it still is one (field report R22)."""

from typing import Any

import pytest

from bot.model.reading import Gap, Known
from bot.model.snapshot import MetricRow, Snapshot
from bot.model.telemetry import Phase, Telemetry
from bot.model.tracker import TrackerRunState, TrackerState
from bot.model.verdict import Fail, NotApplicable, Pass, Severity, UnknownVerdict, Verdict
from checks.progress import STALLED, STARTUP
from checks.tracker import IDENTITY
from tests.fakes.snapshots import (
    AT,
    RUN,
    attempt,
    checkpoint,
    contract,
    instance,
    job,
    later,
    lines,
    row,
    rows,
    snapshot,
    task,
    unknown,
)
from tests.unit.checks.story import finding, verdicts

AGAIN = later(10)
"""When the retry, or the relaunch, began; the tracker's history ends at step 161, a minute before."""
SILENT = unknown(Gap.UNRELIABLE, "W&B has shown no row of this launch yet; the trainer may be replaying")


def before() -> Snapshot:
    """Return a look at the life before: one step every 10 s up to step 161."""
    return shown(snapshot(later(9), metrics=rows(1, 161, until=later(9)), checkpoints=[checkpoint(110, saved_at=AT)]))


def shown(seen: Snapshot, **signs: Any) -> Snapshot:
    """Return the snapshot with the tracker's word, and with the trainer's where there is one."""
    tracker = TrackerState(
        entity="me",
        project="hero",
        id=RUN,
        name="hero",
        state=TrackerRunState.RUNNING,
        heartbeat_at=seen.at,
        url="https://wandb.example/hero",
        trainer_step=161,
        last_row_at=later(9),
    )
    readings: dict[str, Any] = {"tracker": Known(value=tracker, at=seen.at)}
    if signs:
        said = Telemetry(phase=Phase.TRAINING, is_of_current_execution=True, **signs)
        readings["telemetry"] = Known(value=said, at=seen.at)
    return seen.model_copy(update=readings)


def retry(
    minutes: float, *, is_relaunch: bool = False, log: Any = "", metrics: tuple[MetricRow, ...] = (), **signs: Any
) -> Snapshot:
    """Return a look that many minutes after the restart from step 110: a retry inside the job, or a new launch."""
    at = later(10 + minutes)
    saved = [checkpoint(110, saved_at=AT)]
    if is_relaunch:
        again = job(submitted_at=AGAIN, started_at=AGAIN, tasks=(task(started_at=AGAIN),))
        launch = instance(1, submitted_at=AGAIN, from_step=110)
        seen = snapshot(at, jobs=again, launch=launch, log=log, metrics=metrics or SILENT, checkpoints=saved)
    else:
        living = job(tasks=(task(attempts=(attempt(0, finished_at=AGAIN), attempt(1, started_at=AGAIN))),))
        seen = snapshot(at, jobs=living, log=log, metrics=metrics, checkpoints=saved)
    return shown(seen, **signs)


def both(*looks: Snapshot) -> tuple[Verdict, Verdict]:
    """Return what ``progress.stalled`` and ``progress.startup`` say at the last look."""
    story = [before(), *looks]
    return verdicts(STALLED, story)[-1], verdicts(STARTUP, story)[-1]


@pytest.mark.parametrize("is_relaunch", [True, False])
def test_steps_that_telemetry_counts_while_the_tracker_is_silent_are_a_replay_and_no_stall(is_relaunch: bool) -> None:
    looks = [retry(m, is_relaunch=is_relaunch, last_step=110 + m // 2, progress_at=later(10 + m)) for m in (30, 60, 90)]

    stalled, startup = both(*looks)

    assert isinstance(stalled, NotApplicable)
    assert stalled.reason == (
        "replaying from an earlier checkpoint, at step 155 by telemetry: tracker silent until step 161"
    )
    assert isinstance(startup, NotApplicable)
    assert "tracker silent until step 161" in startup.reason


@pytest.mark.parametrize("is_relaunch", [True, False])
def test_steps_that_the_log_counts_will_do(is_relaunch: bool) -> None:
    looks = [
        retry(m, is_relaunch=is_relaunch, log=lines("restored step 110", f"step {110 + m // 2} done", "saved step-110"))
        for m in (30, 60)
    ]

    stalled, startup = both(*looks)

    assert isinstance(stalled, NotApplicable)
    assert "at step 140 by log" in stalled.reason
    assert isinstance(startup, NotApplicable)


@pytest.mark.parametrize("is_relaunch", [True, False])
def test_a_hang_during_the_replay_is_found_by_the_other_witness(is_relaunch: bool) -> None:
    moving = retry(30, is_relaunch=is_relaunch, last_step=130, progress_at=later(40))
    hung = [retry(m, is_relaunch=is_relaunch, last_step=130, progress_at=later(40)) for m in (44, 46)]

    story = verdicts(STALLED, [before(), moving, *hung])

    assert isinstance(story[-2], NotApplicable)
    assert isinstance(story[-1], Fail)
    assert story[-1].finding.severity is Severity.CRITICAL
    assert "stalled at step 130: no new step for 16 min" in story[-1].finding.summary
    assert any("tracker silent until step 161" in line for line in story[-1].finding.evidence)


def test_a_trainer_that_goes_back_in_a_life_of_unknown_beginning_is_replaying_too() -> None:
    blind = shown(
        snapshot(later(40), jobs=job(tasks=unknown()), checkpoints=[checkpoint(110, saved_at=AT)]),
        last_step=130,
        progress_at=later(40),
    )

    assert isinstance(both(blind)[0], NotApplicable)


def test_without_any_other_witness_the_pace_bounds_the_patience() -> None:
    """51 steps of 10 s take 8.5 minutes; twice that is added to the 45 that a start may take."""
    within, beyond = both(retry(61, log="waiting"))[1], both(retry(63, log="waiting"))[1]

    assert isinstance(within, NotApplicable)
    assert "may be replaying" in within.reason
    assert isinstance(beyond, Fail)
    assert "running for 1 h 3 min without a training step" in beyond.finding.summary


def test_a_relaunch_that_nobody_hears_of_is_unknown_only_as_long_as_a_replay_may_last() -> None:
    found = verdicts(STARTUP, [before(), *(retry(m, is_relaunch=True) for m in (30, 63))])

    assert isinstance(found[-2], NotApplicable)
    assert isinstance(found[-1], Fail)


def test_a_start_without_a_replay_has_no_longer_patience() -> None:
    """No checkpoint lies below the tracker's step: what is waited for is nothing that it hides."""
    looks = [retry(46).model_copy(update={"checkpoints": Known(value=(), at=later(56))})]

    assert isinstance(both(*looks)[1], Fail)


def test_the_word_of_an_execution_before_is_no_sign_of_life() -> None:
    stale = retry(50)
    said = Telemetry(last_step=150, progress_at=later(55), is_of_current_execution=False)
    stale = stale.model_copy(update={"telemetry": Known(value=said, at=stale.at)})

    assert isinstance(both(stale)[0], NotApplicable)
    assert "may be replaying" in getattr(both(stale)[1], "reason", "")


def test_rows_beyond_the_replay_are_judged_as_ever() -> None:
    beyond = retry(40, metrics=(row(162, at=later(50)),), last_step=162, progress_at=later(50))

    assert both(retry(30, last_step=140, progress_at=later(40)), beyond) == (Pass(), Pass())
    hung = retry(70, last_step=162, progress_at=later(50))
    assert isinstance(both(beyond, hung)[0], Fail)


def test_figures_from_a_file_hide_no_replay() -> None:
    promised = contract(metrics={"file": "metrics.jsonl"})
    story = [before(), retry(50, last_step=140, progress_at=later(60))]

    assert isinstance(verdicts(STARTUP, story, promised)[-1], Fail)


def test_a_tracker_that_cannot_be_read_hides_nothing_that_is_known() -> None:
    dark = retry(30, is_relaunch=True, last_step=130, progress_at=later(40))
    dark = dark.model_copy(update={"tracker": unknown()})

    assert isinstance(both(dark)[0], UnknownVerdict)


@pytest.mark.parametrize("is_relaunch", [True, False])
def test_the_tracker_is_said_to_be_silent_by_the_step_that_telemetry_counts(is_relaunch: bool) -> None:
    found = finding(IDENTITY, retry(30, is_relaunch=is_relaunch, last_step=130, progress_at=later(40)))

    assert found.severity is Severity.INFO
    assert found.key == "replaying"
    assert "step 130 elsewhere, tracker silent until step 161" in found.summary
