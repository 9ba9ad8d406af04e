"""What the run is put on: the contract's word against what the command requests."""

import re
from collections.abc import Iterator, Sequence

from bot.model.contract import Basis
from bot.model.preflight import PreflightFinding, PreflightValue, Preparation, Weight
from bot.model.value import CheckId
from checks.preflight.item import Item, Told, stated

_TPU = re.compile(r"v\d+[a-z]*-\d+", re.IGNORECASE)
_REQUESTS = ("--tpu", "--gpu")


def judge(prepared: Preparation) -> Told:
    """Print the hardware, and refuse a command that requests another slice than the contract names."""
    return Told(values=(_value(prepared),), findings=tuple(_findings(prepared)))


def requested(command: Sequence[str]) -> tuple[str, ...]:
    """Return the accelerators that a command of ``iris job run`` requests, before the program's own words."""
    words = command[: list(command).index("--")] if "--" in command else command
    found: list[str] = []
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in _REQUESTS:
            value = value if equals else next(iter(words[place + 1 : place + 2]), "")
            found += [each.strip() for each in value.split(",") if each.strip()]
    return tuple(found)


def _value(prepared: Preparation) -> PreflightValue:
    contract = prepared.contract
    if contract.hardware is not None:
        return stated("hardware", contract.hardware, contract.basis_of("hardware"))
    if contract.orchestrator.kind == "local":
        return stated("hardware", "the machine that Hero runs on", Basis.INFERRED)
    return stated("hardware", ", ".join(requested(prepared.command)), Basis.INFERRED)


def _findings(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract = prepared.contract
    if contract.orchestrator.kind != "iris":
        return
    named = {each.lower() for each in _TPU.findall(contract.hardware or "")}
    asked = {each.lower() for each in requested(prepared.command) if _TPU.fullmatch(each)}
    if named and asked and not named & asked:
        yield HARDWARE.finding(
            Weight.BLOCKS,
            f"hardware = {contract.hardware} ({contract.basis_of('hardware')}), and the command requests "
            f"{', '.join(sorted(asked))}",
            f"correct the one that is wrong in runs/{contract.run_id}.toml",
        )
    if contract.hardware is None and not requested(prepared.command):
        fix = f"state `hardware` in runs/{contract.run_id}.toml"
        yield HARDWARE.finding(Weight.NOTE, "hardware is not stated, and the command requests no accelerator", fix)


HARDWARE = Item(
    id=CheckId("launch.hardware"),
    title="The hardware that the command requests",
    source='manage-hero-run, "Run Record": hardware/topology; "What Can Go Wrong": wrong TPU type requested',
    judge=judge,
)
