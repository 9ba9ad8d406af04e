"""Whether the control window is whole: nothing is stopped on a maybe."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.gate import parse_gate
from bot.model.planned import PlannedCheckpoint
from bot.model.series import Figure, Floats, History, Ints, RunRows
from bot.model.trial import Outcome, Window
from bot.model.trialplan import TrialPlan
from checks.trial.compare import compare
from checks.trial.control import ControlKind, ControlSays, judge_control
from tests.fakes.rehearsals import trial_plan
from tests.unit.checks.trial.runs import FIRST, STEPS, batches

TENTH = np.arange(FIRST, FIRST + 200, 10)
_LAST = FIRST + 199


def plan(*gates: str, **fields: Any) -> TrialPlan:
    handoff = PlannedCheckpoint(step=FIRST, path="s3://bucket/hero/step-1000")
    given: dict[str, Any] = {"handoff": handoff, "window_steps": 200, "gates": gates or ("loss mean <= +0.002",)}
    return trial_plan(**(given | fields))


def logged(steps: Ints = STEPS, values: Floats | None = None, execution: int = 0) -> Figure:
    found = batches(size=len(steps)) if values is None else values
    return Figure(steps, np.full(len(steps), execution, np.int64), found)


def both(*parts: Figure) -> Figure:
    return Figure(
        np.concatenate([each.steps for each in parts]),
        np.concatenate([each.executions for each in parts]),
        np.concatenate([each.values for each in parts]),
    )


def rows(names: tuple[str, ...] = ("iris:one",), **figures: Figure) -> RunRows:
    newest = max((int(figure.steps.max()) for figure in figures.values() if figure.steps.size), default=None)
    return RunRows(History(figures), names, newest)


def judge(found: RunRows, *gates: str, executions: frozenset[str] | None = None, **fields: Any) -> ControlSays:
    return judge_control(found, plan(*gates, **fields), executions=executions)


def test_it_is_complete_with_every_due_row_of_every_gated_figure() -> None:
    found = rows(loss=logged(), mfu=logged(TENTH))

    says = judge(found, "loss mean <= +0.002", "mfu mean >= -1%", "mfu max <= +1%")

    assert (says.outcome, says.kind, says.last_step) == (Outcome.PASS, ControlKind.COMPLETE, _LAST)
    assert says.detail == "steps 1000 to 1199 are recorded by iris:one, each figure as often as it is due"
    assert says.lines == ("loss: 200 of 200 steps", "mfu: 20 of 20 steps, one in 10")


def test_until_then_it_says_how_far_it_is() -> None:
    says = judge(rows(loss=logged(STEPS[:150]), mfu=logged(TENTH[:15])), "loss mean <= +0.002", "mfu mean >= -1%")

    assert (says.outcome, says.kind, says.last_step) == (Outcome.CANNOT_TELL, ControlKind.WAITING, 1149)
    assert says.detail.startswith("recorded up to step 1149 of 1199 by iris:one; 50 due rows")
    assert says.lines[1] == "mfu: 15 of 20 steps, one in 10; recorded up to step 1140 of 1190"


@given(st.integers(0, 199))
def test_without_its_last_rows_it_is_never_complete(kept: int) -> None:
    says = judge(rows(loss=logged(STEPS[:kept])))

    assert says.outcome is Outcome.CANNOT_TELL
    assert says.last_step == (FIRST + kept - 1 if kept else None)


@given(st.sets(st.integers(0, 199), min_size=1, max_size=30))
def test_with_a_hole_it_is_complete_only_as_far_as_the_gate_allows(holes: set[int]) -> None:
    """Whatever is missing, the control and the judge of the gates agree on whether enough is there."""
    kept = np.array([n for n in range(200) if n not in holes])
    found = rows(loss=logged(STEPS[kept], batches()[kept]))
    gate = "loss mean <= +0.5 coverage 90%"

    says = judge(found, gate)

    same = History({"loss": logged(STEPS, batches() + 1e-3)})
    judged = compare(found.history, same, (parse_gate(gate),), Window(first_step=FIRST), alpha=0.05, happened=None)
    assert (says.outcome is Outcome.PASS) == (judged.outcome is Outcome.PASS)


@pytest.mark.parametrize(
    ("figure", "kind", "why"),
    [
        (logged(np.delete(STEPS, 77)), "gap", "1 are missing for good"),
        (logged(STEPS[40:]), "gap", "40 are missing for good"),
        (logged(STEPS[40:90]), "behind", "first row of the window is of step 1040"),
        (logged(values=np.where(STEPS == 1050, math.nan, batches())), "gap", "1 NaN or infinite"),
        (both(logged(), Figure(STEPS[9:10], np.zeros(1, np.int64), np.ones(1))), "gap", "1 logged with several values"),
        (logged(values=np.zeros(200)), "flat", "0 at every step"),
        (logged(values=np.full(200, 80.0)), "flat", "say `flat`"),
        (logged(STEPS[-1:]), "unlogged", "so few rows"),
    ],
)
def test_what_can_never_become_whole_fails(figure: Figure, kind: str, why: str) -> None:
    says = judge(rows(loss=figure))

    assert (says.outcome, says.kind) == (Outcome.FAIL, kind)
    assert why in says.detail


def test_a_figure_that_is_never_logged_fails_once_the_window_is_over() -> None:
    early = judge(rows(loss=logged(STEPS[:50])), "loss mean <= +1", "mfu mean >= -1%")
    late = judge(rows(loss=logged()), "loss mean <= +1", "mfu mean >= -1%")

    assert (early.outcome, late.outcome) == (Outcome.CANNOT_TELL, Outcome.FAIL)
    assert (early.kind, late.kind) == (ControlKind.WAITING, ControlKind.UNLOGGED)
    assert late.detail == "mfu: 0 of 0 steps; it is not logged"


def test_a_control_may_be_constant_where_that_is_agreed_on() -> None:
    assert judge(rows(loss=logged(values=np.full(200, 80.0))), "loss max <= +1% flat").outcome is Outcome.PASS


def test_a_gate_that_names_the_figure_as_the_tracker_does_finds_it() -> None:
    assert judge(rows(moe_drop_fraction=logged(TENTH)), "moe/drop_fraction mean <= +1%").outcome is Outcome.PASS


def test_after_a_restart_inside_the_window_only_a_newest_execution_that_has_it_all_will_do() -> None:
    names = ("iris:one", "iris:two")
    first, second = logged(STEPS[:120]), batches()

    anew = judge(rows(names, loss=both(first, logged(STEPS, second, 1))))
    under_way = judge(rows(names, loss=both(first, logged(STEPS[:60], second[:60], 1))))
    behind = judge(rows(names, loss=both(first, logged(STEPS[100:130], second[100:130], 1))))

    assert (anew.outcome, under_way.outcome, behind.outcome) == (Outcome.PASS, Outcome.CANNOT_TELL, Outcome.FAIL)
    assert (anew.kind, under_way.kind, behind.kind) == ("complete", "waiting", "restarted")
    assert "first row of the window is of step 1100, behind 1000" in behind.detail
    for says in (anew, under_way, behind):
        assert says.lines[0].startswith("the old run restarted inside the window: iris:one, iris:two logged")


def test_a_restart_beyond_the_window_changes_nothing() -> None:
    later = logged(np.arange(1300, 1400), execution=1)

    assert judge(rows(("iris:one", "iris:two"), loss=both(logged(), later))).outcome is Outcome.PASS


def test_rows_of_somebody_who_is_not_the_old_run_are_no_control() -> None:
    """Field report R37: rows of another execution under the same run id."""
    names = ("iris:before", "iris:own", "iris:rival")
    own, rival = logged(execution=1), logged(execution=2)
    known = frozenset({"iris:own"})

    strange = judge(rows(names, loss=both(own, rival)), executions=known)
    earlier = judge(rows(names, loss=logged()), executions=known)
    unnamed = judge(rows(("attempt 1",), loss=logged()), executions=known)

    assert (strange.outcome, strange.kind) == (Outcome.CANNOT_TELL, ControlKind.STRANGER)
    assert "iris:rival" in strange.detail
    assert (earlier.outcome, unnamed.outcome) == (Outcome.PASS, Outcome.PASS)


def test_rows_that_were_cut_and_plans_without_a_gate_tell_nothing() -> None:
    whole = rows(loss=logged())

    cut = judge(RunRows(whole.history, whole.executions, whole.newest_step, is_cut=True))
    bare = judge_control(whole, plan().model_copy(update={"gates": ()}), executions=None)

    assert cut.outcome is bare.outcome is Outcome.CANNOT_TELL
    assert (cut.kind, bare.kind) == (ControlKind.CUT, ControlKind.NO_GATE)


def test_while_a_control_that_began_too_late_is_logged_on_its_kind_stays() -> None:
    """The detail may move at each look; people are told of a kind once."""
    names = ("iris:one", "iris:two")
    looks = [
        judge(rows(names, loss=both(logged(STEPS[:120]), logged(STEPS[110:n], batches(size=n - 110), 1))))
        for n in (*range(112, 200, 11), 200)
    ]

    assert {each.outcome for each in looks} == {Outcome.FAIL}
    assert {each.kind for each in looks} == {ControlKind.RESTARTED}


@given(
    st.lists(
        st.tuples(
            st.integers(FIRST - 5, FIRST + 25), st.integers(0, 2), st.sampled_from((0.0, 1.0, 2.5, math.nan, math.inf))
        ),
        max_size=60,
    ),
    st.sampled_from(("loss mean <= +1", "loss max <= +1 skip 3 every 2 flat", "loss p95 within 2% coverage 50%")),
)
def test_whatever_was_logged_no_gate_misses_a_row_of_a_control_that_is_complete(
    given_rows: list[tuple[int, int, float]], gate: str
) -> None:
    steps, executions, values = (np.array([row[i] for row in given_rows]) for i in range(3))
    found = rows(
        ("a", "b", "c"), loss=Figure(steps.astype(np.int64), executions.astype(np.int64), values.astype(np.float64))
    )

    says = judge(found, gate, window_steps=20)

    agreed, window = parse_gate(gate), Window(first_step=FIRST, steps=20)
    (judged,) = compare(found.history, found.history, (agreed,), window, alpha=0.05, happened=None).gates
    if says.outcome is Outcome.PASS:
        assert judged.covered >= agreed.coverage * judged.expected > 0
