"""A whole comparison: what several gates say together, executions told apart, and what else happened."""

import numpy as np
import pytest

from bot.model.gate import parse_gate
from bot.model.series import Figure, History
from bot.model.trial import Comparison, Happened, Outcome, worst
from checks.trial.compare import compare
from tests.unit.checks.trial.runs import STEPS, WINDOW, batches, figure, noise

_CALM = Happened(crashes=0, retries=0, watchdogs=0, alerts=0)
_CONTROL = History({"loss": figure(batches(1)), "mfu": figure(0.4 + noise(3)[0])})
_SAME = History({"loss": figure(batches(1) + noise(501, sd=1e-4)[0]), "mfu": figure(0.4 + noise(4)[0])})


def _compare(child: History, *gates: str, happened: Happened | None = _CALM, control: History = _CONTROL) -> Comparison:
    return compare(control, child, tuple(map(parse_gate, gates)), WINDOW, alpha=0.05, happened=happened)


def test_all_gates_must_pass() -> None:
    both = _compare(_SAME, "loss mean <= +0.001", "mfu mean >= -2%")
    one = _compare(_SAME, "loss mean <= +0.001", "mfu mean >= +2%")
    open_ = _compare(_SAME, "loss mean <= +0.001", "grad_norm mean <= +2%")

    assert both.outcome is Outcome.PASS
    assert one.outcome is Outcome.FAIL
    assert open_.outcome is Outcome.CANNOT_TELL


def test_no_gate_passes_nothing() -> None:
    assert worst(()) is Outcome.CANNOT_TELL
    assert _compare(_SAME).outcome is Outcome.CANNOT_TELL


def test_the_error_is_shared_out_among_the_gates_that_infer() -> None:
    alone, beside = (
        _compare(_SAME, *gates).gates[0] for gates in (("loss mean <= +1",), ("loss mean <= +1", "mfu p50 <= 1"))
    )
    facts = _compare(_SAME, "loss mean <= +1", "mfu max <= 1").gates[0]

    assert alone.high is not None
    assert beside.high is not None
    assert beside.high > alone.high
    assert facts.high == alone.high


def test_only_the_newest_execution_is_compared_and_the_others_are_told() -> None:
    bad = Figure(STEPS[:50], np.zeros(50, np.int64), batches(1)[:50] + 1)
    good = figure(_SAME.figures["loss"].values, execution=2)
    child = History({"loss": Figure(*(np.concatenate(both) for both in _columns(bad, good)))})

    found = _compare(child, "loss mean <= +0.001")

    assert found.gates[0].outcome is Outcome.PASS
    assert found.gates[0].child is not None
    assert found.gates[0].child.other_executions == 50
    assert "attempts 0, 2 of the child logged steps of the window; only 2, the newest, is compared" in found.notes


def _columns(one: Figure, other: Figure) -> tuple[tuple[np.typing.NDArray[np.generic], ...], ...]:
    return ((one.steps, other.steps), (one.executions, other.executions), (one.values, other.values))


def test_a_window_that_two_attempts_share_is_whole_for_neither() -> None:
    first = Figure(STEPS[:120], np.zeros(120, np.int64), batches(1)[:120])
    second = Figure(STEPS[100:], np.ones(100, np.int64), batches(1)[100:])
    child = History({"loss": Figure(*(np.concatenate(both) for both in _columns(first, second)))})

    found = _compare(child, "loss mean <= +0.001")

    assert found.gates[0].outcome is Outcome.CANNOT_TELL
    missing = "missing in the child: 1000, 1001, 1002, 1003, 1004 and 95 more"
    assert found.gates[0].reasons[0] == f"100 of 200 steps, and 200 are needed; {missing}"


def test_a_child_that_begins_one_step_later_is_told_apart_from_one_that_lost_a_row() -> None:
    late = History({"loss": Figure(STEPS[1:], np.zeros(199, np.int64), batches(1)[1:])})
    kept = np.delete(np.arange(200), 77)
    holed = History({"loss": Figure(STEPS[kept], np.zeros(199, np.int64), batches(1)[kept])})

    begins, lost = (_compare(each, "loss mean <= +0.001").gates[0].reasons[0] for each in (late, holed))

    assert "missing in the child: 1000 (" in begins
    assert "[trial] first_step" in begins
    assert lost.endswith("missing in the child: 1077")


def test_a_retry_that_the_rows_show_fails_even_where_nobody_counted() -> None:
    child = History(
        {
            "loss": Figure(
                *(np.concatenate(both) for both in _columns(figure(batches(1)), figure(batches(1), execution=1)))
            )
        }
    )

    for happened in (None, _CALM, Happened()):
        found = _compare(child, "loss mean <= +0.001", happened=happened)

        assert found.quiet is not None
        assert (found.quiet.outcome, found.outcome) == (Outcome.FAIL, Outcome.FAIL)
        assert found.quiet.reasons == ("1 retries",)


@pytest.mark.parametrize("name", ["crashes", "retries", "watchdogs", "alerts"])
def test_what_happened_fails_and_what_nobody_counted_passes_nothing(name: str) -> None:
    gate = "loss mean <= +0.001"

    assert _compare(_SAME, gate, happened=_CALM.model_copy(update={name: 1})).outcome is Outcome.FAIL
    assert _compare(_SAME, gate, happened=_CALM.model_copy(update={name: None})).outcome is Outcome.CANNOT_TELL
    assert _compare(_SAME, gate, happened=None).outcome is Outcome.PASS


def test_figures_without_a_gate_are_told_all_the_same() -> None:
    (moved,) = _compare(_SAME, "loss mean <= +0.001").others

    deltas = _SAME.figures["mfu"].values - _CONTROL.figures["mfu"].values
    assert moved.metric == "mfu"
    assert moved.mean_delta == pytest.approx(deltas.mean())
    assert abs(moved.max_delta) == pytest.approx(np.abs(deltas).max())


def test_a_child_that_begins_behind_the_windows_first_step_is_told_at_its_first_row() -> None:
    """It logged a step before it saved it, and nobody agreed on a ``first_step``: waiting for that row is in vain."""
    late = History({name: figure(each.values[1:4], each.steps[1:4]) for name, each in _SAME.figures.items()})
    retried = History({name: figure(each.values[1:4], each.steps[1:4], 2) for name, each in _SAME.figures.items()})
    lost = Figure(STEPS[1:2], np.zeros(1, np.int64), batches(1)[1:2])
    again = History({"loss": Figure(*(np.concatenate(both) for both in _columns(lost, retried.figures["loss"])))})

    (said,) = _compare(late, "loss mean <= +0.001", "mfu mean >= -2%").notes

    assert said.startswith("the child's loss, mfu begins with step 1001 and not with 1000")
    assert "`[trial] first_step = 1001`" in said
    assert not any("begins" in note for note in _compare(again, "loss mean <= +0.001").notes)
    assert _compare(_SAME, "loss mean <= +0.001").notes == ()
