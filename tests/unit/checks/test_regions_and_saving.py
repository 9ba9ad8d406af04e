"""checkpoint.region and checkpoint.slow: where a run saves, and how long a save takes."""

from datetime import datetime, timedelta

import pytest

from bot.model.job import JobState
from bot.model.snapshot import LogLine, LogTail, Snapshot
from bot.model.verdict import Fail, NotApplicable, Pass, UnknownVerdict
from checks.regions import REGION, region_in
from checks.saving import SLOW
from tests.fakes.snapshots import contract, instance, job, later, lines, snapshot, unknown
from tests.unit.checks.story import finding, verdict, verdicts

EAST = "iris job run --zone us-east5-a -- python -m train"


@pytest.mark.parametrize(
    ("name", "region"),
    [
        ("us-east5-a", "us-east5"),
        ("marin-us-east5", "us-east5"),
        ("marin-eu-west4", "eu-west4"),
        ("europe-west4-b", "europe-west4"),
        ("us-east-1a", "us-east-1"),
        ("my-bucket-us-west-2", "us-west-2"),
        ("northamerica-northeast1-c", "northamerica-northeast1"),
        ("marin-us", ""),
        ("bus-east5", ""),
        ("v5p-8", ""),
        ("us-east5-to-us-central1", ""),
    ],
)
def test_a_region_is_read_from_a_name_only_where_it_is_sure(name: str, region: str) -> None:
    assert region_in(name) == region


@pytest.mark.parametrize(
    ("command", "root", "expected"),
    [
        (EAST, "gs://marin-us-east5/run", Pass),
        (EAST, "gs://marin-us-central1/run", Fail),
        ("iris job run --region=us-central1 -- train", "gs://marin-us-east5/run", Fail),
        ("iris job run --zone us-east5-a,us-central1-a -- train", "gs://marin-us-central1/run", Pass),
        (EAST, "gs://marin-us/run", NotApplicable),
        (EAST, "/data/us-central1/run", NotApplicable),
        ("iris job run -- train", "gs://marin-us-east5/run", NotApplicable),
    ],
)
def test_the_bucket_is_held_against_the_zone_only_where_both_are_recognised(
    command: str, root: str, expected: type
) -> None:
    assert isinstance(verdict(REGION, snapshot(), promised=contract(command=command, output_root=root)), expected)


def test_every_root_is_looked_at_and_only_while_a_job_lives() -> None:
    promised = contract(
        command=EAST, output_root="gs://marin-us-east5/run", resume_root="gs://marin-tmp-us-central1/run/checkpoints"
    )

    found = finding(REGION, snapshot(), promised=promised)

    assert found.summary == "the run saves into us-central1 from machines in us-east5"
    assert len(found.evidence) == 1
    assert isinstance(verdict(REGION, snapshot(jobs=job(JobState.FAILED)), promised=promised), NotApplicable)
    assert isinstance(verdict(REGION, snapshot(jobs=unknown()), promised=promised), UnknownVerdict)


def saves(*took_s: float, first: datetime | None = None, is_timed: bool = True) -> LogTail:
    """Return a log of saves a quarter of an hour apart; a save of 0 s does not end."""
    told: list[LogLine] = []
    for number, seconds in enumerate(took_s):
        at = (first or later(0)) + timedelta(minutes=15 * number)
        step = 100 * (number + 1)
        told.append(LogLine(text=f"Saving checkpoint at step {step}.", at=at if is_timed else None))
        if seconds:
            end = at + timedelta(seconds=seconds)
            text = f"Saved checkpoint to gs://b/step-{step} for step {step}"
            told.append(LogLine(text=text, at=end if is_timed else None))
    return LogTail(lines=tuple(told), is_cut=False)


def look(minutes: float, tail: LogTail) -> Snapshot:
    return snapshot(later(minutes), log=tail)


@pytest.mark.parametrize(
    ("took_s", "is_slow"),
    [
        ((60, 60, 60, 60), False),
        ((20, 20, 20, 170), False),
        ((60, 60, 60, 200), True),
        ((120, 120, 120, 350), False),
        ((120, 120, 120, 370), True),
        ((120, 800), False),
        ((1000,), True),
        ((600, 600, 600, 890), False),
    ],
)
def test_a_save_is_slow_beyond_three_times_the_usual_and_beyond_a_quarter_of_an_hour(
    took_s: tuple[float, ...], is_slow: bool
) -> None:
    assert isinstance(verdict(SLOW, look(120, saves(*took_s))), Fail) is is_slow


def test_a_save_that_goes_on_is_told_while_it_goes_on_and_a_fast_one_ends_it() -> None:
    going, done = saves(60, 60, 60, 60, 0), saves(60, 60, 60, 60, 700, 60)

    found = verdicts(SLOW, [look(62, going), look(63.5, going), look(75, done), look(77, done), look(78, saves())])

    assert [isinstance(each, Fail) for each in found] == [False, True, False, False, False]
    slow = finding(SLOW, look(62, going), look(63.5, going))
    assert slow.summary.startswith("the save of step 500 is not done after 3 min 30 s")
    assert "usually a save takes 1 min" in slow.evidence


def test_the_region_is_named_as_the_likely_cause_where_there_is_a_mismatch() -> None:
    promised = contract(command=EAST, output_root="gs://marin-us-central1/run")

    found = finding(SLOW, look(120, saves(1000)), promised=promised)

    assert "the bucket is in another region" in found.summary
    assert found.evidence[-1].startswith("likely cause: gs://marin-us-central1/run")


def test_without_times_a_save_counts_from_the_look_that_showed_it_and_seen_lines_are_not_taken_in_again() -> None:
    going, done = saves(60, 0, is_timed=False), saves(60, 60, is_timed=False)

    assert [isinstance(each, Fail) for each in verdicts(SLOW, [look(m, going) for m in (0, 15, 16)])] == [
        False,
        False,
        True,
    ]
    assert verdict(SLOW, look(0, going), look(16, done), look(200, done)) == Pass()


def test_another_launch_learns_its_own_and_what_cannot_be_read_is_no_pass() -> None:
    again = job(submitted_at=later(60))
    after = snapshot(later(61), jobs=again, launch=instance(1, submitted_at=later(60)), log="")

    assert isinstance(verdict(SLOW, look(20, saves(0)), after), NotApplicable)
    assert isinstance(verdict(SLOW, snapshot(log=unknown())), UnknownVerdict)
    assert isinstance(verdict(SLOW, snapshot(log=saves(60), jobs=unknown())), UnknownVerdict)
    assert isinstance(verdict(SLOW, snapshot(log=lines("Saving checkpoint soon"))), NotApplicable)
