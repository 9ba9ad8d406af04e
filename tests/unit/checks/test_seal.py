"""What stands against a seal: each thing that is missing, and each that is not known."""

from typing import Any

import pytest

from bot.model.incident import open_incident
from bot.model.job import JobState
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.snapshot import Snapshot
from bot.model.tracker import TrackerRunState, TrackerState
from bot.model.value import CheckId
from bot.model.verdict import Finding, Severity
from checks.seal import Lack, final_checkpoint, lacks_of
from tests.fakes.snapshots import AT, RUN, checkpoint, contract, instance, job, snapshot, unknown
from tests.unit.handlers.scene import record

SHA = "a" * 40
DARK = unknown(Gap.TIMEOUT)
IN_ORDER: Reading[str] = Known(value="", at=AT)
FINAL = checkpoint(10_000)


def tracked(**fields: Any) -> TrackerState:
    given: dict[str, Any] = {
        "entity": "acme",
        "project": "hero",
        "id": "hero-12d8b6f0",
        "name": "hero",
        "state": TrackerRunState.FINISHED,
        "url": "https://wandb.example/acme/hero/runs/hero-12d8b6f0",
        "trainer_step": 10_000,
    }
    return TrackerState(**given | fields)


def world(tracker: TrackerState | Unknown | None = None, **fields: Any) -> Snapshot:
    given: dict[str, Any] = {"jobs": job(JobState.SUCCEEDED), "checkpoints": (checkpoint(9000), FINAL)}
    shown = tracker or tracked()
    reading = shown if isinstance(shown, Unknown) else Known(value=shown, at=AT)
    return snapshot(AT, **given | fields).model_copy(update={"tracker": reading})


def lacks(seen: Snapshot | None = None, **fields: Any) -> tuple[Lack, ...]:
    promised = fields.pop("promised", contract(source_sha=SHA))
    known = fields.pop("known", record(instances=(instance(),)))
    given: dict[str, Any] = {"exported": Known(value=None, at=AT), "record_fault": IN_ORDER}
    return lacks_of(seen or world(), promised, known, **given | fields)


def test_a_run_of_which_everything_is_there_lacks_nothing() -> None:
    assert lacks() == ()
    assert final_checkpoint(world(), contract()) == FINAL


MISSING: dict[str, tuple[Any, str]] = {
    "still running": (lambda: lacks(world(jobs=job())), "is running, not succeeded"),
    "failed": (lambda: lacks(world(jobs=job(JobState.FAILED))), "is failed, not succeeded"),
    "no final checkpoint": (lambda: lacks(world(checkpoints=(checkpoint(9000),))), "newest complete one is step 9000"),
    "no checkpoint at all": (lambda: lacks(world(checkpoints=())), "no complete one at all"),
    "incomplete": (lambda: lacks(world(checkpoints=(checkpoint(10_000, is_complete=False),))), "metadata.json is"),
    "temporary": (lambda: lacks(world(checkpoints=(checkpoint(10_000, is_temporary=True),))), "will be deleted"),
    "tracker still running": (lambda: lacks(world(tracked(state=TrackerRunState.RUNNING))), "running, not finished"),
    "tracker crashed": (lambda: lacks(world(tracked(state=TrackerRunState.CRASHED))), "crashed, not finished"),
    "tracker stops short": (lambda: lacks(world(tracked(trainer_step=9990))), "ends at step 9990"),
    "nothing exported": (
        lambda: lacks(
            promised=contract(source_sha=SHA, export_root="gs://bucket/export"), exported=Known(value=0, at=AT)
        ),
        "nothing lies at the export root gs://bucket/export",
    ),
    "record not written": (
        lambda: lacks(record_fault=Known(value="it is broken at entry 3", at=AT)),
        "broken at entry 3",
    ),
    "no source": (lambda: lacks(promised=contract()), "source SHA of the run is not on record"),
    "another source": (
        lambda: lacks(known=record(instances=(instance().model_copy(update={"source_sha": "b" * 40}),))),
        "the last launch was of bbbb",
    ),
}


@pytest.mark.parametrize("case", MISSING)
def test_what_is_missing_is_named_and_is_no_unknown(case: str) -> None:
    make, words = MISSING[case]

    (lack,) = make()

    assert words in lack.what
    assert not lack.is_unknown


UNSEEN: dict[str, Any] = {
    "jobs": lambda: lacks(world(jobs=DARK)),
    "a job that was pruned": lambda: lacks(world(jobs=())),
    "checkpoints": lambda: lacks(world(checkpoints=DARK)),
    "no final step": lambda: lacks(promised=contract(source_sha=SHA, final_step=None)),
    "tracker": lambda: lacks(world(DARK)),
    "tracker that is promised and not read": lambda: lacks(world(unknown(Gap.NOT_CONFIGURED))),
    "summary": lambda: lacks(world(tracked(trainer_step=None))),
    "export": lambda: lacks(exported=DARK),
    "record": lambda: lacks(record_fault=DARK),
}


@pytest.mark.parametrize("case", UNSEEN)
def test_what_is_not_known_stands_against_it_too(case: str) -> None:
    found = UNSEEN[case]()

    assert len(found) == 1
    assert found[0].is_unknown


def test_a_run_that_is_not_tracked_needs_no_tracker() -> None:
    promised = contract(source_sha=SHA, tracker={"mode": "disabled"})

    assert lacks(world(unknown(Gap.NOT_CONFIGURED)), promised=promised) == ()


def test_an_open_critical_incident_stands_against_it() -> None:
    finding = Finding(
        check=CheckId("loss.spike"), severity=Severity.CRITICAL, summary="60 % above its trend", advice="-"
    )
    alive = open_incident(4, RUN, finding, AT)

    (lack,) = lacks(known=record(instances=(instance(),), incidents=(alive,)))

    assert lack.what == "I4 loss.spike is open: 60 % above its trend"
