"""``tracker.identity``: the tracker is one witness, and its word is weighed against the others'."""

from datetime import timedelta
from typing import Any

import pytest

from bot.model.job import Job, JobState
from bot.model.reading import Known, Reading
from bot.model.tracker import TrackerRunState, TrackerState
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, UnknownVerdict, Verdict
from checks.tracker import IdentityThresholds, StepSeen, counts_as_dead, judge_identity, silent_until
from tests.fakes.clock import START
from tests.fakes.snapshots import AT, RUN, contract, job, later, unknown

URL = "https://wandb.example/acme/hero/runs/abc123"
TRACKER = {"mode": "online", "entity": "acme", "project": "hero", "id": "abc123", "name": RUN, "resume": "must"}


def shown(**fields: Any) -> TrackerState:
    """The run as the contract wants it, heard of half a minute ago."""
    given: dict[str, Any] = {
        "entity": "acme",
        "project": "hero",
        "id": "abc123",
        "name": RUN,
        "state": TrackerRunState.RUNNING,
        "url": URL,
        "heartbeat_at": later(-0.5),
        "created_at": START,
        "last_step": 1500,
        "last_row_at": later(-1),
        "trainer_step": 1500,
    }
    return TrackerState.model_validate(given | fields)


def jobs(*given: Job) -> Reading[tuple[Job, ...]]:
    return Known(value=given or (job(),), at=AT)


def judged(state: TrackerState | None = None, **given: Any) -> Verdict:
    tracker = TRACKER | given.pop("tracker", {})
    reading = Known(value=state or shown(), at=AT)
    return judge_identity(reading, contract(tracker=tracker), AT, **({"jobs": jobs()} | given))


def finding(verdict: Verdict) -> Finding:
    assert isinstance(verdict, Fail), verdict
    return verdict.finding


def test_a_run_that_is_what_the_contract_says_passes() -> None:
    assert judged(step=StepSeen(step=1510, at=AT), recorded_url=URL) == Pass()


@pytest.mark.parametrize("field", ["id", "project", "entity", "name"])
def test_an_identity_that_drifted_is_named_with_both_values(field: str) -> None:
    found = finding(judged(shown(**{field: "other"})))

    assert (found.key, found.severity) == (field, Severity.WARNING)
    assert "'other'" in found.summary
    assert repr(str(TRACKER[field])) in found.summary


def test_what_the_contract_does_not_promise_cannot_drift() -> None:
    assert judged(shown(name="renamed", entity="else"), tracker={"name": None, "entity": None}) == Pass()


def test_a_resume_policy_that_refuses_the_relaunch_is_told_before_it() -> None:
    assert finding(judged(tracker={"resume": "never"})).key == "resume"


def test_a_stale_address_is_told() -> None:
    found = finding(judged(recorded_url="https://wandb.example/acme/hero/runs/old"))

    assert (found.key, found.severity) == ("url", Severity.INFO)


@pytest.mark.parametrize(("run_id", "severity"), [("abc123", Severity.INFO), (None, Severity.WARNING)])
def test_a_name_that_several_runs_have_is_worse_when_it_is_all_there_is(run_id: str | None, severity: Severity) -> None:
    found = finding(judged(shown(namesakes=("def456", "ghi789")), tracker={"id": run_id}))

    assert (found.key, found.severity) == ("namesakes", severity)
    assert "def456, ghi789" in found.summary


@pytest.mark.parametrize("state", ["crashed", "failed", "killed", "finished"])
def test_a_crash_that_only_the_tracker_sees_is_a_lost_link_and_no_failure(state: str) -> None:
    """Field report R18."""
    seen = shown(state=state, heartbeat_at=later(-40))

    found = finding(judged(seen, step=StepSeen(step=1600, at=later(-1))))

    assert found.summary.startswith("Tracker link lost")
    assert "step 1600" in found.summary
    assert found.severity is Severity.WARNING
    assert not found.is_recoverable
    assert "Do not relaunch" in found.advice


def test_a_running_job_that_the_tracker_has_not_heard_of_is_a_lost_link() -> None:
    assert finding(judged(shown(heartbeat_at=later(-11)))).key == "link"
    assert judged(shown(heartbeat_at=later(-9))) == Pass()


def test_a_job_that_has_just_started_may_still_be_shown_as_crashed() -> None:
    fresh = job(started_at=later(-5))

    assert judged(shown(state="crashed", heartbeat_at=later(-40)), jobs=jobs(fresh)) == Pass()


@pytest.mark.parametrize("listed", [jobs(job(JobState.FAILED, finished_at=later(-30))), Known(value=(), at=AT)])
def test_running_with_an_old_heartbeat_and_no_live_job_counts_as_dead(listed: Reading[tuple[Job, ...]]) -> None:
    """Field report R18."""
    seen = shown(heartbeat_at=later(-30))

    assert counts_as_dead(seen, AT, listed, IdentityThresholds())
    found = finding(judged(seen, jobs=listed))
    assert (found.key, found.severity) == ("dead", Severity.INFO)


@pytest.mark.parametrize(
    ("seen", "listed"),
    [
        (shown(heartbeat_at=later(-30)), jobs()),
        (shown(heartbeat_at=later(-30)), unknown()),
        (shown(), jobs(job(JobState.FAILED, finished_at=later(-2)))),
    ],
)
def test_one_witness_alone_makes_nobody_dead(seen: TrackerState, listed: Reading[tuple[Job, ...]]) -> None:
    assert not counts_as_dead(seen, AT, listed, IdentityThresholds())


def test_an_old_heartbeat_without_a_word_of_the_scheduler_is_unknown() -> None:
    assert isinstance(judged(shown(heartbeat_at=later(-30)), jobs=unknown()), UnknownVerdict)
    assert judged(jobs=unknown()) == Pass()


def test_a_tracker_that_cannot_be_read_is_unknown_and_one_that_is_not_used_does_not_apply() -> None:
    asked = contract(tracker=TRACKER)
    unused = contract(tracker={"mode": "disabled"})

    assert isinstance(judge_identity(unknown(), asked, AT, jobs=jobs()), UnknownVerdict)
    assert isinstance(judge_identity(unknown(), unused, AT, jobs=jobs()), NotApplicable)


@pytest.mark.parametrize(
    ("listed", "kind"),
    [
        (jobs(job(started_at=later(-31))), Fail),
        (jobs(job(started_at=later(-29))), NotApplicable),
        (jobs(job(JobState.PENDING, started_at=None)), NotApplicable),
        (unknown(), UnknownVerdict),
    ],
)
def test_a_run_that_the_tracker_does_not_have_is_told_once_it_ought_to(
    listed: Reading[tuple[Job, ...]], kind: type[object]
) -> None:
    assert isinstance(judged(shown(state=TrackerRunState.MISSING), jobs=listed), kind)


def test_steps_that_drifted_apart_are_told_in_both_directions() -> None:
    for elsewhere in (300, 2501):
        found = finding(judged(shown(last_row_at=AT), step=StepSeen(step=elsewhere, at=AT)))
        assert found.key == "global_step"
    assert judged(shown(last_row_at=AT), step=StepSeen(step=2500, at=AT)) == Pass()


def test_a_replay_below_the_trackers_last_step_is_told_as_such() -> None:
    """Field report R22: relaunched from step 110 while the tracker's history ends at 161."""
    seen = shown(trainer_step=161, last_row_at=later(-50))
    began = later(-20)

    found = finding(judged(seen, jobs=jobs(job(started_at=began)), step=StepSeen(step=130, at=AT)))

    assert found.severity is Severity.INFO
    assert "tracker silent until step 161" in found.summary
    assert silent_until(seen, began, StepSeen(step=162, at=AT)) is None
    assert silent_until(shown(trainer_step=161, last_row_at=later(-1)), began, StepSeen(step=130, at=AT)) is None


def test_rows_from_the_future_show_a_wrong_clock() -> None:
    assert finding(judged(shown(last_row_at=AT + timedelta(hours=8)))).key == "timestamp"


def test_of_several_faults_the_worst_leads_and_the_others_are_evidence() -> None:
    found = finding(judged(shown(name="renamed", namesakes=("def456",)), recorded_url="https://wandb.example/x"))

    assert found.key == "name"
    assert any("def456" in line for line in found.evidence)
    assert any("stale" in line for line in found.evidence)
