"""What guards ask of a launch: whether one can be planned, as whom it submits, whether its words fork a history."""

import re
from collections.abc import Iterator

from bot.model.contract import Contract
from bot.model.launched import LaunchedConfig
from bot.model.planned import NoPlan, RelaunchPlan
from bot.model.rehearsal import Rehearsal
from checks.trial.guards.guard import Word, cannot_tell, fails

_FORK = re.compile(r"[\w.-]*fork[_-]?from[\w.-]*", re.IGNORECASE)
_NOTHING = frozenset({"", "none", "null", "false", "0", '""', "''"})
_SHORTEST_SHA = 7
_USER_VARIABLE = "IRIS_USER"


def no_child(rehearsal: Rehearsal) -> Word:
    """Return the word of a guard that needs the child's contract, where there is none; ``plan.child`` fails for it."""
    file = f"runs/{rehearsal.plan.child_run_id}.toml"
    return cannot_tell("the child has no contract that can be used", f"write or mend {file}")


def unplanned(launch: NoPlan, what: str) -> Word:
    """Return the word for a launch that can't be planned: it fails, or cannot be told where a reading is missing."""
    why = "; ".join((launch.reason, *launch.evidence))
    say = cannot_tell if launch.is_unknown else fails
    return say(f"{what} cannot be planned: {why}", launch.fix)


def same_commit(one: str | None, other: str | None) -> bool:
    """Whether two names of a commit are one: equal, or an abbreviation of at least seven digits and the whole."""
    if one is None or other is None:
        return one is other
    short, long = sorted((one.lower(), other.lower()), key=len)
    return short == long or (len(short) >= _SHORTEST_SHA and long.startswith(short))


def forks_named(contract: Contract) -> tuple[str, ...]:
    """Return the words of a launch that would fork a tracker's history; their values are not shown.

    A launch script's own text is not read: only the command's words and the variables that the contract adds.
    """
    words = contract.command
    following = (*words[1:], "")
    pairs = [*zip(words, following, strict=True), *contract.environment.items()]
    found = [match[0] for word, after in pairs for match in _FORK.finditer(word) if _forks(word, match, after)]
    values = [match[0] for text in contract.environment.values() for match in _FORK.finditer(text)]
    return tuple(dict.fromkeys((*found, *values)))


def forks_configured(config: LaunchedConfig) -> tuple[str, ...]:
    """Return the keys of a launched configuration that fork a tracker's history and are set."""
    return tuple(
        key for key, text in sorted(config.values.items()) if _FORK.search(key) and not _is_nothing(text.strip('"'))
    )


def _forks(word: str, match: re.Match[str], after: str) -> bool:
    """Whether a word that names a fork gives it a value: behind ``=``, or else as the next word."""
    rest = word[match.end() :]
    if rest.startswith("="):
        return not _is_nothing(rest[1:])
    return bool(rest) or not _is_nothing(after)


def _is_nothing(text: str) -> bool:
    return text.strip().lower() in _NOTHING


def users_of(contract: Contract, launch: RelaunchPlan | NoPlan) -> Iterator[tuple[str, str]]:
    """Yield as whom a launch submits, with what says so: ``--user``, ``IRIS_USER``, and the job it would make."""
    command = launch.command if isinstance(launch, RelaunchPlan) else contract.command
    options = command[: command.index("--")] if "--" in command else command
    for word, after in zip(options, (*options[1:], ""), strict=True):
        name, equals, value = word.partition("=")
        if name == "--user":
            yield "--user", value if equals else after
        elif name == _USER_VARIABLE and equals:
            yield _USER_VARIABLE, value
    if _USER_VARIABLE in contract.environment:
        yield _USER_VARIABLE, contract.environment[_USER_VARIABLE]


def user_of_job(job_id: str | None) -> str:
    """Return the user in ``/user/name``; empty where there is none."""
    parts = (job_id or "").split("/")
    return parts[1] if len(parts) > 2 and not parts[0] else ""  # noqa: PLR2004 - "", user, name
