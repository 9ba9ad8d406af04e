"""monitor.stale: Hero's own blindness, told apart from the run's health."""

from datetime import timedelta

from bot.model.reading import Gap, Known
from bot.model.snapshot import Snapshot
from bot.model.verdict import Fail, Pass, Severity, UnknownVerdict
from checks.monitor import SLEPT, STALE
from tests.fakes.clock import START
from tests.fakes.snapshots import AT, blind, contract, later, snapshot, unknown
from tests.unit.checks.story import finding, verdict, verdicts


def test_everything_readable_passes() -> None:
    assert verdict(STALE, snapshot(), snapshot(later(15))) == Pass()


def test_a_source_may_be_dark_for_two_cadences() -> None:
    dark = [snapshot(later(m), metrics=unknown(at=later(m))) for m in (0, 15, 30, 45)]

    found = verdicts(STALE, [snapshot(later(-15)), *dark])

    assert [type(each) for each in found] == [Pass, UnknownVerdict, UnknownVerdict, UnknownVerdict, Fail]


def test_the_finding_names_source_reason_and_time_and_accuses_nobody() -> None:
    dark = [snapshot(later(m), metrics=unknown(at=later(m)), log=unknown(at=later(m))) for m in (0, 15, 31)]

    found = finding(STALE, *dark)

    assert found.severity is Severity.WARNING
    assert found.key == "log,metrics"
    assert found.summary.startswith("Hero cannot see log, metrics of this run since 2026-11-29 04:00 UTC (31 min,")
    assert "this says nothing about the run itself" in found.summary
    assert "metrics: timeout, no answer in 20 s (since 04:00 UTC)" in found.evidence
    assert not found.is_recoverable


def test_a_source_that_is_back_before_the_others_makes_no_second_incident_and_one_more_that_goes_dark_does() -> None:
    """Else each change of what is dark would be told as one outage that is over and another that begins."""

    def looks(first: int, *blind_to: str) -> list[Snapshot]:
        seen = [snapshot(later(m)) for m in (first, first + 31)]
        return [each.model_copy(update={source: unknown(at=each.at) for source in blind_to}) for each in seen]

    both, one, again, more = (
        looks(0, "log", "metrics"),
        looks(62, "metrics"),
        looks(124, "log", "metrics"),
        looks(186, "log", "metrics", "checkpoints"),
    )

    assert finding(STALE, *both).key == "log,metrics"
    assert finding(STALE, *both, *one).key == "log,metrics"
    assert finding(STALE, *both, *one, *again).key == "log,metrics"
    assert finding(STALE, *both, *one, *again, *more).key == "log,metrics,checkpoints"
    assert finding(STALE, *both, snapshot(later(62)), *looks(93, "metrics")).key == "metrics"


def test_one_answer_in_between_starts_the_count_again() -> None:
    looks = [blind(later(0)), blind(later(15)), snapshot(later(30)), blind(later(45)), blind(later(60))]

    assert not any(isinstance(each, Fail) for each in verdicts(STALE, looks))


def test_an_answer_that_is_as_old_as_a_silence_counts_as_one() -> None:
    """The process lives and answers, but what it answers was true hours ago."""
    old = snapshot().model_copy(update={"metrics": Known(value=snapshot().metrics.value, at=START)})  # type: ignore[union-attr]

    found = finding(STALE, old)

    assert found.key == "metrics"
    assert "the newest answer is of 2026-11-29 03:00 UTC" in found.evidence[0]


def test_a_host_that_slept_is_told_once_and_the_run_is_not_blamed() -> None:
    looks = [snapshot(), snapshot(later(200)), snapshot(later(215))]

    found = verdicts(STALE, looks)

    assert [type(each) for each in found] == [Pass, Fail, Pass]
    assert finding(STALE, *looks[:2]).key == SLEPT
    assert "did not look at this run for 3 h 20 min" in finding(STALE, *looks[:2]).summary
    assert "says nothing about the run" in finding(STALE, *looks[:2]).summary


def test_a_run_with_another_cadence_has_another_limit() -> None:
    daily = contract(cadence={"check": "1d"})

    assert verdict(STALE, snapshot(), snapshot(later(60 * 30)), promised=daily) == Pass()


def test_a_source_that_nobody_configured_is_not_stale() -> None:
    looks = [snapshot(later(15 * i), metrics=unknown(Gap.NOT_CONFIGURED)) for i in range(5)]

    assert verdicts(STALE, looks) == [Pass()] * 5


def test_a_run_of_which_nothing_is_configured_is_not_fine() -> None:
    assert isinstance(verdict(STALE, blind(reason=Gap.NOT_CONFIGURED)), UnknownVerdict)


def test_a_clock_that_went_back_is_no_sleep() -> None:
    assert verdict(STALE, snapshot(), snapshot(AT - timedelta(hours=5))) == Pass()
