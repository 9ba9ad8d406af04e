"""What the child is judged by: gates for loss and for speed, each in the direction that protects, and quiet."""

from collections.abc import Iterator

from bot.model.contract import MetricsContract
from bot.model.gate import Direction, Gate, parse_gate
from bot.model.rehearsal import Rehearsal
from bot.model.value import CheckId
from checks.trial.compare import share_of
from checks.trial.guards.guard import Group, Guard, Word, all_of, fails
from checks.trial.reach import what_is_open, why_it_cannot_pass

_LOSS = ("loss",)
_FAST = ("tokens_per_second", "mfu")
_SLOW = ("step_time_s",)
_NAMED_GAPS = {
    "token drops": ("token_drops",),
    "router metrics": ("router_entropy", "router_z_loss", "router_bias", "router_bias_min"),
}
"""What the procedure has gates for beside loss and speed; a run without a router has none of it."""


def _gates(rehearsal: Rehearsal) -> Word:
    gates, problems = _parsed(rehearsal.plan.gates)
    names = rehearsal.contract.metrics
    missing = [what for what, words in _NAMED_GAPS.items() if not any(_is_of(gate, words, names) for gate in gates)]
    if not any(gate.tolerance < 0 for gate in gates):
        missing.append("the change's intended effect")
    gap = f"; no gate is about {', '.join(missing)}" if missing else ""
    share = share_of(rehearsal.plan.alpha, gates)
    found = (what_is_open(gate, rehearsal.plan.window_steps, share) for gate in gates)
    doubt = "".join(f"; {each}" for each in found if each)
    good = f"{len(gates)} gates and quiet: {'; '.join(rehearsal.plan.gates)}{gap}{doubt}"
    return all_of(good, (*problems, *_against_gates(rehearsal, gates)))


def _parsed(written: tuple[str, ...]) -> tuple[tuple[Gate, ...], tuple[Word, ...]]:
    gates: list[Gate] = []
    problems: list[Word] = []
    for text in written:
        try:
            gates.append(parse_gate(text))
        except ValueError as error:
            problems.append(fails(str(error), "correct it in [trial] gates"))
    return tuple(gates), tuple(problems)


def _against_gates(rehearsal: Rehearsal, gates: tuple[Gate, ...]) -> Iterator[Word]:
    names = rehearsal.contract.metrics
    if not any(_is_of(gate, _LOSS, names) and gate.direction is not Direction.DOWN for gate in gates):
        yield fails("no gate keeps the loss from rising", 'add one to [trial] gates, e.g. "loss mean <= +0.002"')
    fast = any(_is_of(gate, _FAST, names) and gate.direction is not Direction.UP for gate in gates)
    slow = any(_is_of(gate, _SLOW, names) and gate.direction is not Direction.DOWN for gate in gates)
    if not fast and not slow:
        yield fails(
            "no gate keeps throughput, MFU or step time from getting worse",
            'add one to [trial] gates, e.g. "tokens_per_second mean >= -1%"',
        )
    steps = rehearsal.plan.window_steps
    for gate in gates:
        if why := why_it_cannot_pass(gate, steps, share_of(rehearsal.plan.alpha, gates)):
            yield fails(why, "set [trial] window_steps higher, or correct the gate's `every` and `skip`")
    if not rehearsal.plan.quiet:
        yield fails("that there is no crash, retry, watchdog or alert was not made a gate", "set [trial] quiet = true")


def _is_of(gate: Gate, words: tuple[str, ...], names: MetricsContract) -> bool:
    """Whether a gate is about one of the figures, by Hero's word for it or by a name that the run has for it."""
    further = names.further()
    own = (getattr(names, word) for word in words if word in MetricsContract.model_fields)
    usual = (name for word in words for name in further.get(word, ()))
    return gate.metric in {*words, *own, *usual}


GATES = Guard(
    id=CheckId("plan.gates"),
    title="There are gates for loss and for throughput, MFU or step time, each can pass, and quiet is one",
    source='deploy checklist, "Agree the plan": explicit gates, with tolerances and expected directions',
    group=Group.PLAN,
    rule=_gates,
)
