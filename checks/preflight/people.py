"""Who answers for the run, and whether Hero can reach them."""

from collections.abc import Iterator

from bot.model.contract import Basis
from bot.model.preflight import PreflightFinding, Preparation, Weight
from bot.model.value import CheckId, PersonName
from checks.preflight.item import Item, Told, stated


def judge(prepared: Preparation) -> Told:
    """Print DRI, deputies and monitoring owner, and refuse a DRI whom nobody can ask."""
    contract = prepared.contract
    owner = contract.owner or contract.dri
    values = (
        stated("dri", _with_channels(prepared, contract.dri), contract.basis_of("dri")),
        stated("deputies", ", ".join(contract.deputies) or "none", contract.basis_of("deputies")),
        stated("owner", owner, contract.basis_of("owner") if contract.owner else Basis.INFERRED),
    )
    return Told(values=values, findings=tuple(_findings(prepared)))


def _with_channels(prepared: Preparation, name: PersonName) -> str:
    return f"{name} ({', '.join(prepared.reachable.get(name, ())) or 'not reachable'})"


def _findings(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract = prepared.contract
    said = f"dri = {contract.dri} ({contract.basis_of('dri')})"
    if contract.dri not in prepared.reachable:
        fix = f"add a table [people.{contract.dri}] to hero.toml, or name somebody who has one"
        yield PEOPLE.finding(Weight.BLOCKS, f"{said} is nobody in [people]", fix)
    elif not prepared.reachable[contract.dri]:
        fix = f"give [people.{contract.dri}] an account on a channel that is configured; `hero doctor` lists them"
        yield PEOPLE.finding(Weight.BLOCKS, f"{said} can be reached on no channel that is configured", fix)
    others = (*contract.deputies, *((contract.owner,) if contract.owner and contract.owner != contract.dri else ()))
    for name in others:
        if name not in prepared.reachable:
            fix = f"add a table [people.{name}] to hero.toml, or take the name out of the contract"
            yield PEOPLE.finding(Weight.BLOCKS, f"{name} (deputy or owner) is nobody in [people]", fix)
        elif not prepared.reachable[name]:
            fix = f"give [people.{name}] an account on a channel that is configured"
            yield PEOPLE.finding(Weight.NOTE, f"{name} (deputy or owner) can be reached on no channel", fix)


PEOPLE = Item(
    id=CheckId("launch.people"),
    title="A DRI who is known and can be asked; one monitoring owner",
    source='manage-hero-run, "Launch": a DRI; "Operating Model": one monitoring owner',
    judge=judge,
)
