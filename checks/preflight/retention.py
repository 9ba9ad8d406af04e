"""How many saved states are kept, and how much room they take."""

from collections.abc import Iterator

from bot.model.addresses import is_remote
from bot.model.contract import Basis, Contract, RunKind
from bot.model.preflight import PreflightFinding, PreflightValue, Preparation, Weight
from bot.model.reading import Known, Unknown
from bot.model.value import CheckId, Value
from bot.render.words import say_bytes
from checks.preflight.house import house_rule, is_demanded, shown, toml_of
from checks.preflight.item import Item, Told, stated, unseen

BYTES_PER_PARAMETER = 12
"""Of a checkpoint with Adam's state: weights, first and second moment, each a float of 4 bytes."""
_FORMULA = "parameters x (4 + 4 + 4) bytes: fp32 weights and Adam's two moments"
_TOLERANCE = 0.2
_MANY = 10


class Size(Value):
    """Of one checkpoint, and how that is known."""

    size_bytes: int
    basis: Basis
    how: str


def size_of(prepared: Preparation) -> Size | None:
    """Return what one checkpoint takes: measured, else stated, else estimated from the parameters."""
    contract, measured = prepared.contract, prepared.checkpoint_bytes
    if isinstance(measured, Known) and measured.value:
        return Size(size_bytes=measured.value, basis=Basis.MEASURED, how="of the newest complete checkpoint")
    if contract.checkpoint_bytes is not None:
        return Size(
            size_bytes=contract.checkpoint_bytes, basis=contract.basis_of("checkpoint_bytes"), how="by the contract"
        )
    if contract.params is not None:
        estimate = int(contract.params * BYTES_PER_PARAMETER)
        return Size(size_bytes=estimate, basis=Basis.INFERRED, how=f"estimated as {_FORMULA}")
    return None


# What is kept


def judge_retention(prepared: Preparation) -> Told:
    """Print what is kept; refuse nothing to resume from, and ask for more than the house keeps without being told."""
    contract = prepared.contract
    resume, milestones = contract.retention.resume, contract.retention.milestones
    values = (
        _kept(contract, "resume", str(resume)),
        _kept(contract, "milestones", ", ".join(map(str, milestones)) or "none"),
    )
    return Told(values=values, findings=tuple(_retention(prepared)))


def _kept(contract: Contract, field: str, value: str) -> PreflightValue:
    return stated(f"retention.{field}", value, contract.basis_within("retention", field))


def _retention(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract, most = prepared.contract, prepared.rules.most_resume
    resume = contract.retention.resume
    said = f"[retention] resume = {resume} ({contract.basis_within('retention', 'resume')})"
    if resume < 1:
        fix = f"keep one at least: [retention] resume = 1 in {toml_of(contract)}"
        yield RETENTION.finding(Weight.BLOCKS, f"{said}: there would be nothing to resume from", fix)
    elif resume > most:
        size = size_of(prepared)
        room = f", {say_bytes(size.size_bytes * resume)} ({size.basis})" if size else ""
        fix = f"keep {most} at most, or have the DRI approve a deeper rollback window"
        message = f"{said} is more than the {most} that are kept without the DRI's word{room}"
        yield RETENTION.finding(house_rule(prepared, Weight.ASKS), message, fix)
    yield from _milestones(prepared)
    is_production = contract.kind is RunKind.PRODUCTION and is_remote(contract.output_root)
    is_wanted = is_production or (is_demanded(prepared, contract.output_root) and _is_production(contract))
    if contract.export_root is None and is_wanted:
        fix = f"name export_root, below {shown(contract.output_root)}, in {toml_of(contract)}"
        message = "export_root is not stated: a production run keeps one durable canonical export"
        yield RETENTION.finding(house_rule(prepared, Weight.ASKS), message, fix)


def _is_production(contract: Contract) -> bool:
    return contract.effective_kind is RunKind.PRODUCTION


def _milestones(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract, milestones = prepared.contract, prepared.contract.retention.milestones
    last = contract.final_step
    never = [step for step in milestones if step < 1 or (last is not None and step > last)]
    if never:
        until = f" of {last}" if last is not None else ""
        message = f"[retention] milestones has step {', '.join(map(str, never))}, which the run{until} never reaches"
        yield RETENTION.finding(Weight.BLOCKS, message, f"correct the steps in {toml_of(contract)}")
    if len(milestones) > _MANY:
        size = size_of(prepared)
        room = f", {say_bytes(size.size_bytes * len(milestones))} ({size.basis})" if size else ""
        message = f"[retention] milestones keeps {len(milestones)} states for good{room}: sparse ones are meant"
        fix = "name fewer, or have the DRI accept them"
        yield RETENTION.finding(house_rule(prepared, Weight.ASKS), message, fix)


# How much that is


def judge_bytes(prepared: Preparation) -> Told:
    """Print the size of one checkpoint and of all that are kept; say what it rests on."""
    contract, size = prepared.contract, size_of(prepared)
    if size is None:
        values = [stated("checkpoint_bytes", None), stated("projected_resume_bytes", "not known")]
    else:
        kept = max(contract.retention.resume, 0)
        total = f"{say_bytes(size.size_bytes * kept)} ({kept} x {say_bytes(size.size_bytes)})"
        values = [
            stated("checkpoint_bytes", f"{say_bytes(size.size_bytes)} ({size.how})", size.basis),
            stated("projected_resume_bytes", total, size.basis),
        ]
        if contract.retention.milestones:
            count = len(contract.retention.milestones)
            milestones = f"{say_bytes(size.size_bytes * count)} ({count} x {say_bytes(size.size_bytes)})"
            values.append(stated("projected_milestone_bytes", milestones, size.basis))
    return Told(values=tuple(values), findings=tuple(_bytes(prepared, size)))


def _bytes(prepared: Preparation, size: Size | None) -> Iterator[PreflightFinding]:
    contract, measured = prepared.contract, prepared.checkpoint_bytes
    fix = f"state checkpoint_bytes, with the optimizer's state, or params in {toml_of(contract)}"
    is_needed = is_demanded(prepared, contract.output_root)
    if isinstance(measured, Unknown):
        if size is None and is_needed:
            yield unseen(BYTES.id, measured, "the size of a checkpoint")
        elif size is not None:
            message = f"the size of a checkpoint cannot be measured ({shown(measured.detail)}); {size.how} it is "
            yield BYTES.finding(Weight.NOTE, f"{message}{say_bytes(size.size_bytes)} ({size.basis})", fix)
        return
    if size is None and is_needed:
        message = "the size of a checkpoint is not known: none is complete yet, and checkpoint_bytes is not stated"
        yield BYTES.finding(house_rule(prepared, Weight.ASKS), message, fix)
    told = contract.checkpoint_bytes
    if measured.value and told is not None and abs(measured.value - told) > _TOLERANCE * measured.value:
        message = f"checkpoint_bytes = {say_bytes(told)} ({contract.basis_of('checkpoint_bytes')}), and the newest "
        message += f"complete checkpoint has {say_bytes(measured.value)} (measured)"
        yield BYTES.finding(Weight.NOTE, message, f"correct it in {toml_of(contract)}")


RETENTION = Item(
    id=CheckId("launch.retention"),
    title="One resume checkpoint, or two; a durable export; sparse milestones",
    source='manage-hero-run, "Launch": checkpoint retention policy',
    judge=judge_retention,
)
BYTES = Item(
    id=CheckId("launch.bytes"),
    title="Checkpoint size, and the room that resume checkpoints take",
    source='manage-hero-run, "Launch": checkpoint size estimate, resume retention count, projected resume bytes',
    judge=judge_bytes,
)
