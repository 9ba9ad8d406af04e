"""Where a run writes what stays: one fixed place, the caller's own, that holds nothing of an earlier run."""

import re
from collections.abc import Iterator

from bot.model.addresses import callers, is_own, is_remote, is_temporary
from bot.model.contract import RunKind
from bot.model.places import normalised, overlaps
from bot.model.preflight import PreflightFinding, Preparation, Weight
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
from checks.preflight.item import Item, Told

_FIELD = "output_root"
_OPTION = re.compile(r"(?:--?|\+)?(?:[\w.]+\.)?output[_-](?:root|path|dir)(?:=(.*))?", re.IGNORECASE)


def judge(prepared: Preparation) -> Told:
    """Refuse an output root that is not pinned, not the caller's, or an old one; it is printed as an identity."""
    return Told(findings=tuple(_findings(prepared)))


def _findings(prepared: Preparation) -> Iterator[PreflightFinding]:
    root = prepared.contract.output_root
    yield from unsound(OUTPUT, prepared, _FIELD, root)
    yield from _of_path(prepared)
    yield from _of_house(prepared)
    yield from _of_lifetime(prepared)
    yield from _of_command(prepared)
    yield from _of_storage(prepared)


def _of_path(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract, root = prepared.contract, prepared.contract.output_root
    if is_remote(root) or root.startswith(("/", "~", "$", "file:")):
        return
    if contract.orchestrator.kind != "local":
        fix = f"write an address, or an absolute path, into {toml_of(contract)}"
        message = f"{says(contract, _FIELD, root)} is relative: it depends on where the trainer is started"
        yield OUTPUT.finding(Weight.BLOCKS, message, fix)


def _of_house(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract, root, prefix = prepared.contract, prepared.contract.output_root, prepared.rules.prefix.rstrip("/")
    if not is_demanded(prepared, root) or is_own(root, contract, prepared.rules):
        return
    wanted = f"{prefix}/users/{callers(contract)[0]}/"
    yield OUTPUT.finding(
        house_rule(prepared, Weight.BLOCKS),
        f"{says(contract, _FIELD, root)} is not below {wanted}, as [launch] prefix demands",
        f"write a place below {wanted} into {toml_of(contract)}, and into the launched configuration",
    )


def _of_lifetime(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract, root = prepared.contract, prepared.contract.output_root
    found = location(prepared, _FIELD)
    days = found.expires_days if found else None
    is_marked = is_remote(root) and is_temporary(root, prepared.rules) and not (found and found.is_told)
    if days is None and not is_marked:
        return
    when = f"what lies there is deleted after {days} days (measured)" if days else "its path is temporary (inferred)"
    is_bounded = contract.effective_kind is RunKind.DIAGNOSTIC
    weight = Weight.NOTE if is_bounded else house_rule(prepared, Weight.BLOCKS)
    fix = f"write a durable place into {toml_of(contract)}; only resume checkpoints and traces are temporary"
    yield OUTPUT.finding(weight, f"{says(contract, _FIELD, root)} is no durable place: {when}", fix)


def _of_command(prepared: Preparation) -> Iterator[PreflightFinding]:
    """The trainer goes by its command, and the babysitter by the contract."""
    contract = prepared.contract
    mine = normalised(contract.output_root, contract.checkout)
    for name, given in _outputs(prepared.command):
        theirs = normalised(given, contract.checkout)
        if is_remote(given) == is_remote(contract.output_root) and not overlaps(mine, theirs):
            yield OUTPUT.finding(
                Weight.BLOCKS,
                f"the command says {name} {shown(given)} (stated), and the contract {shown(contract.output_root)}",
                f"correct the one that is wrong in {toml_of(contract)}",
            )


def _outputs(command: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for place, word in enumerate(command):
        found = _OPTION.fullmatch(word)
        if found is None:
            continue
        given = found[1] if found[1] is not None else next(iter(command[place + 1 : place + 2]), "")
        if "/" in given:
            yield word.partition("=")[0], given


def _of_storage(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract, root = prepared.contract, prepared.contract.output_root
    if gap(prepared, _FIELD) is not None:
        # Not to see what is there is not the same as nothing being there (field report R25).
        weight = Weight.UNKNOWN if is_remote(root) else Weight.NOTE
        yield unverified(prepared, OUTPUT, _FIELD, root, weight)
        return
    found = location(prepared, _FIELD)
    if found is None:
        return
    said = says(contract, _FIELD, root)
    if not found.has_bucket:
        message = f"{said}: there is no such bucket (measured)"
        yield OUTPUT.finding(Weight.BLOCKS, message, f"correct the address in {toml_of(contract)}")
    elif prepared.is_first and found.exists:
        weight = Weight.ASKS if is_remote(root) else Weight.NOTE
        fix = "name a place that nothing was written to, or have the DRI say that what lies there is this run's"
        yield OUTPUT.finding(weight, f"{said} holds something already (measured), and this is the first launch", fix)


OUTPUT = Item(
    id=CheckId("launch.output"),
    title="A pinned output root below the caller's own prefix",
    source='manage-hero-run, "Launch": pinned durable output root; "What Can Go Wrong": wrong output path',
    judge=judge,
)
