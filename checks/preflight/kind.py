"""Production or bounded diagnostic, with the reason: what the procedure's classification says of the contract."""

from collections.abc import Iterator

from bot.model.contract import PRODUCTION_FLOPS, Basis, Contract, RunKind
from bot.model.preflight import PreflightFinding, Preparation, Weight
from bot.model.value import CheckId, Value
from checks.preflight.item import Item, Told, stated

_AGREE = 2.0
"""Between stated FLOPs and 6 x params x tokens; attention and recomputation explain less than that."""


class KindReason(Value):
    """What a run counts as, and why."""

    kind: RunKind
    reason: str
    basis: Basis


def flops_of(contract: Contract) -> tuple[float, Basis, str] | None:
    """Return the model FLOPs of the run, how they are known, and how they came about; None when nothing tells."""
    if contract.model_flops is not None:
        return contract.model_flops, contract.basis_of("model_flops"), "model_flops"
    if contract.params and contract.tokens:
        return 6 * contract.params * contract.tokens, Basis.INFERRED, "6 x params x tokens"
    return None


def kind_of(contract: Contract) -> KindReason:
    """Classify as ``Contract.effective_kind`` does, and say why."""
    flops = flops_of(contract)
    size = f"{flops[0]:.2g} model FLOPs ({flops[2]}, {flops[1]})" if flops else "no model FLOPs are given"
    if contract.kind is not None:
        return KindReason(kind=contract.kind, reason=f"the contract says so; {size}", basis=contract.basis_of("kind"))
    kind = contract.effective_kind
    if flops is None:
        reason = f"{size}, and in doubt a run is production"
    else:
        reason = f"{size}, {'below' if kind is RunKind.DIAGNOSTIC else 'not below'} {PRODUCTION_FLOPS:.0e}"
    return KindReason(kind=kind, reason=reason, basis=Basis.INFERRED)


def judge(prepared: Preparation) -> Told:
    """Print the kind with its reason, and name what does not go with it."""
    contract = prepared.contract
    found = kind_of(contract)
    values = [stated("kind", f"{found.kind} ({found.reason})", found.basis)]
    if flops := flops_of(contract):
        values.append(stated("model_flops", f"{flops[0]:.3g}", flops[1]))
    return Told(values=tuple(values), findings=(*_size(prepared), *_bounds(prepared, found)))


def _size(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract = prepared.contract
    flops = flops_of(contract)
    unclear = Weight.ASKS if prepared.is_first else Weight.NOTE
    if flops and contract.kind is RunKind.DIAGNOSTIC and flops[0] >= PRODUCTION_FLOPS:
        yield KIND.finding(
            unclear,
            f"kind = diagnostic ({contract.basis_of('kind')}), and {flops[0]:.2g} model FLOPs ({flops[2]}) are a "
            f"production run by the guideline of {PRODUCTION_FLOPS:.0e}",
            'set kind = "production", or have the DRI accept it',
        )
    if contract.model_flops and contract.params and contract.tokens:
        computed = 6 * contract.params * contract.tokens
        ratio = max(computed, contract.model_flops) / min(computed, contract.model_flops)
        if ratio > _AGREE:
            yield KIND.finding(
                unclear,
                f"model_flops = {contract.model_flops:.2g} contradicts 6 x params x tokens = {computed:.2g}",
                "correct the one that is wrong",
            )


def _bounds(prepared: Preparation, found: KindReason) -> Iterator[PreflightFinding]:
    """Name what a bounded diagnostic must not have, or lacks."""
    contract = prepared.contract
    if found.kind is not RunKind.DIAGNOSTIC:
        return
    unclear = Weight.ASKS if prepared.is_first else Weight.NOTE
    if contract.export_root is not None:
        yield KIND.finding(
            unclear,
            f"a bounded diagnostic has no canonical export, and export_root = {contract.export_root} "
            f"({contract.basis_of('export_root')})",
            'take export_root out, or set kind = "production"',
        )
    if contract.final_step is None:
        yield KIND.finding(
            unclear, "a bounded diagnostic has a fixed limit, and no final_step is stated", "state final_step"
        )


KIND = Item(
    id=CheckId("launch.kind"),
    title="Production or bounded diagnostic, and why",
    source='manage-hero-run, "Operating Model": classify the run',
    judge=judge,
)
