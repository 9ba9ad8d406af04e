"""A seal: nothing is sealed that is not all there, and the tag is made once, whenever Hero dies."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.actions.sealing import Seal
from bot.finishing import Unsealable
from bot.model.action import ActionState, Done, StepOutcome, Uncertain
from bot.model.contract import Contract
from bot.model.errand import CannotYet, Errand, ErrandKind, Found, Planned
from bot.model.job import JobState
from bot.model.planned import SealPlan
from bot.model.reading import Gap, Known, Reading
from bot.model.run import Instance
from bot.model.snapshot import Snapshot
from bot.model.tag import Tag
from bot.redaction import Redactor
from tests.fakes.snapshots import RUN, checkpoint, contract, instance, job, unknown
from tests.unit.actions.world import Bench, Killed, a_bench
from tests.unit.checks.test_seal import SHA, tracked
from tests.unit.handlers.scene import ADA, record

TAG = f"seal/{RUN}"


class Repository:
    """A repository's tags. Implements ``bot.actions.sealing.Tagger``."""

    repository = "acme/training"

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.tags: dict[str, str] = {}
        self.created = 0
        self.is_reachable = True
        self.loses_answers = False

    async def find_tag(self, name: str) -> Reading[Tag | None]:
        self._bench.knife.pass_by("before a question")
        if not self.is_reachable:
            return unknown(Gap.UNREACHABLE)
        sha = self.tags.get(name)
        return Known(value=Tag(name=name, sha=sha) if sha else None, at=self._bench.clock.now())

    async def create_tag(self, tag: Tag, message: str) -> StepOutcome:
        self._bench.knife.pass_by("before the tag")
        assert message
        assert tag.name not in self.tags, "a reference can be made once only"
        self.created += 1
        self.tags[tag.name] = tag.sha
        self._bench.knife.pass_by("after the tag")
        if self.loses_answers:
            return Uncertain(detail="connection reset")
        return Done(detail=f"{tag.name} points to {tag.sha}")


class Finished:
    """A world in which the run is finished and everything of it is there."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.tags = Repository(bench)
        self.exported: Reading[int | None] = Known(value=None, at=bench.clock.now())
        self.record_fault: Reading[str] = Known(value="", at=bench.clock.now())
        bench.promised = contract(source_sha=SHA)
        bench.world.found[job().job_id] = job(JobState.SUCCEEDED)
        bench.world.checkpoints = (checkpoint(10_000),)
        self.hero()

    def hero(self) -> Seal:
        """Return the seal of a Hero that has just started."""
        reader: Any = self
        store: Any = self._bench.store
        self.seal = Seal(
            reader=reader,
            tagger=self.tags,
            exported=self._ask_export,
            record_fault=self._ask_record,
            store=store,
            clock=self._bench.clock,
            redactor=Redactor(),
        )
        self._bench.takers["seal"] = self.seal
        self._bench.a_new_one()
        return self.seal

    async def read(self, promised: Contract, launch: Instance | None, cursor: str) -> Snapshot:
        seen = await self._bench.world.read(promised, launch, cursor)
        return seen.model_copy(update={"tracker": Known(value=tracked(), at=seen.at)})

    async def _ask_export(self, _promised: Contract) -> Reading[int | None]:
        return self.exported

    async def _ask_record(self, _promised: Contract) -> Reading[str]:
        return self.record_fault

    async def look(self) -> Found:
        assert isinstance(self._bench.promised, Contract)
        errand = Errand(kind=ErrandKind.SEAL, by=ADA, at=self._bench.clock.now())
        return await self.seal.prepare(self._bench.promised, record(instances=(instance(),)), errand)

    async def grant(self) -> SealPlan:
        found = await self.look()
        assert isinstance(found, Planned), found
        assert isinstance(found.plan, SealPlan)
        await self._bench.grant_plan(found.plan, launch=instance())
        return found.plan


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with a_bench(tmp_path) as made:
        yield made


async def test_a_finished_run_is_sealed_with_a_tag_at_its_source(bench: Bench) -> None:
    finished = Finished(bench)
    plan = await finished.grant()

    await bench.work()

    assert (await bench.action()).state is ActionState.DONE
    assert finished.tags.tags == {TAG: SHA}
    assert bench.told == ["the run is sealed"]
    assert (await bench.record()).run.seal == TAG
    assert plan.message.splitlines()[:2] == [
        f"{RUN} is finished and sealed",
        f"final step 10000, checkpoint {checkpoint(10_000).path}",
    ]


async def test_what_is_missing_refuses_with_the_list(bench: Bench) -> None:
    finished = Finished(bench)
    bench.world.checkpoints = (checkpoint(9000),)
    finished.record_fault = Known(value="its issue does not show it yet", at=bench.clock.now())

    found = await finished.look()

    assert isinstance(found, CannotYet)
    assert not found.is_unknown
    assert [line.split(":")[0] for line in found.evidence] == ["MISSING", "MISSING"]
    assert "2 things stand against it: there is no checkpoint of the final step 10000" in found.reason


async def test_what_is_not_known_refuses_as_well(bench: Bench) -> None:
    finished = Finished(bench)
    finished.tags.is_reachable = False

    found = await finished.look()

    assert isinstance(found, CannotYet)
    assert found.is_unknown
    assert found.evidence[0].startswith(f"NOT KNOWN: whether {TAG} exists cannot be asked")


@pytest.mark.parametrize("sha", ["main", "abc1234", "A" * 40])
async def test_a_source_that_is_no_full_sha_is_not_sealed(bench: Bench, sha: str) -> None:
    finished = Finished(bench)
    bench.promised = contract(source_sha=sha)

    found = await finished.look()

    assert isinstance(found, CannotYet)
    assert "no full SHA" in found.reason


async def test_a_checkpoint_that_vanishes_after_the_yes_voids_it(bench: Bench) -> None:
    finished = Finished(bench)
    await finished.grant()
    bench.world.checkpoints = ()

    await bench.work()

    assert (await bench.action()).state is ActionState.VOID
    assert finished.tags.created == 0


async def test_a_tag_at_another_commit_is_not_moved(bench: Bench) -> None:
    finished = Finished(bench)
    await finished.grant()
    finished.tags.tags[TAG] = "b" * 40

    await bench.work()

    assert (await bench.action()).state in {ActionState.VOID, ActionState.FAILED}
    assert finished.tags.tags == {TAG: "b" * 40}


async def test_a_lost_answer_is_looked_up(bench: Bench) -> None:
    finished = Finished(bench)
    finished.tags.loses_answers = True
    await finished.grant()

    await bench.work()

    assert (await bench.action()).state is ActionState.DONE
    assert finished.tags.created == 1


async def test_a_hero_killed_at_any_moment_has_made_one_tag(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    async with a_bench(tmp_path / "whole") as bench:
        await Finished(bench).grant()
        before = len(bench.knife.moments)
        await bench.work()
        moments = dict(enumerate(bench.knife.moments))
    assert len(moments) - before > 8

    for moment, name in list(moments.items())[before:]:
        directory = tmp_path / str(moment)
        directory.mkdir()
        async with a_bench(directory) as bench:
            finished = Finished(bench)
            await finished.grant()
            bench.knife.at = moment
            with pytest.raises(BaseExceptionGroup) as death:
                await bench.work()
            assert death.group_contains(Killed)
            bench.knife.at = None
            finished.hero()
            if (await bench.action()).state is ActionState.GRANTED:
                await bench.work()

            where = f"killed at {moment}, {name}"
            assert (await bench.action()).state is ActionState.DONE, where
            assert finished.tags.created == 1, where


async def test_without_github_the_settings_that_a_seal_needs_are_named(bench: Bench) -> None:
    assert isinstance(bench.promised, Contract)
    errand = Errand(kind=ErrandKind.SEAL, by=ADA, at=bench.clock.now())

    found = await Unsealable().prepare(bench.promised, record(instances=(instance(),)), errand)

    assert isinstance(found, CannotYet)
    for named in ("[github] repository", "HERO_GITHUB__TOKEN", "app_id", "source_repository", "contents: write"):
        assert named in found.fix
    assert "[github]" in found.reason
