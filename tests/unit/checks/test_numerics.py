"""numerics.nonfinite: at once, never recoverable, and it does not blink."""

import math

import pytest

from bot.model.snapshot import MetricRow, Metrics
from bot.model.verdict import Fail, NotApplicable, Pass, Severity, UnknownVerdict
from checks.numerics import NONFINITE
from tests.fakes.snapshots import contract, failed_job, instance, job, later, row, rows, snapshot, unknown
from tests.unit.checks.story import finding, verdict, verdicts


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["loss", "grad_norm", "lr"])
def test_one_bad_value_of_any_figure_is_critical_at_once(name: str, value: float) -> None:
    found = finding(
        NONFINITE, snapshot(metrics=[*rows(1, 5), MetricRow(step=6, values={"loss": 2.0, name: value}), row(7)])
    )

    assert found.severity is Severity.CRITICAL
    assert found.since_step == 6
    assert found.summary == f"{name} not finite since step 6"
    assert f"step 6: {name} {value}" in found.evidence
    assert "last finite row before: step 5, loss 2" in found.evidence
    assert not found.is_recoverable
    assert "Do not relaunch" in found.advice


def test_it_stays_until_so_many_steps_were_finite_again() -> None:
    bad = snapshot(metrics=[row(10, loss=math.nan)])

    found = verdicts(
        NONFINITE, [bad, *(snapshot(later(15 * i), metrics=[row(step)]) for i, step in enumerate((11, 110, 111), 1))]
    )

    assert [isinstance(each, Fail) for each in found] == [True, True, True, False]
    assert found[-1] == Pass()


def test_a_second_bad_value_restarts_the_count_and_is_the_same_incident() -> None:
    story = [
        snapshot(metrics=[row(10, loss=math.nan)]),
        snapshot(later(15), metrics=[*rows(11, 60), row(61, loss=math.inf)]),
        snapshot(later(30), metrics=rows(62, 120)),
    ]

    found = finding(NONFINITE, *story)

    assert found.since_step == 10
    assert "step 61: loss inf; 2 such rows so far" in found.evidence
    assert found.key == finding(NONFINITE, story[0]).key


def test_it_outlives_the_job_that_died_of_it() -> None:
    story = [snapshot(metrics=[row(10, loss=math.nan)]), snapshot(later(15), jobs=failed_job(1))]

    assert isinstance(verdict(NONFINITE, *story), Fail)


def test_a_new_instance_is_judged_by_its_own_rows() -> None:
    bad = snapshot(metrics=[row(10, loss=math.nan)])
    again = job(submitted_at=later(30))

    found = verdicts(
        NONFINITE, [bad, snapshot(later(31), jobs=again), snapshot(later(45), jobs=again, metrics=[row(5)])]
    )

    assert [type(each) for each in found] == [Fail, NotApplicable, Pass]


def test_unreadable_lines_may_hold_the_nan_and_do_not_pass() -> None:
    """Field report R21: a comparison that silently evaluates to "fine"."""
    seen = snapshot(metrics=Metrics(rows=rows(1, 5), unreadable=3))

    assert isinstance(verdict(NONFINITE, seen), UnknownVerdict)


def test_metrics_that_cannot_be_read_say_nothing_either_way() -> None:
    assert isinstance(verdict(NONFINITE, snapshot(metrics=unknown())), UnknownVerdict)


def test_a_contract_may_clear_it_sooner() -> None:
    promised = contract(thresholds={"numerics.nonfinite": {"clear_steps": 5}})
    seen = snapshot(metrics=[row(10, loss=math.nan), *rows(11, 16)])

    assert verdict(NONFINITE, seen, promised=promised) == Pass()


def test_an_unanswered_question_about_the_job_hides_no_nan_and_forgets_none() -> None:
    """The launch on record may lag behind: a gap must not bring back the memory of the instance before."""
    again, old = job(submitted_at=later(30)), instance()
    dark = snapshot(later(45), jobs=unknown(), launch=old, metrics=[row(6, loss=math.nan)])
    story = [snapshot(), snapshot(later(31), jobs=again, metrics=[row(5)]), dark]

    found = finding(NONFINITE, *story, snapshot(later(60), jobs=again))

    assert found.since_step == 6
    assert found.key == again.instance_id
    assert finding(NONFINITE, *story).key == again.instance_id
