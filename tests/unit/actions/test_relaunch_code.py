"""The relaunch plan and the checkout it would be made from: refused, unknown, or named in the plan to the last byte."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.actions.ports import Submission
from bot.actions.relaunch import differences, plan_relaunch
from bot.model.code import CodeState, SourceCommit, SourceFault, SourceFaultKind
from bot.model.contract import Contract
from bot.model.planned import NoPlan, RelaunchPlan
from bot.model.reading import Gap, Known, Unknown
from bot.model.value import JobId
from bot.redaction import Redactor
from handlers.plans import plan_lines
from tests.fakes.decisions import a_plan
from tests.fakes.snapshots import AT, checkpoint, contract, failed_job, instance, snapshot, unknown

SHA, OTHER, PATCH = "a" * 40, "b" * 40, "c" * 64
PROMISED = contract(source_sha=SHA)
ON_MAIN = SourceCommit(sha=SHA, pushed_to=("origin/main",), is_ancestor=True)


class Launcher:
    def prepare(self, promised: Contract, *, number: int) -> Submission:
        return Submission(job_id=JobId(f"/me/hero-{number}"), command=promised.command)


def state(**fields: Any) -> CodeState:
    given: dict[str, Any] = {
        "directory": "/src/hero",
        "head": SHA,
        "branch": "main",
        "dirty": (),
        "patch_sha256": "",
        "upstream": "origin/main",
        "fetched_at": AT,
        "source": ON_MAIN,
        "harmless": ("*.md",),
    }
    return CodeState.model_validate(given | fields)


def plan(code: CodeState | Unknown, promised: Contract = PROMISED) -> RelaunchPlan | NoPlan:
    reading = code if isinstance(code, Unknown) else Known(value=code, at=AT)
    seen = snapshot(jobs=failed_job(137), checkpoints=[checkpoint(200)]).model_copy(update={"code": reading})
    launcher: Any = Launcher()
    return plan_relaunch(promised, seen, instance(), launcher, Redactor())


def made(code: CodeState | Unknown, promised: Contract = PROMISED) -> RelaunchPlan:
    found = plan(code, promised)
    assert isinstance(found, RelaunchPlan), found
    return found


def refused(code: CodeState | Unknown, promised: Contract = PROMISED) -> NoPlan:
    found = plan(code, promised)
    assert isinstance(found, NoPlan), found
    return found


def test_a_clean_checkout_at_the_commit_is_launched_and_named() -> None:
    found = made(state())

    assert found.code == SHA
    assert f"checkout: {SHA}" in plan_lines(found)


def test_another_commit_is_refused_with_the_way_back() -> None:
    found = refused(state(head=OTHER, changed=("src/model.py",)))

    assert "and not at aaaaaaaaaaaa" in found.reason
    assert "touches the training trajectory" in found.reason
    assert f"checkout --detach {SHA}" in found.fix
    assert not found.is_unknown


def test_another_commit_that_only_changed_words_is_launched_and_its_commit_is_in_the_plan() -> None:
    assert made(state(head=OTHER, changed=("README.md",))).code == OTHER


def test_a_dirty_tree_is_refused_unless_it_was_approved_and_then_its_digest_is_in_the_plan() -> None:
    dirty = state(dirty=("train.py",), patch_sha256=PATCH)

    assert "not committed" in refused(dirty).reason
    assert PATCH in made(dirty, contract(source_sha=SHA, dirty_approved=True)).code


def test_without_a_commit_in_the_contract_the_plan_says_what_would_be_launched() -> None:
    assert PATCH in made(state(source=None, dirty=("train.py",), patch_sha256=PATCH), contract()).code


@pytest.mark.parametrize("kind", SourceFaultKind)
def test_a_source_that_names_no_commit_is_refused_and_in_a_cut_off_history_not_known(kind: SourceFaultKind) -> None:
    fault = SourceFault(kind=kind, detail="it is wrong", fix="write the SHA")

    assert not refused(state(source=None, source_fault=fault)).is_unknown
    shallow = refused(state(source=None, source_fault=fault, is_shallow=True))
    assert shallow.is_unknown is (kind is SourceFaultKind.MISSING)


@pytest.mark.parametrize("reason", [gap for gap in Gap if gap is not Gap.NOT_CONFIGURED])
def test_a_checkout_that_could_not_be_looked_at_is_not_known_and_no_plan(reason: Gap) -> None:
    assert refused(unknown(reason)).is_unknown


def test_where_there_is_no_git_nothing_is_asked_of_it() -> None:
    assert made(unknown(Gap.NOT_CONFIGURED)).code == ""


def test_a_bundle_is_launched_in_the_checkouts_place() -> None:
    promised = contract(source_sha=SHA, bundle="gs://bucket/bundle.zip")

    assert made(state(head=OTHER, changed=("src/model.py",)), promised).code == ""


def test_a_commit_that_was_not_pushed_is_told_and_does_not_keep_a_run_down() -> None:
    assert made(state(source=SourceCommit(sha=SHA, pushed_to=(), is_ancestor=False))).code == SHA


@given(
    st.sets(st.sampled_from(("train.py", "notes.md", "src/a.py")), min_size=1),
    st.sampled_from((SHA, OTHER)),
    st.sampled_from(("", PATCH)),
)
def test_a_change_between_yes_and_submit_voids_the_yes_and_is_said_in_words(
    dirty: set[str], head: str, patch: str
) -> None:
    approved = contract(source_sha=SHA, dirty_approved=True)
    asked = made(state(dirty=("train.py",), patch_sha256="d" * 64), approved)

    rebuilt = made(state(head=head, dirty=tuple(sorted(dirty)), patch_sha256=patch), approved)

    (said,) = differences(asked, rebuilt)
    assert rebuilt.digest != asked.digest
    assert said.startswith("code: ")
    assert PATCH not in said
    assert ("has changed" in said) is (head == SHA)


def test_a_plan_that_was_stored_before_there_was_this_field_keeps_its_digest() -> None:
    before = a_plan()
    stored = before.model_dump(mode="json")
    del stored["code"]

    loaded = RelaunchPlan.model_validate(stored)

    assert loaded.code == ""
    assert loaded.digest == before.digest
    assert loaded.model_copy(update={"code": SHA}).digest != before.digest
