"""The two checkouts: the child's is clean at its commit, the old run's at the one that it was launched from."""

from collections.abc import Iterator

from bot.model.code import CodeState
from bot.model.contract import Contract
from bot.model.reading import Unknown
from bot.model.rehearsal import MainState, Rehearsal
from bot.model.value import CheckId
from checks.code import checkout_astray, is_cut_off
from checks.trial.guards.guard import Group, Guard, Word, all_of, cannot_tell, fails, unseen
from checks.trial.guards.launches import no_child, same_commit
from checks.trial.guards.record import misread

_SHORT = 12
_NAMED = 5
_MADE_UP = "a/path/that/is/made/up.py"


def unfit(state: MainState) -> Iterator[Word]:
    """Yield why nothing may be launched from a checkout: it is not at the verified commit, or is not clean."""
    if state.source_sha is None or state.head != state.source_sha:
        yield fails(
            f"{state.directory} is at {state.head[:_SHORT]} and not at {(state.source_sha or 'any commit')[:_SHORT]}",
            f"`git -C {state.directory} checkout --detach {state.source_sha or 'COMMIT'}`",
        )
    if state.dirty:
        yield fails(
            f"{state.directory} has changes that are not committed: {_paths(state.dirty)}",
            f"commit and land them, or set them aside: `git -C {state.directory} stash --include-untracked`",
        )


def _paths(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more


def _deploy(rehearsal: Rehearsal) -> Word:
    main = rehearsal.main
    if isinstance(main, Unknown):
        return unseen(main, "what the child would be launched from")
    state = main.value
    wrong = misread(rehearsal, state)
    if wrong is not None:
        return wrong
    ahead = "" if state.main_sha == state.head else f"; {state.main} has gone on to {state.main_sha[:_SHORT]} since"
    return all_of(f"{state.directory} is clean at {state.head[:_SHORT]}{ahead}", unfit(state))


def _rollback(rehearsal: Rehearsal) -> Word:
    code = rehearsal.seen.code
    if isinstance(code, Unknown):
        return unseen(code, "what the old run would be launched from again")
    recorded = rehearsal.instance.source_sha if rehearsal.instance else None
    sha = recorded or rehearsal.contract.source_sha
    if sha is None:
        file = f"runs/{rehearsal.contract.run_id}.toml"
        return fails("no commit of the old run is on record", f"write the one it runs as source_sha into {file}")
    if is_cut_off(code.value):
        return cannot_tell(
            f"{code.value.directory} has not the whole history, and not {sha[:_SHORT]}",
            f"`git -C {code.value.directory} fetch --unshallow`",
        )
    return all_of(
        f"{code.value.directory} is clean at {sha[:_SHORT]}, which the old run was launched from",
        _against_rollback(code.value, rehearsal.contract, sha),
    )


def _against_rollback(state: CodeState, contract: Contract, sha: str) -> Iterator[Word]:
    if not same_commit(contract.source_sha, sha):
        yield fails(
            f"the old run was launched from {sha[:_SHORT]}, its contract names {contract.source_sha or 'none'}",
            f"write {sha} as source_sha into runs/{contract.run_id}.toml",
        )
    if not same_commit(state.head, sha):
        yield fails(
            f"{state.directory} is at {state.head[:_SHORT]} and not at {sha[:_SHORT]}",
            f"`git -C {state.directory} checkout --detach {sha}`, or give the old run a work tree of its own",
        )
    if state.dirty_that_counts:
        yield fails(
            f"{state.directory} has changes that are not committed: {_paths(state.dirty_that_counts)}",
            f"set them aside: `git -C {state.directory} stash --include-untracked`",
        )
    if state.underway:
        yield fails(f"{state.underway} is underway in {state.directory}", "end it there")


def _refuses_dirty(rehearsal: Rehearsal) -> Word:
    """Show that the launch's own predicate refuses a made-up dirty checkout, and not the one that is there."""
    if rehearsal.child is None or rehearsal.child_seen is None:
        return no_child(rehearsal)
    main, code = rehearsal.main, rehearsal.child_seen.code
    if isinstance(main, Unknown):
        return unseen(main, "what the child would be launched from")
    if isinstance(code, Unknown):
        return unseen(code, "what the child would be launched from")
    refused = _refusals(rehearsal.child, code.value, main.value)
    return all_of("a made-up dirty checkout would be refused, and the one that is there would not", refused)


def _refusals(child: Contract, code: CodeState, main: MainState) -> Iterator[Word]:
    made_up = code.model_copy(update={"dirty": (*code.dirty, _MADE_UP), "harmless": ()})
    clean = made_up.model_copy(update={"dirty": ()})
    said = set(checkout_astray(made_up, child)) - set(checkout_astray(clean, child))
    if not said:
        yield fails(
            "the launch would not refuse a dirty checkout",
            f"name source_sha in runs/{child.run_id}.toml, without dirty_approved and without a bundle in its place",
        )
    if not list(unfit(main.model_copy(update={"dirty": (_MADE_UP,)}))):
        yield fails("the guard of the deploy checkout would pass a dirty one", "report it")
    for astray in checkout_astray(code, child):
        yield fails(f"the launch refuses the checkout as it is: {astray.text}", astray.fix)


DEPLOY = Guard(
    id=CheckId("deploy.checkout"),
    title="The child's checkout is clean at its verified commit",
    source='deploy checklist, "Rehearse", "Verify": deploy checkout is clean at fetched main',
    group=Group.REHEARSE,
    rule=_deploy,
)
ROLLBACK = Guard(
    id=CheckId("rollback.checkout"),
    title="The old run's checkout is clean at the commit that it was launched from",
    source='deploy checklist, "Rehearse", "Verify": rollback checkout is clean at the old run\'s recorded SHA',
    group=Group.REHEARSE,
    rule=_rollback,
)
REFUSES_DIRTY = Guard(
    id=CheckId("launch.refuses_dirty"),
    title="The launch refuses a dirty checkout",
    source='deploy checklist, "Rehearse", "Verify": launch refuses … a dirty checkout',
    group=Group.REHEARSE,
    rule=_refuses_dirty,
)
