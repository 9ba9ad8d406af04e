"""A bundle or container launched in the checkout's place: is it made from the commit that the contract names?"""

import re

from bot.model.contract import Contract
from bot.model.preflight import PreflightFinding, Preparation, Weight
from bot.model.reading import Known
from bot.model.value import CheckId
from checks.preflight.item import Item, Told, stated

_SHA = re.compile(r"(?<![0-9a-z])([0-9a-f]{7,40})(?![0-9a-z])", re.IGNORECASE)
_DIGEST = re.compile(r"\bsha\d+:[0-9a-f]+", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-f]{7,40}", re.IGNORECASE)
_FULL = 40


def judge(prepared: Preparation) -> Told:
    """Compare the commits that a bundle's name holds with the contract's."""
    contract = prepared.contract
    shown = contract.bundle or "none: the checkout is launched"
    return Told(
        values=(stated("bundle", shown, contract.basis_of("bundle")),),
        findings=tuple(each for each in (_finding(prepared),) if each),
    )


def commits_in(bundle: str) -> tuple[str, ...]:
    """Return what may be a commit in a bundle's name or tag: ``trainer:9f86d08``, ``src-9f86d08….tar.gz``.

    A number alone is a date or a version unless it has all 40 digits, and a content digest (``sha256:…``) is none.
    """
    found = (match[1].lower() for match in _SHA.finditer(_DIGEST.sub("", bundle)))
    return tuple(each for each in found if len(each) == _FULL or not each.isdigit())


def _finding(prepared: Preparation) -> PreflightFinding | None:
    contract = prepared.contract
    if contract.bundle is None:
        return None
    unclear = Weight.ASKS if prepared.is_first else Weight.NOTE
    basis = f"bundle = {contract.bundle} ({contract.basis_of('bundle')})"
    named = commits_in(contract.bundle)
    if contract.source_sha is None:
        told = f"; its name says {named[0]}" if named else ""
        fix = f"write that commit into runs/{contract.run_id}.toml as source_sha"
        return BUNDLE.finding(unclear, f"{basis}: which commit it was made from is not stated{told}", fix)
    if not named:
        fix = "name the bundle or tag the image with the commit, as NAME:SHA, or have the DRI accept it"
        return BUNDLE.finding(unclear, f"{basis}: its name holds no commit to hold against source_sha", fix)
    sha = _commit(prepared, contract)
    if sha is None:
        fix = "correct source_sha first; nothing is launched on a guess"
        why = f"{basis}: whether it was made from source_sha = {contract.source_sha} cannot be said"
        return BUNDLE.finding(Weight.UNKNOWN, why, fix)
    if any(sha.startswith(each) or each.startswith(sha) for each in named):
        return None
    fix = f"build it from {sha[:12]}, or correct source_sha in runs/{contract.run_id}.toml"
    return BUNDLE.finding(Weight.BLOCKS, f"{basis} was made from {named[0]}, and source_sha is {sha}", fix)


def _commit(prepared: Preparation, contract: Contract) -> str | None:
    code = prepared.seen.code
    if isinstance(code, Known) and code.value.source is not None:
        return code.value.source.sha
    stated_sha = contract.source_sha or ""
    return stated_sha.lower() if _HEX.fullmatch(stated_sha) else None


BUNDLE = Item(
    id=CheckId("launch.bundle"),
    title="The bundle or container against the source commit",
    source='manage-hero-run, "Launch": runtime package, source bundle, or container identity',
    judge=judge,
)
