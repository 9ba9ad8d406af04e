"""The checkpoint that a run starts from: the very one that is meant, complete, of the lineage that is meant."""

import re
from collections.abc import Iterator

from bot.model.addresses import is_remote, is_temporary, last_part, parent_of, step_in
from bot.model.contract import Basis
from bot.model.places import normalised, overlaps, places_of
from bot.model.preflight import PreflightFinding, PreflightValue, Preparation, Weight
from bot.model.reading import Known, Unknown
from bot.model.snapshot import Checkpoint, newest_complete
from bot.model.value import CheckId
from checks.preflight.house import house_rule, says, shown, toml_of, unsound
from checks.preflight.item import Item, Told, stated, unseen

_FIELD = "initialize_from"
_HUB = re.compile(r"(?:hf://)?[\w.-]+/[\w.-]+(?:@[\w.-]+)?", re.ASCII)
_EXPORT = re.compile(r"(?:^|/)(?:hf|export|exports|safetensors)(?:/|$)", re.IGNORECASE)
_OPTION = re.compile(r"(?:--?|\+)?(?:[\w.]+\.)?initiali[sz]e[_-]from(?:[_-]checkpoint(?:[_-]path)?)?(?:=(.*))?")


def judge(prepared: Preparation) -> Told:
    """Print the checkpoint, its step and what else lies beside it; refuse any other than the newest sound one."""
    return Told(values=tuple(_values(prepared)), findings=tuple(_findings(prepared)))


def _values(prepared: Preparation) -> Iterator[PreflightValue]:
    contract = prepared.contract
    address = contract.initialize_from
    if address is None:
        yield stated(_FIELD, "none: the run starts from nothing", contract.basis_of(_FIELD))
        return
    yield stated(_FIELD, shown(address), contract.basis_of(_FIELD))
    yield stated("initialize_from.step", step_in(address), Basis.INFERRED)
    yield stated("initialize_from.run", _owner(prepared) or "not known", Basis.INFERRED)
    mine = _itself(prepared)
    metadata = "not known" if mine is None else ("present, and names that step" if mine.is_complete else mine.fault)
    yield stated("initialize_from.metadata", metadata, Basis.MEASURED if mine else Basis.INFERRED)


def _findings(prepared: Preparation) -> Iterator[PreflightFinding]:
    address = prepared.contract.initialize_from
    yield from _command(prepared)
    if address is None or _goes_on(prepared):
        return  # a run that has states of its own does not read this one again
    yield from unsound(START, prepared, _FIELD, address)
    if step_in(address) is None:
        yield _no_step(prepared, address)
        return
    yield from _of_lineage(prepared, address)
    match prepared.start:
        case Unknown() as reason:
            yield unseen(START.id, reason, f"whether {_said(prepared)} is complete")
        case Known():
            yield from _of_itself(prepared)


def _goes_on(prepared: Preparation) -> bool:
    found = prepared.seen.checkpoints
    return not prepared.is_first and isinstance(found, Known) and newest_complete(found.value) is not None


def _said(prepared: Preparation) -> str:
    return says(prepared.contract, _FIELD, prepared.contract.initialize_from or "")


def _no_step(prepared: Preparation, address: str) -> PreflightFinding:
    contract = prepared.contract
    if _is_of_hub(prepared, address):
        message = f"{_said(prepared)} is a model of a hub: no step and no metadata.json of it can be verified"
        fix = "name a trainer's own checkpoint, …/step-N, or have the DRI accept that it starts from this one"
        return START.finding(Weight.ASKS, message, fix)
    newest = newest_complete(prepared.start.value) if isinstance(prepared.start, Known) else None
    within = newest is not None and parent_of(_plain(newest.path)) == _plain(_place(prepared, address))
    hint = f"; the newest complete one in it is {last_part(newest.path)} (measured)" if newest and within else ""
    what = "an export, which holds no state of the optimizer" if _EXPORT.search(address) else "no step-N"
    message = f"{_said(prepared)} names no numeric step: its last part, {last_part(shown(address))}, is {what}{hint}"
    return START.finding(Weight.BLOCKS, message, f"write the one checkpoint, …/step-N, into {toml_of(contract)}")


def _is_of_hub(prepared: Preparation, address: str) -> bool:
    """Whether it names a model of a hub; a path below the checkout that is there, or may be, is none."""
    if address.startswith("hf://"):
        return True
    if address.startswith(("/", ".")) or not _HUB.fullmatch(address):
        return False
    holds_steps = isinstance(prepared.start, Known) and bool(prepared.start.value)
    match prepared.locations.get(_FIELD):
        case Known(value=there):
            return not there.exists and not holds_steps
        case Unknown():
            return False
        case None:
            return not holds_steps


def _itself(prepared: Preparation) -> Checkpoint | None:
    address = prepared.contract.initialize_from
    if address is None or isinstance(prepared.start, Unknown):
        return None
    name = last_part(address)
    return next((each for each in prepared.start.value if last_part(each.path) == name), None)


def _of_itself(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract, said, mine = prepared.contract, _said(prepared), _itself(prepared)
    if isinstance(prepared.start, Unknown):
        return
    newest = newest_complete(prepared.start.value)
    other = f"the newest complete one beside it is {last_part(newest.path)} (measured)" if newest else "none is there"
    if mine is None:
        fix = f"correct it in {toml_of(contract)}; {other}"
        yield START.finding(Weight.BLOCKS, f"{said} does not exist (measured)", fix)
    elif not mine.is_complete:
        fix = f"name a complete one in {toml_of(contract)}; {other}"
        yield START.finding(Weight.BLOCKS, f"{said} is not complete (measured): {mine.fault}", fix)
    else:
        yield from _of_complete(prepared, mine, newest or mine)


def _of_complete(prepared: Preparation, mine: Checkpoint, newest: Checkpoint) -> Iterator[PreflightFinding]:
    contract, said = prepared.contract, _said(prepared)
    is_meant = contract.basis.get(_FIELD) is Basis.STATED or prepared.trial_of is not None
    if newest.step > mine.step:
        message = f"{said} is not the newest: {last_part(newest.path)} is complete beside it (measured)"
        fix = f'name that one in {toml_of(contract)}; if the older one is meant: [basis] {_FIELD} = "stated"'
        yield START.finding(Weight.NOTE if is_meant else Weight.BLOCKS, message, fix)
    if mine.fault:
        fix = "have it looked at, or have the DRI accept it as it is"
        yield START.finding(Weight.ASKS, f"{said}: {mine.fault} (measured)", fix)
    later = [each for each in _siblings(prepared) if each.step > newest.step]
    if later:
        names = ", ".join(last_part(each.path) for each in later[:3])
        message = f"beside {said} lies {names}, newer and not complete (measured): {later[0].fault}"
        yield START.finding(Weight.NOTE, message, "nothing to do, if the source run ended in the middle of that save")
    if mine.is_temporary or is_temporary(contract.initialize_from or "", prepared.rules):
        how = Basis.MEASURED if mine.is_temporary else Basis.INFERRED
        weight = Weight.ASKS if prepared.rules.prefix else Weight.NOTE
        message = f"{said} is temporary ({how}): it may be deleted before this run has saved anything"
        yield START.finding(weight, message, "name the permanent one, or keep this one from being deleted")


def _siblings(prepared: Preparation) -> tuple[Checkpoint, ...]:
    return prepared.start.value if isinstance(prepared.start, Known) else ()


def _owner(prepared: Preparation) -> str:
    """Return the run that the checkpoint is of, by its places; empty when no contract or record tells."""
    place = _place(prepared, prepared.contract.initialize_from or "")
    return next(
        (other.run_id for other in prepared.others if any(_is_within(place, each) for each in other.places)), ""
    )


def _of_lineage(prepared: Preparation, address: str) -> Iterator[PreflightFinding]:
    """Whose checkpoint it is, as far as the contracts tell."""
    contract, place = prepared.contract, _place(prepared, address)
    if _owner(prepared):
        return
    if any(_is_within(place, mine) for _, mine in places_of(contract)):
        message = f"{_said(prepared)} lies in this run's own places: is it a new run, or one that is resumed?"
        fix = "leave initialize_from out to resume; for a new run name places of its own"
        yield START.finding(Weight.ASKS, message, fix)
    else:
        message = f"{_said(prepared)}: whose it is cannot be told, no run that Hero knows has such a place (inferred)"
        weight = house_rule(prepared, Weight.ASKS) if prepared.rules.prefix else Weight.NOTE
        fix = "add the contract of the run that it is from, or have the DRI accept its lineage"
        yield START.finding(weight, message, fix)


def _is_within(place: str, root: str) -> bool:
    return overlaps(place, root) and len(root) <= len(place)


def _command(prepared: Preparation) -> Iterator[PreflightFinding]:
    """What the trainer is told must be what the contract says."""
    contract = prepared.contract
    for place, word in enumerate(prepared.command):
        found = _OPTION.fullmatch(word)
        if found is None:
            continue
        given = found[1] if found[1] is not None else next(iter(prepared.command[place + 1 : place + 2]), "")
        if "/" not in given or is_remote(given) is not is_remote(contract.initialize_from or given):
            continue
        mine = contract.initialize_from
        if mine is None or _plain(_place(prepared, given)) != _plain(_place(prepared, mine)):
            message = f"the command starts from {shown(given)} (stated), and {_FIELD} is {shown(mine or 'not stated')}"
            fix = f"correct the one that is wrong in {toml_of(contract)}"
            yield START.finding(house_rule(prepared, Weight.BLOCKS), message, fix)


def _place(prepared: Preparation, address: str) -> str:
    return normalised(address, prepared.contract.checkout)


def _plain(place: str) -> str:
    """Return a place without what file systems write differently: ``memory:///a`` and ``memory://a`` are one."""
    scheme, found, rest = place.partition("://")
    return f"{scheme}://{rest.strip('/')}" if found else place.rstrip("/")


START = Item(
    id=CheckId("launch.start"),
    title="A start from the newest complete checkpoint of the accepted lineage",
    source='manage-hero-run, "Launch": initialize_from, parsed step, metadata.json; "What Can Go Wrong": wrong '
    "checkpoint selected",
    judge=judge,
)
