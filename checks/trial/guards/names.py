"""That a gate judges the figure that was agreed: the runs' own names for it are those of the plan."""

from collections.abc import Iterator, Mapping

from bot.model.agreed_names import names_of, say_names
from bot.model.contract import Contract
from bot.model.gate import parse_gate
from bot.model.rehearsal import Rehearsal
from bot.model.value import CheckId
from checks.trial.guards.guard import Group, Guard, Word, all_of, cannot_tell, fails


def _names(rehearsal: Rehearsal) -> Word:
    plan = rehearsal.plan
    good = f"the old run: {say_names(plan.control_names)}; the child: {say_names(plan.child_names)}"
    return all_of(good, _against_names(rehearsal))


def _against_names(rehearsal: Rehearsal) -> Iterator[Word]:
    plan = rehearsal.plan
    metrics = tuple(_metrics(plan.gates))
    yield from _changed(rehearsal.contract, plan.control_names, metrics)
    if rehearsal.child is None:
        yield cannot_tell("the child has no contract that can be used", f"mend runs/{plan.child_run_id}.toml")
    else:
        yield from _changed(rehearsal.child, plan.child_names, metrics)


def _metrics(written: tuple[str, ...]) -> Iterator[str]:
    for text in written:
        try:
            yield parse_gate(text).metric
        except ValueError:
            continue  # ``plan.gates`` says so


def _changed(contract: Contract, agreed: Mapping[str, str], metrics: tuple[str, ...]) -> Iterator[Word]:
    file = f"runs/{contract.run_id}.toml"
    if not agreed:
        yield fails(f"by which names the gated figures of {file} are read was not agreed", "agree on the plan anew")
        return
    now = names_of(contract, metrics)
    fix = "agree on the plan anew, or correct [metrics]; until then the agreed names are read"
    for word in dict.fromkeys((*agreed, *now)):
        if now.get(word) != agreed.get(word):
            yield fails(f"{word} is {now.get(word)} in [metrics] of {file}, {agreed.get(word)} was agreed", fix)


NAMES = Guard(
    id=CheckId("plan.metrics"),
    title="The gated figures are read by the names that were agreed, in both runs",
    source='deploy checklist, "Agree the plan": explicit gates, so what they are about is explicit too',
    group=Group.PLAN,
    rule=_names,
)
