"""What several items say of an address: its finding's words, and how much a house's rule weighs now. Pure."""

import re
from collections.abc import Iterator

from bot.model.addresses import cluster_prefix, is_remote, open_mark
from bot.model.contract import Contract
from bot.model.preflight import Location, PreflightFinding, Preparation, Weight
from bot.model.reading import Gap, Known, Unknown, install_of
from bot.redaction import Redactor
from checks.preflight.item import Item

_REDACTOR = Redactor()
_CREDENTIALS = re.compile(r"(?<=://)[^/@]*:[^/@]*(?=@)")


def shown(address: str) -> str:
    """Return an address without the credentials that it may hold."""
    return _REDACTOR.text(_CREDENTIALS.sub("[redacted]", address))


def says(contract: Contract, field: str, address: str) -> str:
    """Return ``field = address (stated)``."""
    return f"{field} = {shown(address)} ({contract.basis_of(field.partition('.')[0])})"


def toml_of(contract: Contract) -> str:
    return f"runs/{contract.run_id}.toml"


def house_rule(prepared: Preparation, weight: Weight) -> Weight:
    """Return how much a rule of the house weighs: after the first launch the places stay, or the lineage is torn."""
    return weight if prepared.is_first else Weight.NOTE


def location(prepared: Preparation, field: str) -> Location | None:
    """Return what is known of an address; None when it could not be, or was not, looked at."""
    reading = prepared.locations.get(field)
    return reading.value if isinstance(reading, Known) else None


def gap(prepared: Preparation, field: str) -> Unknown | None:
    """Return why nothing is known of an address that was to be looked at."""
    reading = prepared.locations.get(field)
    return reading if isinstance(reading, Unknown) else None


def unverified(prepared: Preparation, item: Item, field: str, address: str, weight: Weight) -> PreflightFinding:
    """Return the finding for an address that could not be looked at."""
    reason = gap(prepared, field)
    detail, fix = install_of(reason.detail) if reason else ("", "")
    if reason is not None and reason.reason in {Gap.TIMEOUT, Gap.UNREACHABLE}:
        fix = "see that it can be reached from here, or correct the address"
    return item.finding(
        weight,
        f"{says(prepared.contract, field, address)} cannot be verified: {shown(detail)}",
        f"{fix or "let Hero's account list it, or correct the address"}; nothing is launched on a guess",
    )


def unsound(item: Item, prepared: Preparation, field: str, address: str) -> Iterator[PreflightFinding]:
    """Yield what no launch may have in any address: an open end, a cluster's own prefix."""
    contract = prepared.contract
    said = says(contract, field, address)
    mark = open_mark(address)
    if mark:
        fix = f"write the one place that is meant into {toml_of(contract)}"
        yield item.finding(Weight.BLOCKS, f"{said} is not pinned: it holds {mark}", fix)
    part = cluster_prefix(address, prepared.rules)
    if part:
        fix = "use a place below users/NAME/, or a temporary prefix for what does not outlive the run"
        yield item.finding(Weight.BLOCKS, f"{said} lies below {part}, which belongs to the cluster and is durable", fix)


def is_demanded(prepared: Preparation, address: str) -> bool:
    """Whether the house's rules for buckets hold for an address: not for a toy on one machine."""
    is_toy = prepared.contract.orchestrator.kind == "local" and not is_remote(address)
    return bool(prepared.rules.prefix) and not is_toy
