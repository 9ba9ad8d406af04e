"""Runs git so that it asks nobody, locks nothing, starts no hook and always ends; and says where a checkout lies."""

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from bot.clock import Clock
from bot.errors import DeadlineError, RefusedError, UnrecognisedError
from bot.model.durations import say_duration
from bot.sources.git.failure import SERVICE, NoGitError, of_git
from bot.sources.git.parsing import parse_lines
from bot.sources.iris.program import Finished, child_environment, run_program

_LIMIT_BYTES = 32 * 2**20
_FIXED = (
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",  # a hook of its own, or a daemon that stays behind
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
)
_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,  # grafts make any commit an ancestor of any other
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "LC_ALL": "C",
    "LANGUAGE": "",
}
_REDIRECTING = frozenset(
    f"GIT_{name}"
    for name in (
        "DIR",
        "WORK_TREE",
        "INDEX_FILE",
        "OBJECT_DIRECTORY",
        "ALTERNATE_OBJECT_DIRECTORIES",
        "COMMON_DIR",
        "NAMESPACE",
        "PREFIX",
        "SHALLOW_FILE",
        "GRAFT_FILE",
        "QUARANTINE_PATH",
        "EXTERNAL_DIFF",
        "DIFF_OPTS",
        "LITERAL_PATHSPECS",
        "GLOB_PATHSPECS",
        "NOGLOB_PATHSPECS",
        "ICASE_PATHSPECS",
    )
)


@dataclass(frozen=True)
class Place:
    """Where a checkout lies."""

    top: Path
    """Its top level."""
    prefix: str
    """The asked directory below it, with a slash at its end; empty at the top."""
    common: str
    """The directory that all worktrees of the repository share."""
    own: Path
    """The directory that this worktree has for itself."""
    is_shallow: bool


class Left:
    """How much time of one reading is left."""

    def __init__(self, clock: Clock, whole: timedelta) -> None:
        self._clock = clock
        self._whole = whole
        self._ends = clock.monotonic() + whole.total_seconds()

    @property
    def is_over(self) -> bool:
        return self._clock.monotonic() >= self._ends

    def get(self) -> timedelta:
        """Return what is left.

        Raises:
            DeadlineError: nothing is.
        """
        left_s = self._ends - self._clock.monotonic()
        if left_s <= 0:
            raise DeadlineError(SERVICE, f"no answer in {say_duration(self._whole)}; raise [git] deadline")
        return timedelta(seconds=left_s)

    def part(self, fraction: float) -> "Left":
        """Return a share of what is left."""
        return Left(self._clock, self.get() * fraction)


class Git:
    """The program."""

    def __init__(self, program: str) -> None:
        self._program = program

    async def run(
        self, directory: Path, *arguments: str, left: Left, accepts: tuple[int, ...] = (0,), may_load: bool = False
    ) -> Finished:
        """Run git in a directory and return how it ended, with one of the exit codes that are an answer.

        Args:
            directory: exists.
            arguments: the verb and what follows it.
            left: after that it is ended, with all it has started.
            accepts: the exit codes that are an answer.
            may_load: whether a partial clone may load what it lacks from its remote.

        Raises:
            NoGitError: git cannot be run.
            DeadlineError: it did not end.
            UnrecognisedError: it printed more than can be held.
            ServiceError: it ended with another exit code.
        """
        verb = arguments[0]
        environment = {name: value for name, value in child_environment().items() if name not in _REDIRECTING}
        environment |= _QUIET if may_load else _QUIET | {"GIT_NO_LAZY_FETCH": "1"}
        try:
            ended = await run_program(
                (self._program, *_FIXED, *arguments),
                deadline=left.get(),
                environment=environment,
                directory=directory,
                limit_bytes=_LIMIT_BYTES,
            )
        except OSError as error:
            detail = f"`{self._program}` cannot be run: {error.strerror}; install git, or set [git] program"
            raise NoGitError(SERVICE, detail) from error
        if ended.exit_code is None:
            raise DeadlineError(SERVICE, f"git {verb} in {directory} did not end in time; see [git] deadline")
        if ended.exit_code not in accepts:
            raise of_git(verb, str(directory), ended.exit_code, ended.stderr)
        if ended.is_cut:
            detail = (
                f"git {verb} in {directory} printed more than {_LIMIT_BYTES >> 20} MiB; let .gitignore name outputs"
            )
            raise UnrecognisedError(SERVICE, detail)
        return ended

    async def place(self, directory: Path, left: Left) -> Place:
        """Say where a checkout lies.

        Raises:
            NoRepositoryError: it is none.
            RefusedError: it has no work tree.
            ServiceError: git could not say.
        """
        asked = ("--is-inside-work-tree", "--is-bare-repository", "--is-shallow-repository")
        where = ("--path-format=absolute", "--git-common-dir", "--git-dir")
        told = await self.run(directory, "rev-parse", *asked, *where, left=left)
        is_inside, is_bare, is_shallow, common, own = parse_lines(told.stdout_raw, 5)
        if is_inside != "true":
            what = "a bare repository" if is_bare == "true" else "inside a .git directory"
            fix = "set `checkout` to a clone or worktree, as `git worktree add` makes one"
            raise RefusedError(SERVICE, f"{directory} is {what} and has no work tree to launch from; {fix}")
        told = await self.run(
            directory, "rev-parse", "--path-format=absolute", "--show-toplevel", "--show-prefix", left=left
        )
        top, prefix = parse_lines(told.stdout_raw, 2)
        return Place(Path(top), prefix, common, Path(own), is_shallow == "true")

    async def version(self, left: Left) -> str:
        """Return ``2.39.5``.

        Raises:
            ServiceError: git cannot be run.
        """
        told = await self.run(Path.cwd(), "version", left=left)
        return told.stdout.removeprefix("git version ").strip()
