"""How the commit that a contract names lies: is it there, on which branches, and what has changed since."""

import re

from bot.model.code import SourceCommit, SourceFault, SourceFaultKind
from bot.model.contract import Contract
from bot.sources.git.parsing import parse_changes
from bot.sources.git.program import Git, Left, Place

_ABBREVIATION = re.compile(r"[0-9a-f]{7,64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@{}^~+-]{0,199}")
_MOST_NAMED = 5


class Lineage:
    """Asks git of one commit."""

    def __init__(self, git: Git) -> None:
        self._git = git

    async def ask(
        self, contract: Contract, place: Place, head: str, left: Left
    ) -> tuple[SourceCommit | None, SourceFault | None, tuple[bytes, ...]]:
        """Return the commit that the contract names or what is wrong with it, and what differs from it in ``head``.

        Raises:
            ServiceError: git could not say.
        """
        if contract.source_sha is None:
            return None, None, ()
        sha = await self.resolve(contract, place, left)
        if isinstance(sha, SourceFault):
            return None, sha, ()
        source = await self._commit(sha, contract, place, left)
        if sha == head:
            return source, None, ()
        return source, None, await self.changed(sha, head, place, left)

    async def changed(self, before: str, after: str, place: Place, left: Left) -> tuple[bytes, ...]:
        """Return the paths that differ between two commits, sorted; of a moved file both.

        Raises:
            ServiceError: git could not say.
        """
        told = await self._git.run(
            place.top, "diff-tree", "-r", "-z", "--name-status", "--no-renames", before, after, left=left
        )
        return parse_changes(told.stdout_raw)

    async def resolve(self, contract: Contract, place: Place, left: Left) -> str | SourceFault:
        """Return the one commit whose SHA begins as the contract says; a branch of that name does not count.

        Raises:
            ServiceError: git could not say.
        """
        named = contract.source_sha or ""
        where = f"runs/{contract.run_id}.toml"
        if not _ABBREVIATION.fullmatch(named.lower()):
            now = await self._now(named, place, left)
            detail = f"source_sha = {named!r} is no SHA, and a name may move{f'; it is {now} now' if now else ''}"
            fix = f'write all of the SHA into {where}: source_sha = "{now or "…"}"'
            return SourceFault(kind=SourceFaultKind.NOT_A_SHA, detail=detail, fix=fix)
        told = await self._git.run(place.top, "rev-parse", f"--disambiguate={named.lower()}", left=left)
        objects = told.stdout.split()
        types = {each: await self._type(each, place, left) for each in objects[: _MOST_NAMED * 4]}
        commits = [each for each, of_type in types.items() if of_type == "commit"]
        if len(commits) == 1:
            return commits[0]
        if commits:
            detail = f"source_sha = {named!r} is the beginning of {len(commits)} commits: {', '.join(commits[:5])}"
            fix = f"write all digits of the right one into {where}"
            return SourceFault(kind=SourceFaultKind.AMBIGUOUS, detail=detail, fix=fix)
        if objects:
            detail = f"source_sha = {named!r} is a {types[objects[0]]} and no commit"
            fix = f"write the commit's SHA into {where}; `git -C {place.top} rev-parse {named}^{{commit}}` may tell it"
            return SourceFault(kind=SourceFaultKind.NO_COMMIT, detail=detail, fix=fix)
        loads = "fetch --unshallow" if place.is_shallow else f"fetch {contract.code.remote} {named}"
        detail = f"the commit {named} is not in {place.top}" + (", whose history is cut off" * place.is_shallow)
        fix = f"push it from where it was made, then `git -C {place.top} {loads}`; or correct source_sha in {where}"
        return SourceFault(kind=SourceFaultKind.MISSING, detail=detail, fix=fix)

    async def _now(self, name: str, place: Place, left: Left) -> str:
        """Return the commit that a name stands for at this moment; empty when it stands for none."""
        if not _NAME.fullmatch(name):
            return ""
        told = await self._git.run(
            place.top, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", left=left, accepts=(0, 1, 128)
        )
        return told.stdout.strip() if told.exit_code == 0 else ""

    async def _type(self, sha: str, place: Place, left: Left) -> str:
        return (await self._git.run(place.top, "cat-file", "-t", sha, left=left)).stdout.strip()

    async def _commit(self, sha: str, contract: Contract, place: Place, left: Left) -> SourceCommit:
        code = contract.code
        told = await self._git.run(
            place.top,
            "for-each-ref",
            f"--contains={sha}",
            "--format=%(symref) %(refname:lstrip=2)",
            f"refs/remotes/{code.remote}/",
            left=left,
        )
        # "origin/HEAD" is only another name for one of them; it begins with what it stands for, and the others do not.
        branches = [line[1:] for line in told.stdout.splitlines() if line.startswith(" ")]
        is_ancestor, gap = await self._ancestry(sha, contract, place, left)
        return SourceCommit(sha=sha, pushed_to=tuple(sorted(branches)), is_ancestor=is_ancestor, ancestry_gap=gap)

    async def _ancestry(self, sha: str, contract: Contract, place: Place, left: Left) -> tuple[bool | None, str]:
        code = contract.code
        ref = f"refs/remotes/{code.remote}/{code.branch}"
        by_hand = f"git -C {place.top} fetch {code.remote} {code.branch}"
        there = await self._git.run(
            place.top, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", left=left, accepts=(0, 1, 128)
        )
        if there.exit_code != 0:
            return None, f"{code.remote}/{code.branch} is not here; run `{by_hand}`, or correct [code] in the contract"
        told = await self._git.run(place.top, "merge-base", "--is-ancestor", sha, ref, left=left, accepts=(0, 1))
        if told.exit_code == 0:
            return True, ""
        if place.is_shallow:
            return None, f"the history in {place.top} is cut off; run `git -C {place.top} fetch --unshallow`"
        return False, ""
