"""Where everything goes that is no output: what is temporary, the export, and what is spilled.

Resume checkpoints, traces and sessions belong where they are deleted by themselves, the export where nothing is
deleted, and what does not fit in memory on the node itself.
"""

import re
from collections.abc import Iterator

from bot.model.addresses import cluster_prefix, is_of_house, is_own, is_remote, is_temporary, ttl_days
from bot.model.contract import Basis, RunKind
from bot.model.places import normalised, overlaps
from bot.model.preflight import PreflightFinding, PreflightValue, Preparation, Weight
from bot.model.value import CheckId
from checks.preflight.house import (
    gap,
    house_rule,
    is_demanded,
    location,
    says,
    shown,
    toml_of,
    unsound,
    unverified,
)
from checks.preflight.item import Item, Told, stated

_TRANSIENT = ("resume_root", "traces_root", "session_root")
_FIELDS = (*_TRANSIENT, "export_root")
_NEEDED = frozenset({"resume_root", "export_root"})
_FLEETING = re.compile(r"spill|rendezvous|traces?|resume|session|checkpoint", re.IGNORECASE)


def judge(prepared: Preparation) -> Told:
    """Print the places, and refuse what would stay where it must go, or go where it must stay."""
    return Told(values=tuple(_values(prepared)), findings=tuple(_findings(prepared)))


def _values(prepared: Preparation) -> Iterator[PreflightValue]:
    contract = prepared.contract
    for field in (*_FIELDS, "spill"):
        address = getattr(contract, field)
        days, basis = lifetime(prepared, field) if address and field in _TRANSIENT else (None, Basis.STATED)
        kept = f", deleted after {days} days ({basis})" if days is not None else ""
        yield stated(field, f"{shown(address)}{kept}" if address else None, contract.basis_of(field))
    roots = contract.basis_of("checkpoint_roots") if contract.checkpoint_roots else Basis.INFERRED
    yield stated("checkpoint_roots", ", ".join(shown(each) for each in contract.roots), roots)


def lifetime(prepared: Preparation, field: str) -> tuple[int | None, Basis]:
    """Return after how many days what lies there is deleted: by the bucket's word, else by the path's own."""
    found = location(prepared, field)
    if found is not None and found.is_told:
        return found.expires_days, Basis.MEASURED
    address = getattr(prepared.contract, field) or ""
    return ttl_days(address), Basis.INFERRED


def _findings(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract = prepared.contract
    for field in _FIELDS:
        address = getattr(contract, field)
        if address:
            yield from _of_field(prepared, field, address)
    for number, root in enumerate(each for each in contract.checkpoint_roots if each != contract.resume_root):
        yield from _of_field(prepared, f"checkpoint_roots.{number}", root)
    yield from _missing(prepared)
    yield from _export(prepared)
    yield from _spill(prepared)
    yield from _command(prepared)


def _of_field(prepared: Preparation, field: str, address: str) -> Iterator[PreflightFinding]:
    yield from unsound(PLACES, prepared, field, address)
    if gap(prepared, field) is not None:
        is_needed = is_remote(address) and (field in _NEEDED or field.startswith("checkpoint_roots"))
        yield unverified(prepared, PLACES, field, address, Weight.UNKNOWN if is_needed else Weight.NOTE)
        return
    found = location(prepared, field)
    if found is not None and not found.has_bucket:
        message = f"{says(prepared.contract, field, address)}: there is no such bucket (measured)"
        yield PLACES.finding(Weight.BLOCKS, message, f"correct the address in {toml_of(prepared.contract)}")
    elif field in _TRANSIENT and is_demanded(prepared, address) and not cluster_prefix(address, prepared.rules):
        yield from _transient(prepared, field, address)


def _transient(prepared: Preparation, field: str, address: str) -> Iterator[PreflightFinding]:
    rules, said = prepared.rules, says(prepared.contract, field, address)
    if not is_remote(address) and not is_of_house(address, rules):
        if field == "resume_root":  # of traces and sessions it is right that they go with their node
            message = f"{said} is a path of the machines: whether it outlives them is not told (inferred)"
            fix = f"write a temporary prefix of the same region into {toml_of(prepared.contract)}"
            yield PLACES.finding(house_rule(prepared, Weight.ASKS), message, fix)
        return
    days, basis = lifetime(prepared, field)
    wanted = f"a temporary prefix of the same region whose rule deletes after {rules.temporary_days} days"
    fix = f"put it below {wanted}, e.g. tmp/ttl={rules.temporary_days}d/…, in {toml_of(prepared.contract)}"
    if days is None:
        is_marked = basis is Basis.INFERRED and is_temporary(address, rules)
        why = {
            Basis.MEASURED: "no lifecycle rule of its bucket deletes what lies there (measured)",
            Basis.INFERRED: "its path is temporary, and says no ttl (inferred)"
            if is_marked
            else "its path is durable (inferred)",
        }[basis]
        is_certain = basis is Basis.MEASURED or not is_marked
        weight = Weight.BLOCKS if is_certain and field == "resume_root" else Weight.ASKS
        yield PLACES.finding(house_rule(prepared, weight), f"{said} is no place that empties itself: {why}", fix)
    elif field == "resume_root" and days < rules.temporary_days:
        message = f"{said} is deleted after {days} days ({basis}), and {rules.temporary_days} are demanded"
        yield PLACES.finding(house_rule(prepared, Weight.ASKS), message, fix)


def _missing(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract = prepared.contract
    if not is_demanded(prepared, contract.output_root):
        return
    if contract.resume_root is None:
        yield PLACES.finding(
            house_rule(prepared, Weight.ASKS),
            "resume_root is not stated: rolling resume checkpoints would lie below the durable output root",
            f"write a temporary prefix with a ttl of {prepared.rules.temporary_days} days as resume_root into "
            f"{toml_of(contract)}",
        )


def _export(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract, address, rules = prepared.contract, prepared.contract.export_root, prepared.rules
    if not address:
        return
    said = says(contract, "export_root", address)
    found = location(prepared, "export_root")
    days = found.expires_days if found else None
    if days is not None or (is_remote(address) and is_temporary(address, rules) and not (found and found.is_told)):
        when = f"is deleted after {days} days (measured)" if days else "lies at a temporary path (inferred)"
        weight = Weight.BLOCKS if contract.effective_kind is RunKind.PRODUCTION else Weight.NOTE
        yield PLACES.finding(weight, f"{said} {when}, and the export is to stay", "name a durable place for it")
    if not is_demanded(prepared, address) or cluster_prefix(address, rules):
        return
    if not is_own(address, contract, rules):
        weight, fix = house_rule(prepared, Weight.BLOCKS), "put it below the run's own output root"
        yield PLACES.finding(weight, f"{said} is not below the caller's users/NAME/", fix)
    elif not overlaps(*(normalised(each, contract.checkout) for each in (address, contract.output_root))):
        message = f"{said} is not below output_root, where the canonical export belongs"
        yield PLACES.finding(house_rule(prepared, Weight.ASKS), message, "put it below the run's own output root")


def _spill(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract, path = prepared.contract, prepared.contract.spill
    if not path:
        return
    yield from unsound(PLACES, prepared, "spill", path)
    said = says(contract, "spill", path)
    fix = f"name a path on the node itself, e.g. {prepared.rules.local_prefixes[0]}…, in {toml_of(contract)}"
    if is_remote(path):
        yield PLACES.finding(Weight.BLOCKS, f"{said} is not on the node", fix)
    elif contract.orchestrator.kind == "local":
        return
    elif not path.startswith("/"):
        yield PLACES.finding(Weight.BLOCKS, f"{said} is relative: which disk it fills is left to chance", fix)
    elif not f"{path.rstrip('/')}/".startswith(prepared.rules.local_prefixes):
        message = f"{said} is below none of [launch] local_prefixes: it may be shared between the nodes (inferred)"
        yield PLACES.finding(house_rule(prepared, Weight.ASKS), message, fix)


def _command(prepared: Preparation) -> Iterator[PreflightFinding]:
    """What the command or its environment resolves to a cluster's prefix, whatever the contract says."""
    environment = tuple(f"{name}={value}" for name, value in sorted(prepared.contract.environment.items()))
    before = ""
    for word in (*prepared.command, *environment):
        name, equals, value = word.partition("=")
        name, address = (name, value) if equals else (before, word)
        part = cluster_prefix(address, prepared.rules)
        if part and _FLEETING.search(name):
            yield PLACES.finding(
                Weight.BLOCKS,
                f"the command says {name} {shown(address)} (stated), below {part}, which is durable and the cluster's",
                f"put it at a temporary prefix, or on the node, in {toml_of(prepared.contract)}",
            )
        before = word


PLACES = Item(
    id=CheckId("launch.places"),
    title="Resume checkpoints, traces, sessions, export and spill where they belong",
    source='manage-hero-run, "Launch": checkpoint retention policy; raw trace and session destinations; spill',
    judge=judge,
)
