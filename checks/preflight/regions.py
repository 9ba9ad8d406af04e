"""Whether machines and buckets are in one region: by the bucket's word where it was told, else by its name."""

from collections.abc import Iterator

from bot.model.addresses import addresses_of, is_in_store
from bot.model.contract import Basis
from bot.model.preflight import PreflightFinding, Preparation, Weight
from bot.model.value import CheckId, Value
from checks.preflight.house import house_rule, location, shown, toml_of
from checks.preflight.item import Item, Told, stated
from checks.regions import machine_regions, region_in

_SAVED = ("output_root", "resume_root", "checkpoint_roots")
"""What is written at every save: across regions each one is slow and costs money."""


class Placed(Value):
    """An address and the region that its bucket is in."""

    field: str
    address: str
    region: str
    basis: Basis

    @property
    def is_saved(self) -> bool:
        return self.field.startswith(_SAVED)

    def says(self) -> str:
        return f"{self.field} {self.region} ({self.basis})"


def judge(prepared: Preparation) -> Told:
    """Print every region that is known, and refuse saves into another than the machines'."""
    placed, machines = tuple(_placed(prepared)), machine_regions(prepared.command)
    told = [f"machines {', '.join(sorted(machines))} (stated)"] if machines else []
    told += [each.says() for each in placed]
    basis = Basis.MEASURED if placed and all(p.basis is Basis.MEASURED for p in placed) else Basis.INFERRED
    value = stated("regions", "; ".join(told) or "not told", basis)
    findings = _against(prepared, placed, machines) if machines else _among(prepared, placed)
    return Told(values=(value,), findings=tuple(findings))


def covers(bucket: str, machine: str) -> bool:
    """Whether a bucket's region is the machine's, or one of several that hold it: ``us`` holds ``us-east5``."""
    return bucket == machine or machine.startswith(f"{bucket}-") or (bucket == "eu" and machine.startswith("europe-"))


def _placed(prepared: Preparation) -> Iterator[Placed]:
    contract = prepared.contract
    start = (("initialize_from", contract.initialize_from),) if contract.initialize_from else ()
    for field, address in (*addresses_of(contract), *start):
        if not is_in_store(address):
            continue
        found = location(prepared, field)
        if found is not None and found.region:
            yield Placed(field=field, address=address, region=found.region.lower(), basis=Basis.MEASURED)
        elif region := region_in(address.partition("://")[2].partition("/")[0]):
            yield Placed(field=field, address=address, region=region, basis=Basis.INFERRED)


def _against(prepared: Preparation, placed: tuple[Placed, ...], machines: frozenset[str]) -> Iterator[PreflightFinding]:
    where = ", ".join(sorted(machines))
    for each in placed:
        near = {machine for machine in machines if covers(each.region, machine)}
        said = f"{each.field} = {shown(each.address)} is in {each.region} ({each.basis})"
        if not near:
            weight = Weight.BLOCKS if each.is_saved else Weight.ASKS
            message = f"{said}, and the command asks for machines in {where} (stated)"
            fix = (
                f"move the one or the other in {toml_of(prepared.contract)}: across regions it is slow and costs money"
            )
            yield REGIONS.finding(house_rule(prepared, weight), message, fix)
        elif near != machines and each.is_saved:
            message = f"{said}, and the command may also get machines in {', '.join(sorted(machines - near))}"
            yield REGIONS.finding(
                Weight.NOTE, message, "name the zones of that region alone, if saves are to stay near"
            )


def _among(prepared: Preparation, placed: tuple[Placed, ...]) -> Iterator[PreflightFinding]:
    first = next((each for each in placed if each.field == "output_root"), next(iter(placed), None))
    if first is None:
        return
    for each in placed:
        if covers(first.region, each.region) or covers(each.region, first.region):
            continue
        message = f"{each.field} = {shown(each.address)} is in {each.region} ({each.basis}), and {first.says()}"
        fix = f"use buckets of one region in {toml_of(prepared.contract)}, or have the DRI accept it"
        yield REGIONS.finding(house_rule(prepared, Weight.ASKS), message, fix)


REGIONS = Item(
    id=CheckId("launch.regions"),
    title="Machines, checkpoints and data in one region",
    source='manage-hero-run, "Launch": region-local checkpoints; "What Can Go Wrong": wrong region',
    judge=judge,
)
