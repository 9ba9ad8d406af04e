"""What can go wrong with the source: another commit, another tree or another line than the run was launched from.

The job that runs is not touched by any of it. What is in danger is the next launch: it would be made from the checkout
as it is then, and would train other code under the same name.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from pydantic import Field

from bot.model.code import CodeState, SourceCommit, SourceFaultKind
from bot.model.contract import Contract
from bot.model.durations import Duration, say_duration
from bot.model.job import JobState
from bot.model.reading import Gap, Unknown
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Patience, Severity, UnknownVerdict, Verdict
from checks.check import Check
from checks.crash.paths import TrajectoryPaths, path_affects_trajectory
from checks.current import unseen
from checks.thresholds import NoMemory, Thresholds

LINEAGE_ID = CheckId("code.lineage")
_RULES = TrajectoryPaths()
_SHORT = 12
_PATH_CHARS = 120


class LineageThresholds(Thresholds):
    fetched: Duration = timedelta(hours=24)
    """How old the last fetch may be before "not pushed" and "not on the branch" count as not known. Ours."""
    shown: int = Field(default=5, ge=1)
    """How many paths of each kind are named. Ours."""
    affecting_paths: tuple[str, ...] = _RULES.affecting_paths
    """Paths of the model, the optimizer and the data pipeline, as regular expressions. The crash classes' own."""
    loop_paths: tuple[str, ...] = _RULES.loop_paths
    """Paths of the training loop. The crash classes' own."""
    harmless_paths: tuple[str, ...] = _RULES.harmless_paths
    """Paths of logging, evaluation and plots, which change nothing that is learned. The crash classes' own; which paths
    do not count at all, `[git] harmless` and the contract's `[code] harmless` say."""

    @property
    def rules(self) -> TrajectoryPaths:
        """The path rules as the crash classes take them."""
        return TrajectoryPaths(
            affecting_paths=self.affecting_paths, loop_paths=self.loop_paths, harmless_paths=self.harmless_paths
        )


class Astray(Value):
    """One way in which what would be launched is not what the contract names."""

    text: str
    """What is so."""
    means: str
    """What a relaunch would do."""
    fix: str
    """What to type."""
    evidence: tuple[str, ...] = ()


def checkout_astray(
    state: CodeState, contract: Contract, limits: LineageThresholds | None = None
) -> tuple[Astray, ...]:
    """Return how the checkout is not at the contract's commit, in paths that could change what is trained.

    Nothing when the contract names no commit, since then there is nothing to hold it against, and when a bundle is
    submitted in the checkout's place.
    """
    limits = limits or LineageThresholds()
    if contract.source_sha is None or contract.bundle is not None:
        return ()
    found: list[Astray] = []
    if state.source is None:
        found.append(_unnamed(state))
    elif state.changed_that_counts:
        found.append(_elsewhere(state, state.source, contract, limits))
    if state.dirty_that_counts and not contract.dirty_approved:
        found.append(_dirty(state, contract, limits))
    return tuple(found)


def is_cut_off(state: CodeState) -> bool:
    """Return whether the contract's commit is not there and might be in the part of the history that is cut off."""
    fault = state.source_fault
    return state.is_shallow and fault is not None and fault.kind is SourceFaultKind.MISSING


def lineage(
    seen: Snapshot, contract: Contract, limits: LineageThresholds, memory: NoMemory
) -> tuple[Verdict, NoMemory]:
    """Fail when the contract's commit is not on its branch, or when its checkout would launch something else."""
    return _judge(seen, contract, limits), memory


def _judge(seen: Snapshot, contract: Contract, limits: LineageThresholds) -> Verdict:
    is_absent = isinstance(seen.code, Unknown) and seen.code.reason is Gap.NOT_CONFIGURED
    if isinstance(seen.code, Unknown) and not (is_absent and contract.source_sha is None):
        return unseen(seen.code, "the source cannot be read")
    if isinstance(seen.code, Unknown) or contract.source_sha is None:
        return NotApplicable(reason="the contract names no source_sha")
    if seen.job is not None and seen.job.state is JobState.SUCCEEDED:
        return NotApplicable(reason="the run has succeeded, so nothing is launched from the checkout any more")
    verdict = _judge_state(seen.code.value, contract, seen.at, limits)
    if isinstance(verdict, Pass) and isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "whether anything is launched from the checkout any more is not known")
    return verdict


def _judge_state(state: CodeState, contract: Contract, at: datetime, limits: LineageThresholds) -> Verdict:
    if state.source_fault is not None and is_cut_off(state):
        detail = f"{state.source_fault.detail}; {state.source_fault.fix}"
        return UnknownVerdict(reason=Gap.UNRELIABLE, detail=detail)
    found = (*not_on_line(state, contract, at, limits), *checkout_astray(state, contract, limits))
    if found:
        return Fail(finding=_finding(state, contract, found))
    gap = line_gap(state, at, limits)
    return UnknownVerdict(reason=Gap.UNRELIABLE, detail=gap) if gap else Pass()


def _is_fresh(state: CodeState, at: datetime, limits: LineageThresholds) -> bool:
    return state.fetched_at is not None and at - state.fetched_at <= limits.fetched


def line_gap(state: CodeState, at: datetime, limits: LineageThresholds) -> str:
    """Return why it is not known whether the commit is on its branch; empty when it is known."""
    source = state.source
    if source is None or source.is_ancestor:
        return ""
    if source.is_ancestor is None:
        return f"whether {source.sha[:_SHORT]} is on {state.upstream} is not known: {source.ancestry_gap}"
    if _is_fresh(state, at, limits):
        return ""
    age = f"{say_duration(at - state.fetched_at)} ago" if state.fetched_at else "never"
    why = f" ({state.fetch_fault})" if state.fetch_fault else ""
    return f"{source.sha[:_SHORT]} is not on {state.upstream} as it lies here, which Hero fetched {age}{why}"


def not_on_line(state: CodeState, contract: Contract, at: datetime, limits: LineageThresholds) -> Iterator[Astray]:
    """Yield how the contract's commit is not on the branch that its ``[code]`` names, as far as that is known."""
    source = state.source
    if source is None or source.is_ancestor is not False or not _is_fresh(state, at, limits):
        return
    sha = source.sha[:_SHORT]
    push = f"`git -C {state.directory} push {contract.code.remote} {source.sha}:refs/heads/BRANCH`"
    if source.pushed_to:
        yield Astray(
            text=f"the source commit {sha} is on {', '.join(source.pushed_to[:3])} and not on {state.upstream}",
            means="what runs is not of the line that the contract names",
            fix=f"merge it into {contract.code.branch}, or name the right branch in runs/{contract.run_id}.toml, "
            "[code] branch",
        )
    elif not state.is_shallow:
        yield Astray(
            text=f"the source commit {sha} is on no branch of {contract.code.remote}: it was not pushed",
            means="if this machine is lost, nobody can launch the run again or say what it trained",
            fix=f"push it: {push}",
        )


def _unnamed(state: CodeState) -> Astray:
    fault = state.source_fault
    return Astray(
        text=fault.detail if fault else "the source commit could not be resolved",
        means=f"a relaunch would be made from {state.head[:_SHORT]} with nothing to hold it against",
        fix=fault.fix if fault else "correct source_sha in the contract",
    )


def _elsewhere(state: CodeState, source: SourceCommit, contract: Contract, limits: LineageThresholds) -> Astray:
    paths = state.changed_that_counts
    where = f"branch {state.branch}" if state.branch else "no branch"
    return Astray(
        text=f"the checkout is at {state.head[:_SHORT]} ({where}) and not at {source.sha[:_SHORT]}; "
        f"{_say_count(paths)} differ{'s' if len(paths) == 1 else ''}",
        means=f"a relaunch would train {state.head[:_SHORT]} under the same run id{_trajectory(paths, limits)}",
        fix=f"`git -C {state.directory} checkout --detach {source.sha}`, or, to leave this checkout alone, "
        f"`git -C {state.directory} worktree add ../{contract.run_id} {source.sha}` and `checkout` in "
        f"runs/{contract.run_id}.toml; if the newer code is meant, name it there as source_sha",
        evidence=(f"changed since {source.sha[:_SHORT]}: {_say_paths(paths, limits)}",),
    )


def _dirty(state: CodeState, contract: Contract, limits: LineageThresholds) -> Astray:
    paths = state.dirty_that_counts
    underway = f"; {state.underway} is underway" if state.underway else ""
    return Astray(
        text=f"the checkout has changes in {_say_count(paths)} that are not committed{underway}",
        means=f"a relaunch would train them, and no commit would say so{_trajectory(paths, limits)}",
        fix=f"look at `git -C {state.directory} status`, then commit and push them, or set them aside with "
        f"`git -C {state.directory} stash --include-untracked`; if they are meant, set dirty_approved = true in "
        f"runs/{contract.run_id}.toml; if they cannot change what is trained, name them under [code] harmless",
        evidence=(f"not committed: {_say_paths(paths, limits)}",),
    )


def _trajectory(paths: tuple[str, ...], limits: LineageThresholds) -> str:
    """Say whether the paths touch what is learned, by the rules of the crash classes."""
    judged = {path: path_affects_trajectory(path, limits.rules) for path in paths}
    touching = tuple(path for path, affects in judged.items() if affects)
    if touching:
        named = _say_paths(touching, limits)
        return f"; this touches the training trajectory (model, loop, optimizer or data pipeline): {named}"
    if all(affects is False for affects in judged.values()):
        return "; by their names none of them touches the training trajectory"
    return "; whether this touches the training trajectory their names do not tell"


def _say_count(paths: tuple[str, ...]) -> str:
    return f"{len(paths)} file{'' if len(paths) == 1 else 's'} that count{'s' if len(paths) == 1 else ''}"


def _say_paths(paths: tuple[str, ...], limits: LineageThresholds) -> str:
    more = f" and {len(paths) - limits.shown} more" if len(paths) > limits.shown else ""
    return ", ".join(" ".join(path.split())[-_PATH_CHARS:] for path in paths[: limits.shown]) + more


def _finding(state: CodeState, contract: Contract, found: tuple[Astray, ...]) -> Finding:
    evidence = [f"source_sha in the contract: {contract.source_sha}", f"checked out in {state.directory}: {state.head}"]
    evidence += [line for each in found for line in each.evidence]
    evidence += [f"{each.text}: {each.means}" for each in found]
    if state.fetch_fault:
        evidence.append(f"the newest fetch failed: {state.fetch_fault}")
    return Finding(
        check=LINEAGE_ID,
        key=(contract.source_sha or "")[:_SHORT],
        severity=Severity.WARNING,
        summary="; ".join(each.text for each in found),
        evidence=tuple(evidence),
        advice="What runs now is not touched by this. " + " ".join(f"{each.fix}." for each in found),
    )


LINEAGE = Check(
    id=LINEAGE_ID,
    title="The source is not what the run was launched from",
    severity=Severity.WARNING,
    needs=(Source.CODE, Source.JOBS),
    source='manage-hero-run, "What Can Go Wrong": wrong code lineage',
    thresholds=LineageThresholds(),
    memory=NoMemory(),
    judge=lineage,
    patience=Patience(fails=2, of=2),  # a rebase or a change of branch takes less than a cadence
)
