"""The final training step, as the launched configuration or code resolves it; never from what a progress bar shows."""

import re
from collections.abc import Iterator

from bot.model.askedsteps import asked_steps
from bot.model.contract import Basis, RunKind
from bot.model.preflight import PreflightFinding, PreflightValue, Preparation, StepCount, Weight
from bot.model.reading import Known, Unknown
from bot.model.value import CheckId
from checks.preflight.house import house_rule, toml_of
from checks.preflight.item import Item, Told, stated, unseen

_BAR = re.compile(r"\bprogress[- ]?bars?\b|\btqdm\b", re.IGNORECASE)
_RESOLVE = "name [config] launch or [config] final_step_command in {}, so that it can be resolved"


def judge(prepared: Preparation) -> Told:
    """Hold the contract's final step against what will be launched."""
    return Told(values=tuple(_values(prepared)), findings=tuple(_findings(prepared)))


def _values(prepared: Preparation) -> Iterator[PreflightValue]:
    contract, found = prepared.contract, _resolved(prepared)
    if contract.final_step is None and found is not None:
        yield stated("final_step", f"{found.steps} (from {found.origin})", Basis.INFERRED)
        return
    if contract.final_step is None:
        yield stated("final_step", None)
        return
    if found is not None and _is_same(found.steps, contract.final_step):
        yield stated("final_step", f"{contract.final_step} (as {found.origin} says)", found.basis)
        return
    source = contract.final_step_source or "how it was found is not said"
    yield stated("final_step", f"{contract.final_step} ({source})", contract.basis_of("final_step"))


def _findings(prepared: Preparation) -> Iterator[PreflightFinding]:
    if isinstance(prepared.steps, Unknown):
        yield unseen(FINAL_STEP.id, prepared.steps, "the final step that will be trained to")
        return
    found, final = prepared.steps.value, prepared.contract.final_step
    if found is None:
        yield from _unresolved(prepared)
        return
    if final is None:
        yield _unstated(prepared, found)
    elif not _is_same(found.steps, final):
        yield _contradicted(prepared, found, final)
    yield from _overridden(prepared, found)


def _unresolved(prepared: Preparation) -> Iterator[PreflightFinding]:
    """Nothing that is launched tells."""
    contract = prepared.contract
    fix = _RESOLVE.format(toml_of(contract))
    is_production = contract.effective_kind is RunKind.PRODUCTION
    if contract.final_step is None:
        weight = house_rule(prepared, Weight.BLOCKS) if is_production else Weight.NOTE
        message = "no final_step is stated, and nothing that is launched tells one"
        yield FINAL_STEP.finding(weight, f"{message}: ETA, completion and the seal are judged by it", fix)
        return
    said = f"final_step = {contract.final_step} ({contract.basis_of('final_step')})"
    source = contract.final_step_source
    if _BAR.search(source):
        weight = house_rule(prepared, Weight.BLOCKS) if is_production else Weight.NOTE
        yield FINAL_STEP.finding(weight, f"{said} is from {source!r}: a progress bar rounds, or shows another end", fix)
    elif is_production and source and contract.basis_of("final_step") is Basis.INFERRED:
        message = f"{said}, by {source!r}, is not confirmed by anything that is launched"
        yield FINAL_STEP.finding(Weight.NOTE, message, fix)
    elif is_production and not source:
        message = f"{said} is not confirmed by anything that is launched, and final_step_source does not say how"
        yield FINAL_STEP.finding(house_rule(prepared, Weight.ASKS), message, f"{fix}; or say in final_step_source how")


def _unstated(prepared: Preparation, found: StepCount) -> PreflightFinding:
    message = f"no final_step is stated; {found.steps} from {found.origin} counts (inferred)"
    return FINAL_STEP.finding(Weight.NOTE, message, f"state final_step = {found.steps} in {toml_of(prepared.contract)}")


def _contradicted(prepared: Preparation, found: StepCount, final: int) -> PreflightFinding:
    contract = prepared.contract
    if _overriding(prepared) == final:
        message = f"{found.origin} says {found.steps} ({found.basis}), and the command overrides it with {final}"
        return FINAL_STEP.finding(Weight.NOTE, message, "nothing to do, if the trainer lets its arguments win")
    message = (
        f"final_step = {final} ({contract.basis_of('final_step')}) contradicts {found.steps} from {found.origin} "
        f"({found.basis})"
    )
    return FINAL_STEP.finding(Weight.BLOCKS, message, f"correct the one that is wrong in {toml_of(contract)}, or there")


def _overridden(prepared: Preparation, found: StepCount) -> Iterator[PreflightFinding]:
    """The command asks for another end than what it launches with."""
    contract, asked = prepared.contract, _overriding(prepared)
    if asked is None or _is_same(asked, found.steps) or asked == contract.final_step:
        return
    if contract.final_step is not None and not _is_same(found.steps, contract.final_step):
        return  # that is told already
    weight = Weight.BLOCKS if contract.final_step is not None else Weight.ASKS
    message = f"the command asks for {asked} steps (stated), and {found.origin} says {found.steps} ({found.basis})"
    yield FINAL_STEP.finding(weight, message, f"let both say the same, and state final_step in {toml_of(contract)}")


def _overriding(prepared: Preparation) -> int | None:
    contract = prepared.contract
    asked = asked_steps(contract.command, contract.config.keys.get("final_step"))
    return asked.steps if asked else None


def _resolved(prepared: Preparation) -> StepCount | None:
    return prepared.steps.value if isinstance(prepared.steps, Known) else None


def _is_same(steps: int, final: int) -> bool:
    """Steps are counted from 0 or from 1."""
    return abs(steps - final) <= 1


FINAL_STEP = Item(
    id=CheckId("launch.final_step"),
    title="The final step, as what is launched resolves it",
    source='manage-hero-run, "Launch": final training step; "What Can Go Wrong": final-step misunderstanding',
    judge=judge,
)
