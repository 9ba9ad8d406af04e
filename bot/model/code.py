"""What git says of a run's source: the commit it was launched from, the checkout it would be launched from again."""

from pydantic import AwareDatetime

from bot.model.value import Value


class SourceCommit(Value):
    """The commit that a contract names as the run's source."""

    sha: str
    """All 40 hexadecimal digits."""
    pushed_to: tuple[str, ...]
    """The fetched remote branches that contain it, e.g. ``origin/main``; empty when it was never pushed."""
    is_ancestor: bool
    """Whether it is an ancestor of the fetched branch that the contract's ``[code]`` names, or its tip."""


class CodeState(Value):
    """One checkout at one moment. Paths are relative to its top level, with ``/``."""

    directory: str
    head: str
    """The full SHA that is checked out."""
    branch: str
    """Empty when the checkout is at no branch."""
    dirty: tuple[str, ...]
    """Every path that differs from ``head``, files that git does not know and does not ignore among them; sorted."""
    patch_sha256: str
    """SHA-256 over the whole difference, contents of unknown files included; empty when there is none."""
    upstream: str
    """The remote branch that ancestry is judged by, e.g. ``origin/main``."""
    fetched_at: AwareDatetime | None
    """When ``upstream`` was last fetched successfully; None when it never was, and what is said of it may be old."""
    source: SourceCommit | None
    """None when the contract names no commit, or one that is wrong: then ``source_fault`` says why."""
    source_fault: str = ""
    """E.g. a branch name in place of a SHA, an ambiguous abbreviation, a commit that this repository does not have."""
    changed: tuple[str, ...] = ()
    """The paths that differ between ``source`` and ``head``, sorted; empty when they are the same commit."""
