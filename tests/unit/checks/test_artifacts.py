"""artifacts.missing: a success is one only when what the run was for is there."""

from typing import Any

import pytest

from bot.model.job import JobState
from bot.model.reading import Gap, Known
from bot.model.snapshot import Checkpoint, Snapshot
from bot.model.tracker import TrackerRunState, TrackerState
from bot.model.verdict import Fail, NotApplicable, Pass, Severity, UnknownVerdict
from checks.artifacts import MISSING
from tests.fakes.snapshots import AT, RUN, checkpoint, contract, job, later, rows, snapshot, unknown
from tests.unit.checks.story import finding, verdict

DONE = job(JobState.SUCCEEDED, finished_at=AT)


def ended(*found: Checkpoint, minutes: int = 15, last: int = 9_999, **readings: Any) -> Snapshot:
    seen = snapshot(later(minutes), jobs=DONE, metrics=rows(last - 5, last), checkpoints=found)
    return seen.model_copy(update=readings)


def tracked(**fields: Any) -> Known[TrackerState]:
    given: dict[str, Any] = {"entity": "me", "project": "hero", "id": RUN, "name": "hero", "url": "https://w/hero"}
    state = TrackerState.model_validate({**given, "state": TrackerRunState.FINISHED, **fields})
    return Known(value=state, at=AT)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ((), "no complete checkpoint of the final step 10000"),
        ((checkpoint(9_000),), "no complete checkpoint of the final step 10000"),
        ((checkpoint(9_000), checkpoint(10_000, is_complete=False)), "metadata.json is missing"),
        ((checkpoint(10_000, is_temporary=True),), "only a temporary one"),
    ],
)
def test_a_success_without_its_final_checkpoint_is_critical(found: tuple[Checkpoint, ...], said: str) -> None:
    last = finding(MISSING, ended(*found))

    assert last.severity is Severity.CRITICAL
    assert said in last.summary
    assert not last.is_recoverable


@pytest.mark.parametrize("step", [9_999, 10_000])
def test_the_final_checkpoint_by_either_way_of_counting_is_one(step: int) -> None:
    assert verdict(MISSING, ended(checkpoint(step))) == Pass()


def test_it_stays_told_when_the_orchestrator_has_forgotten_the_job() -> None:
    forgotten = snapshot(later(600), jobs=(), checkpoints=[checkpoint(9_000)])

    assert isinstance(verdict(MISSING, ended(checkpoint(9_000)), forgotten), Fail)


@pytest.mark.parametrize(
    ("tracker", "expected"),
    [
        (tracked(trainer_step=9_999), Pass),
        (tracked(trainer_step=None), Pass),
        (tracked(trainer_step=8_000), Fail),
        (tracked(state=TrackerRunState.MISSING), Fail),
        (unknown(), UnknownVerdict),
        (unknown(Gap.NOT_CONFIGURED), Pass),
    ],
)
def test_the_trackers_summary_has_to_reach_the_end_where_there_is_a_tracker(tracker: object, expected: type) -> None:
    assert isinstance(verdict(MISSING, ended(checkpoint(10_000), tracker=tracker)), expected)


EXPORTING = contract(export_root="gs://bucket/export")


def exported(value: int | None, **fields: Any) -> Snapshot:
    return ended(checkpoint(10_000), export=Known(value=value, at=AT), **fields)


def test_an_export_root_where_nothing_lies_is_critical_and_one_with_something_is_fine() -> None:
    empty = finding(MISSING, exported(0), promised=EXPORTING)

    assert empty.severity is Severity.CRITICAL
    assert empty.summary.endswith("but nothing lies at the export root gs://bucket/export")
    assert verdict(MISSING, exported(4096), promised=EXPORTING) == Pass()
    assert verdict(MISSING, exported(None)) == Pass(), "none was promised"
    assert isinstance(verdict(MISSING, exported(0, minutes=5), promised=EXPORTING), NotApplicable)


@pytest.mark.parametrize("reason", [Gap.TIMEOUT, Gap.NOT_YET, Gap.NOT_CONFIGURED])
def test_an_export_that_is_not_read_is_unknown_rather_than_fine(reason: Gap) -> None:
    last = verdict(MISSING, ended(checkpoint(10_000), export=unknown(reason)), promised=EXPORTING)

    assert isinstance(last, UnknownVerdict)
    assert "gs://bucket/export" in last.detail


def test_an_export_that_was_seen_counts_when_the_orchestrator_has_forgotten_the_job() -> None:
    forgotten = snapshot(later(600), jobs=(), checkpoints=[checkpoint(10_000)])
    forgotten = forgotten.model_copy(update={"export": unknown(Gap.NOT_YET)})

    assert verdict(MISSING, exported(4096), forgotten, promised=EXPORTING) == Pass()
    assert isinstance(verdict(MISSING, ended(checkpoint(10_000)), forgotten, promised=EXPORTING), UnknownVerdict)


def test_what_is_not_at_its_end_is_not_judged() -> None:
    assert isinstance(verdict(MISSING, snapshot(metrics=rows(9_990, 9_999))), NotApplicable)
    assert isinstance(verdict(MISSING, ended(last=8_000)), NotApplicable)
    assert isinstance(verdict(MISSING, ended(minutes=5)), NotApplicable)
    assert isinstance(verdict(MISSING, ended(), promised=contract(final_step=None)), NotApplicable)


@pytest.mark.parametrize("source", ["jobs", "metrics", "checkpoints"])
def test_what_cannot_be_read_is_no_pass(source: str) -> None:
    dark = ended().model_copy(update={source: unknown()})

    assert isinstance(verdict(MISSING, dark), UnknownVerdict)
