"""What a run trains on: data that nobody writes anew while it is read, and that is there."""

from collections.abc import Iterator

from bot.model.addresses import (
    cluster_prefix,
    is_in_store,
    is_own,
    is_path,
    is_remote,
    is_temporary,
    is_versioned,
    user_of,
)
from bot.model.preflight import PreflightFinding, PreflightValue, Preparation, Weight
from bot.model.value import CheckId
from checks.preflight.house import gap, house_rule, is_demanded, location, says, shown, toml_of, unsound, unverified
from checks.preflight.item import Item, Told, stated


def judge(prepared: Preparation) -> Told:
    """Print each dataset with what is known of it, and refuse one that may change or is not there."""
    return Told(values=tuple(_values(prepared)), findings=tuple(_findings(prepared)))


def _values(prepared: Preparation) -> Iterator[PreflightValue]:
    contract = prepared.contract
    if not contract.datasets:
        yield stated("datasets", None)
    for number, dataset in enumerate(contract.datasets):
        kind = f", {_kind(prepared, dataset)} (inferred)" if is_path(dataset) else ""
        yield stated(f"datasets.{number}", f"{shown(dataset)}{kind}", contract.basis_of("datasets"))


def _kind(prepared: Preparation, dataset: str) -> str:
    if is_own(dataset, prepared.contract, prepared.rules):
        return "the caller's own"
    return "immutable" if is_versioned(dataset) else "mutable, or not told by its name"


def _findings(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract = prepared.contract
    if not contract.datasets and is_demanded(prepared, contract.output_root):
        fix = f"name them, pinned, in {toml_of(contract)}"
        yield DATASETS.finding(Weight.NOTE, "datasets are not stated: what the run trains on is not on record", fix)
    for number, dataset in enumerate(contract.datasets):
        if is_path(dataset):
            yield from _of_dataset(prepared, f"datasets.{number}", dataset)


def _of_dataset(prepared: Preparation, field: str, dataset: str) -> Iterator[PreflightFinding]:
    yield from unsound(DATASETS, prepared, field, dataset)
    yield from _of_owner(prepared, field, dataset)
    yield from _of_storage(prepared, field, dataset)


def _of_owner(prepared: Preparation, field: str, dataset: str) -> Iterator[PreflightFinding]:
    contract, rules = prepared.contract, prepared.rules
    if not is_demanded(prepared, dataset) or not is_remote(dataset) or cluster_prefix(dataset, rules):
        return
    if is_own(dataset, contract, rules) or is_versioned(dataset):
        return
    said, user = says(contract, field, dataset), user_of(dataset, rules)
    why = f"it is {user}'s, who may change it" if user else "nothing in its name says that it is immutable"
    fix = "name a pinned artifact (a hash, a version or a date at its end) or a copy below the caller's users/NAME/"
    yield DATASETS.finding(house_rule(prepared, Weight.ASKS), f"{said} may change while it is read: {why}", fix)


def _of_storage(prepared: Preparation, field: str, dataset: str) -> Iterator[PreflightFinding]:
    contract, said = prepared.contract, says(prepared.contract, field, dataset)
    found = location(prepared, field)
    if gap(prepared, field) is not None:
        yield unverified(prepared, DATASETS, field, dataset, Weight.UNKNOWN)
    elif found is not None and not found.exists:
        what = "does not exist" if found.has_bucket else "is in no bucket that exists"
        yield DATASETS.finding(Weight.BLOCKS, f"{said} {what} (measured)", f"correct it in {toml_of(contract)}")
    elif found is not None and found.expires_days is not None:
        message = f"{said} is deleted {found.expires_days} days after it was written (measured)"
        yield DATASETS.finding(Weight.NOTE, message, "see that it outlives the run, or copy it")
    elif found is None and not is_in_store(dataset) and (is_remote(dataset) or contract.orchestrator.kind != "local"):
        message = f"{said} is not looked at: it cannot be seen from where Hero runs"
        yield DATASETS.finding(Weight.NOTE, message, "see for yourself that it is there, and pinned")
    elif is_remote(dataset) and is_temporary(dataset, prepared.rules):
        message = f"{said} lies at a temporary path (inferred)"
        yield DATASETS.finding(Weight.NOTE, message, "see that it outlives the run, or copy it")


DATASETS = Item(
    id=CheckId("launch.datasets"),
    title="Datasets that are immutable or the caller's own, and are there",
    source='manage-hero-run, "Launch": dataset locations',
    judge=judge,
)
