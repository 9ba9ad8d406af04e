"""code.lineage: the commit, its branch and the checkout of the next launch; and what could not be asked."""

from datetime import timedelta
from typing import Any

import pytest

from bot.model.code import CodeState, SourceCommit, SourceFault, SourceFaultKind
from bot.model.contract import Contract
from bot.model.harmless import HARMLESS
from bot.model.job import JobState
from bot.model.reading import Gap, Known, Unknown
from bot.model.snapshot import Snapshot
from bot.model.verdict import Finding, NotApplicable, Pass, UnknownVerdict, Verdict
from checks import CHECKS
from checks.code import LINEAGE
from tests.fakes.snapshots import AT, contract, job, snapshot, unknown
from tests.unit.checks import story

SHA, OTHER = "a" * 40, "b" * 40
PROMISED = contract(source_sha=SHA)
ON_MAIN = SourceCommit(sha=SHA, pushed_to=("origin/main",), is_ancestor=True)


def state(**fields: Any) -> CodeState:
    """Return a clean checkout at the source commit, which is on the fetched main."""
    given: dict[str, Any] = {
        "directory": "/src/hero",
        "head": SHA,
        "branch": "main",
        "dirty": (),
        "patch_sha256": "",
        "upstream": "origin/main",
        "fetched_at": AT,
        "source": ON_MAIN,
        "harmless": HARMLESS,
    }
    return CodeState.model_validate(given | fields)


def seeing(code: CodeState | Unknown, **fields: Any) -> Snapshot:
    reading = code if isinstance(code, Unknown) else Known(value=code, at=AT)
    return snapshot(**fields).model_copy(update={"code": reading})


def verdict(code: CodeState | Unknown, promised: Contract = PROMISED, **fields: Any) -> Verdict:
    return story.verdict(LINEAGE, seeing(code, **fields), promised=promised)


def finding(code: CodeState, promised: Contract = PROMISED) -> Finding:
    return story.finding(LINEAGE, seeing(code), promised=promised)


def fault(kind: SourceFaultKind) -> SourceFault:
    return SourceFault(kind=kind, detail=f"the source is {kind}", fix="write all of the SHA")


def test_it_is_one_of_the_checks_and_a_rebase_of_one_look_is_no_incident() -> None:
    assert LINEAGE in CHECKS
    assert LINEAGE.patience.fails == 2


def test_a_clean_checkout_at_a_commit_of_the_branch_passes() -> None:
    assert verdict(state()) == Pass()


def test_paths_that_cannot_matter_are_nothing() -> None:
    moved = state(head=OTHER, changed=("README.md", "tests/test_a.py"), dirty=("run.log", "docs/a.md"))

    assert verdict(moved) == Pass()


def test_a_checkout_elsewhere_says_what_a_relaunch_would_train_and_both_ways_back() -> None:
    found = finding(state(head=OTHER, branch="topic", changed=("README.md", "src/model.py", "src/other.cfg")))

    assert "at bbbbbbbbbbbb (branch topic) and not at aaaaaaaaaaaa; 2 files that count differ" in found.summary
    assert any("touches the training trajectory" in line and "src/model.py" in line for line in found.evidence)
    assert f"git -C /src/hero checkout --detach {SHA}" in found.advice
    assert f"worktree add ../hero-12d8b6f0 {SHA}" in found.advice
    assert "not touched" in found.advice
    assert not found.is_recoverable


def test_changes_that_are_not_committed_count_until_they_are_approved() -> None:
    dirty = state(dirty=("src/logging/writer.py", "notes.md"), patch_sha256="1" * 64, underway="a rebase")

    found = finding(dirty)

    assert "changes in 1 file that counts that are not committed; a rebase is underway" in found.summary
    assert any("none of them touches the training trajectory" in line for line in found.evidence)
    assert "dirty_approved = true in runs/hero-12d8b6f0.toml" in found.advice
    assert verdict(dirty, contract(source_sha=SHA, dirty_approved=True)) == Pass()


def test_names_that_tell_nothing_are_said_to() -> None:
    found = finding(state(dirty=("uv.lock",), patch_sha256="1" * 64))

    assert any("their names do not tell" in line for line in found.evidence)


def test_a_commit_that_was_not_pushed_or_is_on_another_branch_is_told_with_the_command() -> None:
    unpushed = finding(state(source=SourceCommit(sha=SHA, pushed_to=(), is_ancestor=False)))
    astray = finding(state(source=SourceCommit(sha=SHA, pushed_to=("origin/topic",), is_ancestor=False)))

    assert "on no branch of origin: it was not pushed" in unpushed.summary
    assert f"git -C /src/hero push origin {SHA}:refs/heads/BRANCH" in unpushed.advice
    assert "is on origin/topic and not on origin/main" in astray.summary


@pytest.mark.parametrize("kind", SourceFaultKind)
def test_a_source_that_names_no_commit_is_a_finding_with_its_fix(kind: SourceFaultKind) -> None:
    found = finding(state(source=None, source_fault=fault(kind)))

    assert f"the source is {kind}" in found.summary
    assert "write all of the SHA" in found.advice


def test_a_bundle_is_launched_in_the_checkouts_place() -> None:
    promised = contract(source_sha=SHA, bundle="gs://bucket/bundle.zip")

    assert verdict(state(head=OTHER, changed=("src/model.py",), dirty=("train.py",)), promised) == Pass()


@pytest.mark.parametrize(
    "unclear",
    [
        unknown(),
        unknown(Gap.NOT_CONFIGURED),
        state(source=SourceCommit(sha=SHA, pushed_to=(), is_ancestor=None, ancestry_gap="cut off"), is_shallow=True),
        state(source=None, source_fault=fault(SourceFaultKind.MISSING), is_shallow=True),
        state(source=SourceCommit(sha=SHA, pushed_to=(), is_ancestor=False), fetched_at=None),
        state(source=SourceCommit(sha=SHA, pushed_to=(), is_ancestor=False), fetched_at=AT - timedelta(days=2)),
    ],
    ids=["timeout", "no git", "shallow", "missing in a shallow one", "never fetched", "fetched long ago"],
)
def test_what_could_not_be_asked_is_unknown_and_never_a_no(unclear: CodeState | Unknown) -> None:
    assert isinstance(verdict(unclear), UnknownVerdict)


def test_what_is_seen_of_the_checkout_counts_though_the_remote_does_not_answer() -> None:
    gone = SourceCommit(sha=SHA, pushed_to=(), is_ancestor=None, ancestry_gap="origin/main is not here")

    found = finding(state(source=gone, dirty=("train.py",), fetched_at=None, fetch_fault="origin did not answer"))

    assert "the newest fetch failed: origin did not answer" in found.evidence


def test_without_a_commit_or_after_a_success_there_is_nothing_to_hold_it_against() -> None:
    dirty = state(dirty=("train.py",))

    assert isinstance(verdict(dirty, contract()), NotApplicable)
    assert isinstance(verdict(unknown(Gap.NOT_CONFIGURED), contract()), NotApplicable)
    assert isinstance(verdict(dirty, jobs=job(JobState.SUCCEEDED)), NotApplicable)


def test_a_pass_needs_to_know_whether_the_run_goes_on() -> None:
    assert isinstance(verdict(state(), jobs=unknown()), UnknownVerdict)


def test_the_path_rules_are_thresholds_that_a_contract_moves() -> None:
    ours = contract(source_sha=SHA, thresholds={"code.lineage": {"affecting_paths": ["secret_sauce"], "shown": 1}})

    found = finding(state(dirty=("a.cfg", "secret_sauce.cfg")), ours)

    assert any("touches the training trajectory" in line and "secret_sauce.cfg" in line for line in found.evidence)
    assert "not committed: a.cfg and 1 more" in found.evidence
