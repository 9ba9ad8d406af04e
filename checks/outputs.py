"""What can go wrong with where a run writes: another place than its contract promises.

Only places of one kind can be compared: a mount of a bucket has a path on every host and an address of its own.
"""

import posixpath
from typing import NamedTuple

from bot.model.contract import Contract
from bot.model.launched import LaunchedConfig
from bot.model.reading import Gap
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, UnknownVerdict, Verdict
from checks.check import Check
from checks.current import instance_of, launched_in
from checks.thresholds import NoMemory, NoThresholds

OUTPUT_ID = CheckId("output.path")

_SCHEMES = {"gcs": "gs", "s3a": "s3", "s3n": "s3", "local": "file", "": "file"}
_LOCAL = "file"
_OPEN = ("$", "{", "~", "<", "%(")
"""What is filled in where the trainer runs, and not known here."""


class Place(NamedTuple):
    """A path or an address in one spelling: without a slash at its end, without the many names of one scheme."""

    scheme: str
    path: str

    def is_within(self, other: "Place") -> bool:
        """Return whether this is the other place or lies below it; upper and lower case differ."""
        return self.scheme == other.scheme and (self.path == other.path or self.path.startswith(f"{other.path}/"))


class Wrong(NamedTuple):
    """One place that is not where it was promised."""

    severity: Severity
    text: str
    detail: str


def output_path(
    seen: Snapshot, contract: Contract, _limits: NoThresholds, memory: NoMemory
) -> tuple[Verdict, NoMemory]:
    """Fail when the launched configuration writes outputs or checkpoints elsewhere than the contract promises."""
    config = launched_in(seen, "where the run writes is not known")
    if not isinstance(config, LaunchedConfig):
        return config, memory
    told = {word: path for word in _JUDGES if (path := config.text(word)) is not None}
    open_ends = [path for path in told.values() if any(mark in path for mark in _OPEN)]
    judged = [_JUDGES[word](path, config, contract) for word, path in told.items() if path not in open_ends]
    wrong = [found for found in judged if found is not None]
    if wrong:
        return Fail(finding=_finding(wrong, instance_of(seen, ""), config)), memory
    if open_ends:
        detail = f"{open_ends[0][:200]} is filled in where the trainer runs, and cannot be compared here"
        return UnknownVerdict(reason=Gap.UNRECOGNISED, detail=detail), memory
    if not any(_is_comparable(path, contract) for path in told.values()):
        reason = "the launched configuration names no output that could be compared; [config] keys can say where it is"
        return NotApplicable(reason=reason), memory
    return Pass(), memory


def place_of(path: str, checkout: str) -> Place:
    """Return a path or an address in one spelling; relative paths lie below the checkout, links stay as they are."""
    scheme, separator, rest = path.strip().partition("://")
    scheme, rest = (scheme.lower(), rest) if separator else ("", path.strip())
    scheme = _SCHEMES.get(scheme, scheme)
    if scheme == _LOCAL:
        return Place(scheme, posixpath.normpath(posixpath.join(checkout, rest)))
    # In a bucket a//b and a/b are two places, so nothing but the end is taken off.
    return Place(scheme, rest.rstrip("/"))


def _outputs(path: str, config: LaunchedConfig, contract: Contract) -> Wrong | None:
    root = place_of(contract.output_root, contract.checkout)
    candidates = _candidates(path, config, contract)
    if any(each.is_within(root) for each in candidates) or not _can_be_compared(path, (root,)):
        return None
    return _elsewhere("output", path, config.key("output_root"), f"output_root is {contract.output_root}", contract)


def _checkpoints(path: str, config: LaunchedConfig, contract: Contract) -> Wrong | None:
    roots = _places(contract)
    candidates = _candidates(path, config, contract)
    if any(each in roots for each in candidates) or not _can_be_compared(path, roots):
        return None
    key = config.key("checkpoint_root")
    promised = f"checkpoints are promised in {', '.join(contract.roots)}"
    output = place_of(contract.output_root, contract.checkout)
    if any(each.is_within(other) for each in candidates for other in (*roots, output)):
        text = f"checkpoints go to {path}, where Hero does not look for them"
        return Wrong(Severity.WARNING, text, f"{key}: {path}; {promised}")
    return _elsewhere("checkpoints", path, key, promised, contract)


def _temporary(path: str, config: LaunchedConfig, contract: Contract) -> Wrong | None:
    roots = _places(contract)
    candidates = _candidates(path, config, contract)
    if any(each in roots for each in candidates) or not _can_be_compared(path, roots):
        return None
    text = f"temporary checkpoints go to {path}, where Hero does not look for them"
    detail = f"{config.key('temporary_checkpoint_root')}: {path}; name it as resume_root or in checkpoint_roots"
    return Wrong(Severity.WARNING, text, detail)


_JUDGES = {"output_root": _outputs, "checkpoint_root": _checkpoints, "temporary_checkpoint_root": _temporary}


def _elsewhere(what: str, path: str, key: str | None, promised: str, contract: Contract) -> Wrong:
    """A path on other hosts may be a mount of the promised one, so only what is certain wakes anybody."""
    is_remote = place_of(path, contract.checkout).scheme != _LOCAL
    is_on_the_host = _is_relative(path) and "://" in contract.output_root
    is_certain = is_remote or is_on_the_host or contract.orchestrator.kind == "local"
    severity = Severity.CRITICAL if is_certain else Severity.WARNING
    return Wrong(
        severity,
        f"{what} go to {path}" if what.endswith("s") else f"{what} goes to {path}",
        f"{key}: {path}; {promised}",
    )


def _candidates(path: str, config: LaunchedConfig, contract: Contract) -> tuple[Place, ...]:
    """Return where a base path may come to: Levanter appends the run's id to it unless it is told not to."""
    base = place_of(path, contract.checkout)
    flags = [config.flag(key) for key in config.values if key.endswith("append_run_id_to_base_path")]
    ids = {contract.run_id, contract.tracker.id or contract.run_id}
    appended = tuple(Place(base.scheme, f"{base.path}/{each}") for each in sorted(ids))
    match flags:
        case [True]:
            return appended
        case [False]:
            return (base,)
        case _:
            return (base, *appended)


def _places(contract: Contract) -> tuple[Place, ...]:
    return tuple(place_of(root, contract.checkout) for root in contract.roots)


def _can_be_compared(path: str, promised: tuple[Place, ...]) -> bool:
    """Paths are compared with paths, addresses with addresses; a relative path is on the host's own disk for sure."""
    is_local = "://" not in path or place_of(path, "/").scheme == _LOCAL
    return _is_relative(path) or any((each.scheme == _LOCAL) is is_local for each in promised)


def _is_relative(path: str) -> bool:
    return "://" not in path and not path.strip().startswith("/")


def _is_comparable(path: str, contract: Contract) -> bool:
    promised = (*_places(contract), place_of(contract.output_root, contract.checkout))
    return _can_be_compared(path, promised)


def _finding(wrong: list[Wrong], instance: str, config: LaunchedConfig) -> Finding:
    worst = max(wrong, key=lambda each: each.severity.rank)
    return Finding(
        check=OUTPUT_ID,
        key=instance,
        severity=worst.severity,
        summary=f"wrong output path: {' '.join(worst.text.split())}, and the contract promises another place"
        if worst.severity is Severity.CRITICAL
        else f"output path: {' '.join(worst.text.split())}",
        evidence=(*(" ".join(each.detail.split()) for each in wrong), f"read from {config.origin}"),
        advice="Whose mistake is it? If the contract's, mend its roots: a relaunch is planned from the checkpoints "
        "below them. If the launch's, stop it before more is written there, and before it overwrites another run.",
    )


OUTPUT = Check(
    id=OUTPUT_ID,
    title="The run writes elsewhere than its contract promises",
    severity=Severity.CRITICAL,
    needs=(Source.CONFIG, Source.JOBS),
    source='manage-hero-run, "What Can Go Wrong": wrong checkpoint or output path, and "Launch": output root',
    thresholds=NoThresholds(),
    memory=NoMemory(),
    judge=output_path,
)
