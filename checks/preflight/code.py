"""The source that would be launched: its commit, pushed and on its branch, and the tree that lies beside it."""

from collections.abc import Iterator

from bot.model.code import CodeState
from bot.model.contract import Basis
from bot.model.preflight import PreflightFinding, PreflightValue, Preparation, Weight
from bot.model.reading import Gap, Unknown
from bot.model.value import CheckId
from checks.check import thresholds_of
from checks.code import LINEAGE, checkout_astray, is_cut_off, line_gap, not_on_line
from checks.preflight.item import Item, Told, stated, unseen

_FULL = 40
_SHORT = 12


def judge(prepared: Preparation) -> Told:
    """Print the commit and the state of the tree, and hold the one against the other."""
    code = prepared.seen.code
    state = None if isinstance(code, Unknown) else code.value
    values = (_value_of_commit(prepared, state), *(_values_of_tree(state) if state else ()))
    if prepared.contract.source_sha is None:
        findings = _without_commit(prepared)
    elif isinstance(code, Unknown):
        findings = _unread(prepared, code)
    else:
        findings = _with_commit(prepared, code.value)
    return Told(values=values, findings=tuple(findings))


def _value_of_commit(prepared: Preparation, state: CodeState | None) -> PreflightValue:
    contract = prepared.contract
    if state is not None and state.source is not None:
        return stated("source_sha", state.source.sha, contract.basis_of("source_sha"))
    if contract.source_sha is None and state is not None:
        return stated("source_sha", f"{state.head} (what is checked out)", Basis.INFERRED)
    return stated("source_sha", contract.source_sha, contract.basis_of("source_sha"))


def _values_of_tree(state: CodeState) -> tuple[PreflightValue, ...]:
    count = len(state.dirty_that_counts)
    tree = (
        f"{count} path{'' if count == 1 else 's'} changed that count{'s' if count == 1 else ''}" if count else "clean"
    )
    lies = stated("work_tree", tree, Basis.MEASURED)
    branch = stated("checked_out", f"{state.head} ({state.branch or 'no branch'})", Basis.MEASURED)
    if not state.patch_sha256:
        return (branch, lies)
    return (branch, lies, stated("patch_sha256", state.patch_sha256, Basis.MEASURED))


def _without_commit(prepared: Preparation) -> Iterator[PreflightFinding]:
    """Without a stated commit nothing is promised of the source: it is asked once, and noted at a relaunch."""
    code, contract = prepared.seen.code, prepared.contract
    weight = Weight.ASKS if prepared.is_first else Weight.NOTE
    file = f"runs/{contract.run_id}.toml"
    if isinstance(code, Unknown):
        if code.reason is not Gap.NOT_CONFIGURED and prepared.is_first:
            yield unseen(CODE.id, code, "the source of the checkout")
            return
        yield CODE.finding(
            weight,
            f"source_sha is not stated, and the checkout {contract.checkout} does not tell it",
            f"write the commit that is launched into {file} as source_sha",
        )
        return
    state = code.value
    dirty = f", with {len(state.dirty_that_counts)} changed paths that count" if state.dirty_that_counts else ""
    yield CODE.finding(
        weight,
        f"source_sha is not stated; the checkout is at {state.head} (inferred){dirty}",
        f'write it into {file}: source_sha = "{state.head}"',
    )


def _unread(prepared: Preparation, code: Unknown) -> Iterator[PreflightFinding]:
    contract = prepared.contract
    if contract.bundle is not None:
        # The bundle is what is launched: whether it is of this commit is the next item's business.
        yield CODE.finding(
            Weight.ASKS if prepared.is_first else Weight.NOTE,
            f"whether {contract.source_sha} was pushed cannot be asked: {code.detail}",
            "set `checkout` to a clone of the repository that the bundle was made from",
        )
        return
    yield unseen(CODE.id, code, f"whether source_sha = {contract.source_sha} is what would be launched")


def _with_commit(prepared: Preparation, state: CodeState) -> Iterator[PreflightFinding]:
    contract, limits = prepared.contract, thresholds_of(LINEAGE, prepared.contract)
    if is_cut_off(state) and state.source_fault is not None:
        yield CODE.finding(Weight.UNKNOWN, state.source_fault.detail, state.source_fault.fix)
    elif contract.bundle is not None and state.source_fault is not None:
        yield CODE.finding(Weight.BLOCKS, state.source_fault.detail, state.source_fault.fix)
    else:
        for each in checkout_astray(state, contract, limits):
            message = "; ".join((f"{each.text}: {each.means}", *each.evidence))
            yield CODE.finding(Weight.BLOCKS, message, each.fix)
    for each in not_on_line(state, contract, prepared.at, limits):
        yield CODE.finding(Weight.BLOCKS, f"{each.text}: {each.means}", each.fix)
    if gap := line_gap(state, prepared.at, limits):
        yield CODE.finding(Weight.UNKNOWN, gap, "see that Hero may fetch the remote ([git] fetch), and ask again")
    yield from _notes(prepared, state)


def _notes(prepared: Preparation, state: CodeState) -> Iterator[PreflightFinding]:
    contract = prepared.contract
    if state.source is not None and len(contract.source_sha or "") < _FULL:
        yield CODE.finding(
            Weight.ASKS if prepared.is_first else Weight.NOTE,
            f"source_sha = {contract.source_sha} is abbreviated, and another commit may come to begin like it",
            f'write all of it into runs/{contract.run_id}.toml: source_sha = "{state.source.sha}"',
        )
    if state.dirty_that_counts and contract.dirty_approved:
        paths = ", ".join(state.dirty_that_counts[:5])
        yield CODE.finding(
            Weight.NOTE,
            f"the tree is dirty by agreement (dirty_approved, {contract.basis_of('dirty_approved')}): {paths}; patch "
            f"SHA-256 {state.patch_sha256}",
            "nothing to do: the patch is part of the plan, and a change of it asks again",
        )


CODE = Item(
    id=CheckId("launch.code"),
    title="The source commit: stated, whole, pushed, on its branch, and what the checkout holds",
    source='manage-hero-run, "Launch": source git SHA; "What Can Go Wrong": wrong code lineage',
    judge=judge,
)
