"""A launch from a changed checkout, over real git: the change is on disk before anything is submitted."""

from datetime import timedelta
from pathlib import Path

import pytest

from bot.actions.patches import KeepsPatch
from bot.actions.ports import Fence
from bot.clock import SystemClock
from bot.model.action import Action, Done, Refused, StepName, StepOutcome, Waiting
from bot.model.contract import Contract
from bot.model.plan import Grant
from bot.model.planned import RelaunchPlan
from bot.model.reading import Known
from bot.redaction import Redactor
from bot.settings import GitSettings
from bot.sources.git.source import GitSource
from tests.fakes.decisions import a_plan
from tests.fakes.repositories import Origin
from tests.fakes.snapshots import AT, RUN, contract
from tests.unit.handlers.scene import ADA

SECRET = "hunter2-is-the-password"


class Submits:
    """The steps behind, as far as this needs them."""

    def __init__(self) -> None:
        self.taken: list[StepName] = []

    async def take(
        self, step: StepName, action: Action, contract: Contract, *, is_resumed: bool, fence: Fence
    ) -> StepOutcome:
        assert action.run_id == contract.run_id
        assert not is_resumed
        await fence()
        self.taken.append(step)
        return Done(detail="done")


@pytest.fixture
def git() -> GitSource:
    return GitSource(GitSettings(fetch=False, deadline=timedelta(seconds=60)), SystemClock())


@pytest.fixture
def promised(tmp_path: Path) -> Contract:
    repository = Origin(tmp_path).clone()
    repository.write("train.py", f"lr = 1\npassword = '{SECRET}'\n")
    return contract(checkout=str(repository.path), dirty_approved=True)


def change(promised: Contract, text: str) -> None:
    Path(promised.checkout, "train.py").write_text(text)


def granted(plan: RelaunchPlan) -> Action:
    yes = Grant(request=7, run_id=RUN, digest=plan.digest, by=ADA, at=AT, expires_at=AT + timedelta(hours=1))
    return Action(number=1, run_id=RUN, plan=plan, grant=yes)


async def no_fence() -> None:
    return None


async def test_the_patch_is_kept_without_secrets_before_the_submission(
    git: GitSource, promised: Contract, tmp_path: Path
) -> None:
    seen = await git.code(promised)
    assert isinstance(seen, Known)
    plan = a_plan(RUN).model_copy(update={"code": seen.value.identity})
    behind, shelf = Submits(), tmp_path / "patches"
    steps = KeepsPatch(behind, git, shelf, Redactor((SECRET,)))

    for step in (StepName.VERIFY, StepName.SUBMIT):
        await steps.take(step, granted(plan), promised, is_resumed=False, fence=no_fence)

    assert behind.taken == [StepName.VERIFY, StepName.SUBMIT]
    (kept,) = shelf.iterdir()
    assert kept.name == f"{seen.value.patch_sha256}.patch"
    text = kept.read_text()
    assert seen.value.head in text
    assert "+lr = 1" in text
    assert SECRET not in text
    assert kept.parent.stat().st_mode & 0o077 == 0


async def test_a_checkout_that_changed_after_the_yes_is_not_submitted(
    git: GitSource, promised: Contract, tmp_path: Path
) -> None:
    seen = await git.code(promised)
    assert isinstance(seen, Known)
    plan = a_plan(RUN).model_copy(update={"code": seen.value.identity})
    change(promised, "lr = 2\n")
    behind = Submits()
    steps = KeepsPatch(behind, git, tmp_path / "patches", Redactor())

    outcome = await steps.take(StepName.SUBMIT, granted(plan), promised, is_resumed=False, fence=no_fence)

    assert isinstance(outcome, Refused)
    assert behind.taken == []


async def test_what_cannot_be_kept_is_not_submitted_yet(git: GitSource, promised: Contract, tmp_path: Path) -> None:
    seen = await git.code(promised)
    assert isinstance(seen, Known)
    plan = a_plan(RUN).model_copy(update={"code": seen.value.identity})
    (tmp_path / "patches").write_text("a file where the directory should be")
    behind = Submits()
    steps = KeepsPatch(behind, git, tmp_path / "patches", Redactor())

    outcome = await steps.take(StepName.SUBMIT, granted(plan), promised, is_resumed=False, fence=no_fence)

    assert isinstance(outcome, Waiting)
    assert behind.taken == []


async def test_a_clean_checkout_keeps_nothing(git: GitSource, promised: Contract, tmp_path: Path) -> None:
    behind, shelf = Submits(), tmp_path / "patches"
    steps = KeepsPatch(behind, git, shelf, Redactor())

    await steps.take(StepName.SUBMIT, granted(a_plan(RUN)), promised, is_resumed=False, fence=no_fence)

    assert behind.taken == [StepName.SUBMIT]
    assert not shelf.exists()
