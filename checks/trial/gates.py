"""One gate, judged: pass, fail, or cannot tell yet.

It fails as soon as the differences are shown to be beyond the limit, at whatever look. It passes at the end of the
window alone, with every agreed step there on both sides, two runs whose figure says something, and differences that
are shown to be within the limit. Everything else is "cannot tell".
"""

import math

import numpy as np

from bot.model.gate import Gate, Reduce
from bot.model.series import NOTHING, Figure
from bot.model.trial import Judged, Outcome, Window, finite
from checks.trial.itself import is_too_often
from checks.trial.measures import Measured, measure, scale_of
from checks.trial.rows import Pairs, Side, pair_up, take_side
from checks.trial.sequence import FEWEST_BLOCKS

_FEWEST_FOR_PAIRING = 20
_PAIRED = 0.5
_NAMED = 5
"""So many missing steps are named."""
FEWEST_FOR_ALL = 10
"""That every step is on one side of the limit says something of the rest from so many steps on: by chance it would be
so once in a thousand times."""


@np.errstate(all="ignore")  # what overflows is infinite or NaN, and neither passes anything
def judge_gate(
    gate: Gate,
    control: tuple[Figure | None, int],
    child: tuple[Figure | None, int],
    window: Window,
    alpha: float,
) -> Judged:
    """Judge one gate.

    Args:
        gate: what was agreed.
        control: the old run's figure, None where it has none, and which execution counts.
        child: the new run's.
        window: the steps that are compared.
        alpha: how likely this gate may be to fail two runs that are the same.
    """
    mine = take_side(control[0] or NOTHING, control[1], window)
    theirs = take_side(child[0] or NOTHING, child[1], window)
    pairs = pair_up(mine, theirs, window, every=gate.every, warmup_rows=gate.warmup_rows)
    judged = Judged(
        gate=gate,
        outcome=Outcome.CANNOT_TELL,
        reasons=("nothing to compare",),
        pairs=len(pairs.steps),
        covered=pairs.covered,
        expected=pairs.expected,
        stride=pairs.stride,
        control=mine.counts,
        child=theirs.counts,
    )
    lost = _lost(pairs)
    if not pairs.steps.size:
        found = lost or _missing(gate, control[0], child[0], pairs)
        return judged.model_copy(update={"outcome": _outcome(bool(lost)), "reasons": found})
    judged = judged.model_copy(update=_plain_deltas(pairs))
    scale = scale_of(gate, pairs.control)
    if gate.is_relative and (scale == 0 or not math.isfinite(scale)):
        found = lost or (f"the control's mean is {scale:g}, and a share of that is nothing",)
        return judged.model_copy(update={"outcome": _outcome(bool(lost)), "reasons": found})
    measured = measure(gate, pairs, alpha)
    outcome, reasons = _conclude(gate, measured, pairs, alpha)
    return judged.model_copy(
        update={
            "outcome": Outcome.FAIL if lost else outcome,
            "reasons": (*lost, *reasons, *_remarks(gate, pairs)),
            "delta": finite(measured.delta),
            "low": finite(measured.low),
            "high": finite(measured.high),
            "margin": finite(measured.margin),
            "blocks": measured.blocks,
            "failed_first_at": measured.failed_first_at,
            "doubt": measured.doubt,
        }
    )


def _outcome(fails: bool) -> Outcome:  # noqa: FBT001 - one caller's one word
    return Outcome.FAIL if fails else Outcome.CANNOT_TELL


def _conclude(gate: Gate, measured: Measured, pairs: Pairs, alpha: float) -> tuple[Outcome, tuple[str, ...]]:
    gaps = (*_gaps(gate, pairs), *flat(gate, pairs), *_still(gate, pairs))
    is_whole = pairs.covered == pairs.expected and pairs.ended and pairs.covered >= FEWEST_FOR_ALL
    if is_whole and measured.all_beyond:
        return Outcome.FAIL, ("every single step is beyond the limit",)
    if measured.doubt is not None and is_too_often(measured.doubt, alpha) and not (is_whole and measured.all_within):
        rate = f"{measured.doubt.swapped:.1%} of equal runs made of these rows, and {alpha:.1%} are agreed"
        return Outcome.CANNOT_TELL, (f"the judge's own error is too large here: it fails {rate}",)
    if measured.fails:
        where = f" from step {measured.failed_first_at} on" if measured.failed_first_at is not None else ""
        return Outcome.FAIL, (f"beyond the limit{where}",)
    if gaps:
        return Outcome.CANNOT_TELL, gaps
    return _settle(gate, measured, is_whole=is_whole)


def _settle(gate: Gate, measured: Measured, *, is_whole: bool) -> tuple[Outcome, tuple[str, ...]]:
    """Conclude where everything that was agreed is there, and nothing was shown to be wrong."""
    if measured.holds and gate.reduce is not Reduce.MAX:
        return Outcome.PASS, ("the whole interval is within the limit",)
    if measured.all_within and is_whole:
        return Outcome.PASS, ("every single step is within the limit",)
    if measured.holds:
        return Outcome.PASS, ("every step that is there is within the limit",)
    return Outcome.CANNOT_TELL, (_open(gate, measured),)


def _open(gate: Gate, measured: Measured) -> str:
    if gate.reduce is Reduce.MEAN and measured.blocks < FEWEST_BLOCKS:
        return f"{measured.blocks} blocks of steps are too few for an interval; {FEWEST_BLOCKS} are needed"
    if measured.drifts:
        return "the differences drift: neighbouring steps are too alike to tell a mean from its wandering"
    return "the interval reaches over the limit: the steps differ too much among themselves to tell"


def _lost(pairs: Pairs) -> tuple[str, ...]:
    """Say where the child's value is no number while the control's is."""
    steps = pairs.child_not_finite
    if not steps.size:
        return ()
    more = f" and {steps.size - 1} more" if steps.size > 1 else ""
    return (f"the child's value is NaN or infinite at step {steps[0]}{more}, where the control's is finite",)


def _missing(gate: Gate, control: Figure | None, child: Figure | None, pairs: Pairs) -> tuple[str, ...]:
    empty = [
        f"the {name} {'has none in the window' if figure is not None and figure.steps.size else 'never logged it'}"
        for name, figure, side in zip(("control", "child"), (control, child), pairs.sides, strict=True)
        if not side.counts.rows
    ]
    if empty:
        return tuple(f"{gate.metric}: {each}" for each in empty)
    return (*_gaps(gate, pairs),) or ("the two runs share no step at which both values are finite",)


def _say_missing(pairs: Pairs) -> str:
    """Name the first due steps that one side lacks, once both have logged all that they will of the window."""
    if not pairs.ended:
        return ""
    due = np.arange(pairs.first_expected, pairs.last_expected + 1, pairs.stride or 1)
    said = []
    for name, side in zip(("control", "child"), pairs.sides, strict=True):
        lacking = np.setdiff1d(due, side.steps, assume_unique=True)
        if lacking.size:
            more = f" and {lacking.size - _NAMED} more" if lacking.size > _NAMED else ""
            said.append(f"missing in the {name}: {', '.join(map(str, lacking[:_NAMED]))}{more}")
    if not said:
        return ""
    late = " (a trainer that logs a step before it saves it begins one later: [trial] first_step)"
    begins = pairs.sides[1].steps.size > 0 and int(pairs.sides[1].steps[0]) == pairs.first_expected + 1
    return f"; {'; '.join(said)}{late if begins else ''}"


def _gaps(gate: Gate, pairs: Pairs) -> tuple[str, ...]:
    """Say what of the agreed steps is not there."""
    if pairs.stride is None:
        return ("so few rows that nobody can say how often it is logged",)
    if not pairs.expected:
        return ("the window has no row left to compare behind the warm-up",)
    needed = math.ceil(gate.coverage * pairs.expected - 1e-9)
    said: list[str] = []
    if pairs.covered < needed:
        how = "" if pairs.stride == 1 else f", one in {pairs.stride}"
        said.append(f"{pairs.covered} of {pairs.expected} steps{how}, and {needed} are needed{_say_missing(pairs)}")
    said += [
        f"the {name} has come to step {'none' if side.reached is None else side.reached}, "
        f"and the window goes to {pairs.last_expected}"
        for name, side in zip(("control", "child"), pairs.sides, strict=True)
        if side.reached is None or side.reached < pairs.last_expected
    ]
    if said:
        said += _odd("control", pairs.sides[0]) + _odd("child", pairs.sides[1])
    return tuple(said)


def _odd(name: str, side: Side) -> list[str]:
    counts = side.counts
    return [
        f"the {name} has {count} {what}"
        for count, what in (
            (counts.contradictions, "steps with rows that contradict each other"),
            (counts.not_finite, "steps that are NaN or infinite"),
        )
        if count
    ]


def flat(gate: Gate, pairs: Pairs) -> tuple[str, ...]:
    """Say why a control that never changes is nothing to compare with; ``pairs`` has at least one."""
    low, high = pairs.control.min(), pairs.control.max()
    if low != high:
        return ()
    if low == 0:
        return ("the control is 0 at every step, which is nothing to compare with",)
    if gate.may_be_flat:
        return ()
    return (f"the control is {low:g} at every step; say `flat` behind the gate where that is meant to be",)


def _still(gate: Gate, pairs: Pairs) -> tuple[str, ...]:
    """Say why a child that never changes says nothing; a constant control is judged by ``flat``, and by itself."""
    low, high = pairs.child.min(), pairs.child.max()
    if low != high:
        return ()
    does_control_move = pairs.control.min() != pairs.control.max()
    if low == 0 and (does_control_move or pairs.control[0] != 0):
        return (f"the child's {gate.metric} is 0 at every step, and the control's is not: is it measured at all?",)
    if does_control_move and pairs.steps.size > 1:
        return (f"the child's {gate.metric} is one and the same at every step, {low:g}, and the control's changes",)
    return ()


def _remarks(gate: Gate, pairs: Pairs) -> tuple[str, ...]:
    """Say what makes one doubt that these are two runs on the same batches."""
    if np.array_equal(pairs.control, pairs.child):
        return ("equal to the last bit at every step: are these rows of two runs? An inherited history proves nothing",)
    if gate.metric == "loss" and pairs.steps.size >= _FEWEST_FOR_PAIRING:
        mine, theirs = np.diff(pairs.control), np.diff(pairs.child)
        together = float(np.mean(mine * theirs) / np.sqrt(np.mean(mine**2) * np.mean(theirs**2)))
        if together < _PAIRED:
            return (f"from step to step the losses move together by only {together:.2f}: are these the same batches?",)
    return ()


def _plain_deltas(pairs: Pairs) -> dict[str, object]:
    deltas = pairs.child - pairs.control
    largest = int(np.argmax(np.abs(deltas)))
    return {
        "mean_delta": finite(float(deltas.mean())),
        "max_delta": finite(float(deltas[largest])),
        "max_step": int(pairs.steps[largest]),
    }
