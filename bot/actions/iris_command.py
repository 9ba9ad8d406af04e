"""What a contract's Iris submit command would do, and what must be mended in it before Hero may run it; pure.

Sources: babysit-job, "Required Info" items 3 and 5 (``--no-wait``; ``--tpu`` besides ``--reserve``); the options are
those of ``iris job run`` in marin-iris 0.2.20 to 0.2.227.
"""

import re
from collections.abc import Sequence

from bot.actions.ports import Submission, Unlaunchable
from bot.model.contract import Contract
from bot.model.value import JobId, Value

_TPU = re.compile(r"(?:\d+:)?(v\d+[a-z]*-\d+)", re.IGNORECASE)
_TWO_VALUES = frozenset({"-e", "--env-vars", "--secret"})
_ONE_VALUE = frozenset(
    {
        "--container-profile", "--cpu", "--disk", "--egress-policy", "--exclude", "--extra", "--gpu", "--include",
        "--job-name", "--max-retries", "--memory", "--priority", "--region", "--replicas", "--reserve",
        "--secret-behavior", "--sync-package", "--system-reason", "--target-cluster", "--task-image", "--timeout",
        "--tpu", "--user", "--zone",
    }
)  # fmt: skip


class _Options(Value):
    """The options between ``job run`` and the program's own words."""

    given: tuple[tuple[str, str], ...]
    """Each option with its value; an empty one for a flag."""

    def all(self, name: str) -> tuple[str, ...]:
        return tuple(value for option, value in self.given if option == name)

    def last(self, name: str) -> str | None:
        """The value that counts, as for click; None when the option is not given."""
        return (self.all(name) or (None,))[-1]

    def has(self, name: str) -> bool:
        return any(option == name for option, _ in self.given)


def prepare_submission(contract: Contract, *, default_name: str) -> Submission | Unlaunchable:
    """Return what submitting the contract's command would be.

    A job without a name is given ``default_name``, and its user is written out: an answer that is lost can only be
    looked up by the id, so the id must be certain beforehand, whoever Hero runs as.

    Args:
        contract: of the run.
        default_name: for a command that names no job.
    """
    if contract.orchestrator.kind != "iris":
        return Unlaunchable(problems=("the run is no Iris job; set [orchestrator] kind",))
    words = contract.command
    before = words[: words.index("--")] if "--" in words else words
    place = next((n for n in range(len(before) - 1) if before[n : n + 2] == ("job", "run")), None)
    if place is None:
        return _script(contract, _options(before[1:], is_open=False))
    options = _options(before[place + 2 :], is_open="--" not in words)
    problems = (*_missing_no_wait(options), *_missing_tpu(options, contract.hardware), *_bad_names(options))
    if problems:
        return Unlaunchable(problems=problems)
    return _named(contract, options, after=place + 2, default_name=default_name)


def _script(contract: Contract, options: _Options) -> Submission | Unlaunchable:
    """A launch script keeps its words; which job it makes only the contract can say."""
    problems = (*_missing_no_wait(options), *_missing_tpu(options, None))
    if problems:
        return Unlaunchable(problems=problems)
    job_id = contract.orchestrator.job_id or JobId("")
    note = f"nothing: the command is no plain `iris job run`, so its job is taken to be the contract's, {job_id}"
    return Submission(job_id=job_id, command=contract.command, notes=(note,))


def _named(contract: Contract, options: _Options, *, after: int, default_name: str) -> Submission:
    added: list[str] = []
    notes: list[str] = []
    name = options.last("--job-name")
    if name is None:
        name = default_name
        added += ["--job-name", name]
        notes.append(f"--job-name {name}, so that the job can be looked up if the answer is lost")
    user = options.last("--user") or contract.environment.get("IRIS_USER")
    if user is None:
        user = (contract.orchestrator.job_id or "//").split("/")[1]
        added += ["--user", user]
        notes.append(f"--user {user}, the user of the contract's job, whoever Hero runs as")
    command = (*contract.command[:after], *added, *contract.command[after:])
    return Submission(job_id=JobId(f"/{user}/{name}"), command=command, notes=tuple(notes))


def _options(words: Sequence[str], *, is_open: bool) -> _Options:
    """Read options with their values, so that a variable's value is not taken for an option.

    Args:
        words: up to the first ``--``.
        is_open: whether there is no ``--``: then the first word that is no option begins the program.
    """
    given: list[tuple[str, str]] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            if is_open:
                break
        elif equals:
            given.append((name, value))
        elif word in _TWO_VALUES:
            del rest[:2]
        else:
            given.append((word, rest.pop(0) if word in _ONE_VALUE and rest else ""))
    return _Options(given=tuple(given))


def _missing_no_wait(options: _Options) -> tuple[str, ...]:
    if options.has("--no-wait"):
        return ()
    problem = (
        "the command would wait until the job ends; add --no-wait to the options of `job run`, "
        "before `--` and the program's own words"
    )
    return (problem,)


def _missing_tpu(options: _Options, hardware: str | None) -> tuple[str, ...]:
    if options.last("--tpu"):
        return ()
    reserved = next((found[1] for value in options.all("--reserve") if (found := _TPU.fullmatch(value))), None)
    if reserved:
        problem = f"--reserve {reserved} only holds capacity and attaches no TPU to the task; add --tpu {reserved}"
        return (f"{problem} (with --enable-extra-resources)",)
    if options.all("--reserve") and not options.last("--gpu"):
        device = options.all("--reserve")[-1]
        problem = f"--reserve {device} only holds capacity and attaches no accelerator; add --tpu or --gpu"
        return (f"{problem} (with --enable-extra-resources)",)
    named = _TPU.search(hardware or "")
    if named or "tpu" in options.all("--extra") or "tpu" in (hardware or "").lower():
        variant = named[1] if named else "VARIANT"
        why = f"hardware = {hardware!r}" if hardware and (named or "tpu" in hardware.lower()) else "--extra tpu"
        problem = f"this is a TPU job ({why}) and the command requests none; add --tpu {variant}"
        return (f"{problem} (with --enable-extra-resources)",)
    return ()


def _bad_names(options: _Options) -> tuple[str, ...]:
    return tuple(
        f"{option} {value!r} must be a name without '/'; Iris refuses it as it stands"
        for option in ("--job-name", "--user")
        if (value := options.last(option)) is not None and (not value.strip() or "/" in value)
    )
