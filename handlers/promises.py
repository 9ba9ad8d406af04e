"""What a run's contract promises, as it goes on the run's record. Pure; source: manage-hero-run, "Run Record"."""

import json
from collections.abc import Mapping

from bot.model.chronicle import Change, Fact
from bot.model.code import CodeState
from bot.model.contract import Basis, Contract
from bot.model.reading import Known
from bot.model.run import Instance
from bot.model.snapshot import Snapshot
from bot.render.words import say_bytes

PEOPLE = ("dri", "deputies", "owner")
RETENTION = ("retention",)

_STATED = (
    ("source SHA", "source_sha"),
    ("source bundle", "bundle"),
    ("hardware", "hardware"),
    ("output root", "output_root"),
    ("resume root", "resume_root"),
    ("export root", "export_root"),
    ("traces root", "traces_root"),
    ("session root", "session_root"),
    ("spill", "spill"),
    ("datasets", "datasets"),
    ("initialize from", "initialize_from"),
)
"""What is shown of the contract as it stands there: the procedure's word, the field."""


def promise_of(contract: Contract, shape: Mapping[str, str]) -> dict[str, str]:
    """Return the contract field by field as JSON text, to be compared with the next one.

    Args:
        contract: the run's.
        shape: its fields that shape a launch, secrets scrubbed.
    """
    people = contract.model_dump(mode="json", include=set(PEOPLE))
    return {**shape, **{name: json.dumps(value) for name, value in people.items()}}


def changes_of(before: Mapping[str, str], now: Mapping[str, str], fields: tuple[str, ...]) -> tuple[Change, ...]:
    """Say which of the fields have become another."""
    return tuple(
        Change(field=name, before=_plain(before.get(name)) or "not set", after=_plain(now.get(name)) or "not set")
        for name in fields
        if before.get(name) != now.get(name)
    )


def launch_facts(instance: Instance, contract: Contract, seen: Snapshot | None, *, code: str = "") -> tuple[Fact, ...]:
    """Return every field that the procedure wants on record for an instance, each with its basis.

    Args:
        instance: with the contract's shape at its launch, secrets scrubbed.
        contract: for who looks after the run, and for what is only inferred.
        seen: what was read when the launch was seen; None for a launch that was just made.
        code: what the plan of a launch that was just made says of the checkout.
    """
    shape = instance.shape
    return (
        Fact(label="kind", value=contract.effective_kind, basis=_basis_or_inferred(contract, "kind")),
        _fact("command", shape.get("command"), contract.basis_of("command")),
        _fact("environment added", shape.get("environment"), Basis.STATED),
        *(_fact(label, _plain(shape.get(field)), contract.basis_of(field)) for label, field in _STATED),
        _checkpoint_roots(contract, shape),
        _working_tree(seen, contract, code),
        _fact("DRI", contract.dri, contract.basis_of("dri")),
        _fact("deputies", ", ".join(contract.deputies), contract.basis_of("deputies")),
        _fact("monitoring owner", contract.owner or contract.dri, _basis_or_inferred(contract, "owner")),
        _tracker(shape),
        _tracker_seen(seen),
        *_saved_bytes(contract, shape),
        _fact("starts at step", None if instance.from_step is None else str(instance.from_step), Basis.MEASURED),
        _fact("final step", _final_step(contract, shape), contract.basis_of("final_step")),
    )


def _fact(label: str, value: str | None, basis: Basis) -> Fact:
    return Fact(label=label, value=value, basis=basis) if value else Fact(label=label, value=None)


def _basis_or_inferred(contract: Contract, field: str) -> Basis:
    """Return how a field is known for which Hero takes something else when it is not given."""
    return contract.basis_of(field) if getattr(contract, field) else Basis.INFERRED


def _checkpoint_roots(contract: Contract, shape: Mapping[str, str]) -> Fact:
    """Where checkpoints are looked for, as the launch had it (``Contract.roots``)."""
    output, given, resume = (
        json.loads(shape.get(f, "null")) for f in ("output_root", "checkpoint_roots", "resume_root")
    )
    below = [f"{output.rstrip('/')}/checkpoints"] if output else []
    roots = dict.fromkeys((*(given or below), *([resume] if resume else ())))
    return _fact(
        "checkpoint roots", ", ".join(roots), contract.basis_of("checkpoint_roots") if given else Basis.INFERRED
    )


def _plain(text: str | None) -> str | None:
    """Return a field's JSON text as people write it; None for a field that is not set."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return text or None
    match value:
        case None | [] | {} | "":
            return None
        case str():
            return value
        case list() if all(isinstance(each, str) for each in value):
            return ", ".join(value)
        case _:
            return text


def _working_tree(seen: Snapshot | None, contract: Contract, code: str) -> Fact:
    """What git said of the checkout when the launch was seen or planned; else what the contract says of it."""
    label = "working tree"
    if seen is not None and isinstance(seen.code, Known):
        return Fact(label=label, value=_say_tree(seen.code.value), basis=Basis.MEASURED)
    if code:
        tree = code if " " in code else f"nothing that counts differs from {code}"
        return Fact(label=label, value=tree, basis=Basis.MEASURED)
    if contract.dirty_approved:
        return Fact(label=label, value="changes that are not committed are approved", basis=Basis.STATED)
    return Fact(label=label, value=None)


def _say_tree(code: CodeState) -> str:
    if not code.dirty:
        return f"clean, at {code.head}"
    return f"{len(code.dirty)} files differ from {code.head}, patch sha256 {code.patch_sha256}"


def _tracker(shape: Mapping[str, str]) -> Fact:
    tracker = json.loads(shape.get("tracker", "null")) or {}
    words = [
        f"{name} {tracker[name]}" for name in ("mode", "entity", "project", "id", "name", "resume") if tracker.get(name)
    ]
    return _fact("tracker identity", ", ".join(words), Basis.STATED)


def _tracker_seen(seen: Snapshot | None) -> Fact:
    if seen is None or not isinstance(seen.tracker, Known) or not seen.tracker.value.id:
        return Fact(label="tracker run", value=None)
    run = seen.tracker.value
    return Fact(label="tracker run", value=f"{run.id}, {run.name}, {run.url}", basis=Basis.MEASURED)


def _saved_bytes(contract: Contract, shape: Mapping[str, str]) -> tuple[Fact, ...]:
    kept = json.loads(shape.get("retention", "null")) or {}
    count, milestones = kept.get("resume"), kept.get("milestones") or []
    said = None if count is None else f"{count} to resume from"
    if said and milestones:
        said += f", milestones {', '.join(str(step) for step in milestones)}"
    size = json.loads(shape.get("checkpoint_bytes", "null"))
    projected = say_bytes(size * count) if size and count else None
    return (
        _fact("retention", said, contract.basis_within("retention", "resume")),
        _fact("checkpoint size", say_bytes(size) if size else None, contract.basis_of("checkpoint_bytes")),
        _fact("projected resume bytes", projected, Basis.INFERRED),
    )


def _final_step(contract: Contract, shape: Mapping[str, str]) -> str | None:
    step = _plain(shape.get("final_step"))
    return f"{step}, from {contract.final_step_source}" if step and contract.final_step_source else step
