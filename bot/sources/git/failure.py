"""What git means when it refuses, told apart into the errors of ``bot.errors``, each with its fix (git 2.39, run)."""

from bot.errors import RefusedError, ServiceError, UnreachableError
from bot.redaction import Redactor

SERVICE = "git"
_SAID_CHARS = 300
_REDACTOR = Redactor()


class NoGitError(RefusedError):
    """The program itself cannot be run."""


class NoRepositoryError(RefusedError):
    """The checkout is no git repository."""


def said(stderr: str) -> str:
    """Return the telling part of what git printed: one line, short, without the credentials of a remote's address."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "ssh:"))] or lines[-1:]
    return _REDACTOR.text("; ".join(telling))[:_SAID_CHARS] or "it said nothing"


def of_git(verb: str, directory: str, exit_code: int, stderr: str) -> ServiceError:
    """Return what a failed call means.

    Args:
        verb: ``status``, ``fetch`` …
        directory: in which it was called.
        exit_code: of git, never 0.
        stderr: what it printed; read here, and shown only through ``said``.
    """
    if "dubious ownership" in stderr or "unsafe repository" in stderr:
        fix = f"run `git config --global --add safe.directory {directory}` as the user who runs Hero"
        return RefusedError(SERVICE, f"{directory} belongs to another user, so git does not read it; {fix}")
    if "not a git repository" in stderr:
        fix = "set `checkout` to the clone or worktree that the run is launched from"
        return NoRepositoryError(SERVICE, f"{directory} is no git repository; {fix}")
    if "Permission denied" in stderr and verb != "fetch":
        return RefusedError(SERVICE, f"{directory}: {said(stderr)}; let the user who runs Hero read it")
    return UnreachableError(SERVICE, f"git {verb} in {directory} ended with {exit_code}: {said(stderr)}")
