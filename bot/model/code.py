"""What git says of a run's source: the commit it was launched from, the checkout it would be launched from again."""

from enum import StrEnum

from pydantic import AwareDatetime

from bot.model.harmless import unharmless
from bot.model.value import Value


class SourceCommit(Value):
    """The commit that a contract names as the run's source."""

    sha: str
    """All 40 hexadecimal digits."""
    pushed_to: tuple[str, ...]
    """The remote's branches that contain it, as they were last fetched, e.g. ``origin/main``; empty when none does."""
    is_ancestor: bool | None
    """Whether it is an ancestor of the fetched branch that the contract's ``[code]`` names, or its tip.

    None when that cannot be said: the branch is not here, or the history was cut off before it.
    """
    ancestry_gap: str = ""
    """Why ``is_ancestor`` is None, with the fix."""


class SourceFaultKind(StrEnum):
    """What is wrong with a contract's ``source_sha``."""

    NOT_A_SHA = "not_a_sha"
    """A branch, a tag or anything else that is not 7 to 40 hexadecimal digits: it would move."""
    AMBIGUOUS = "ambiguous"
    """An abbreviation that several commits share."""
    NO_COMMIT = "no_commit"
    """An object that is no commit."""
    MISSING = "missing"
    """This repository does not have it. In a shallow clone that proves nothing."""


class SourceFault(Value):
    """Why the contract's ``source_sha`` names no commit here."""

    kind: SourceFaultKind
    detail: str
    """What is wrong, in words."""
    fix: str
    """What to type, or to write into the contract."""


class CodeState(Value):
    """One checkout at one moment. Paths are relative to its top level, with ``/``."""

    directory: str
    """The checkout's top level."""
    head: str
    """The full SHA that is checked out."""
    branch: str
    """Empty when the checkout is at no branch."""
    dirty: tuple[str, ...]
    """Every path that differs from ``head``, files that git does not know and does not ignore among them; sorted."""
    patch_sha256: str
    """SHA-256 over the difference in the paths of ``dirty`` that are not harmless; empty when there is none.

    Of each path its kind and content as it lies in the work tree, tracked or not. Of a file above 64 MiB, and of
    everything beyond 1 GiB together, size and time of change stand in for the content that is not read.
    """
    upstream: str
    """The remote branch that ancestry is judged by, e.g. ``origin/main``."""
    fetched_at: AwareDatetime | None
    """When Hero last fetched ``upstream``; None when it never did, and what is said of it may be old."""
    fetch_fault: str = ""
    """Why the newest fetch brought nothing; empty when it did, or when none was tried."""
    source: SourceCommit | None
    """None when the contract names no commit, or one that is wrong: then ``source_fault`` says why."""
    source_fault: SourceFault | None = None
    changed: tuple[str, ...] = ()
    """The paths that differ between ``source`` and ``head``, sorted; empty when they are the same commit."""
    harmless: tuple[str, ...] = ()
    """The globs of the paths that cannot change what is trained: the settings', the contract's, and what the run itself
    writes; see ``bot.model.harmless``."""
    is_shallow: bool = False
    """Whether the repository's history is cut off; then "not there" and "not an ancestor" prove nothing."""
    underway: str = ""
    """What was begun in the checkout and not ended: ``a rebase``, ``a merge`` …; empty when nothing was."""

    @property
    def identity(self) -> str:
        """What would be launched from here, in one line that moves with every change that counts and with no other."""
        if not self.patch_sha256:
            return self.head
        return f"{self.head} with changes that are not committed, SHA-256 {self.patch_sha256}"

    @property
    def dirty_that_counts(self) -> tuple[str, ...]:
        """The paths of ``dirty`` that could change what is trained."""
        return unharmless(self.dirty, self.harmless)

    @property
    def changed_that_counts(self) -> tuple[str, ...]:
        """The paths of ``changed`` that could change what is trained."""
        return unharmless(self.changed, self.harmless)


class Patch(Value):
    """The difference between a commit and a checkout as it may be kept on record: secrets scrubbed, bounded."""

    head: str
    text: str
    """A unified diff of the paths that are not harmless; binary content is named and not shown."""
    is_cut: bool
    text_sha256: str
    """Of ``text`` as it is here, so that a record can show that it was not changed."""
    patch_sha256: str
    """The identity of the whole difference, as in ``CodeState``; empty when there is none."""
