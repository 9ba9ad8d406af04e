"""Hero is killed between each two steps of a relaunch, and started again: one submission, and the story ends.

Most of it submits through a quick stand-in for the ``iris`` program, the orchestrator is the real one everywhere.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from bot.model.chronicle import ActionEnded, Asked, Decided, Entry, Launched, StepEnded, find_fault
from bot.model.value import RunId
from tests.e2e.hero import PROGRAM
from tests.e2e.scene import CHANNEL, DRI, RESUMED_FROM, Scene
from tests.fakes.iris_cluster import IrisCluster

HERE = Path(__file__).parent
QUICK = (sys.executable, "-S", "-E", HERE / "quick_iris.py")


def scene_of(directory: Path, cluster: IrisCluster, run_id: str, *program: str | Path) -> Scene:
    """A run whose submissions are counted."""
    return Scene(directory, cluster, run_id, submit_with=("/bin/sh", HERE / "submit.sh", run_id, *program))


def mortal(step: str, moment: str) -> tuple[str, ...]:
    return ("-m", "tests.e2e.mortal_hero", step, moment)


@pytest.mark.parametrize("steps", [("verify", "stop", "submit"), ("confirm", "stabilise", "restore")])
async def test_a_hero_killed_at_every_boundary_of_a_step_submits_once_and_ends_the_story(
    tmp_path: Path, iris_cluster: IrisCluster, steps: tuple[str, ...]
) -> None:
    """Between intent and act, between act and outcome, between outcome and the next intent: one life after another."""
    async with asyncio.TaskGroup() as group:
        for step in steps:
            group.create_task(_die_at_every_boundary(tmp_path / step, iris_cluster, step), name=step)


async def _die_at_every_boundary(directory: Path, cluster: IrisCluster, step: str) -> None:
    async with scene_of(directory, cluster, f"killed-{step}", *QUICK) as scene:
        await _until_asked(scene, mortal(step, "intent"), is_alive=step == "stop")
        await scene.says(DRI, "approve R1")
        for next_life in (mortal(step, "act"), mortal(step, "outcome"), PROGRAM):
            assert await scene.hero.ended(30) == -signal.SIGKILL
            scene.hero.start(next_life)
        await _until_training_again(scene)

        assert len(scene.submissions) == 1
        _assert_one_new_life(scene)
        assert await scene.hero.terminate() == 0


async def test_with_the_real_iris_program_too_there_is_one_submission(
    tmp_path: Path, iris_cluster: IrisCluster
) -> None:
    """The decisive moments once more: before the submission, after it, and while the new job is confirmed."""
    async with asyncio.TaskGroup() as group:
        for step, moment in (("submit", "intent"), ("submit", "act"), ("confirm", "act")):
            group.create_task(_die_once(tmp_path / f"{step}-{moment}", iris_cluster, step, moment))


async def _die_once(directory: Path, cluster: IrisCluster, step: str, moment: str) -> None:
    async with scene_of(directory, cluster, f"real-{step}-{moment}", cluster.cli) as scene:
        await _until_asked(scene, mortal(step, moment))
        await scene.says(DRI, "approve R1")
        assert await scene.hero.ended(30) == -signal.SIGKILL
        scene.hero.start()
        await _until_training_again(scene)

        assert len(scene.submissions) == 1
        _assert_one_new_life(scene)


async def test_a_submitter_that_outlives_a_killed_hero_is_waited_for(tmp_path: Path, iris_cluster: IrisCluster) -> None:
    """The new Hero finds no job, and a process that may still make one: it asks on, and submits nothing itself."""
    async with scene_of(tmp_path, iris_cluster, "orphan", *QUICK) as scene:
        with scene.submitting("slow"):
            await _until_asked(scene)
            await scene.says(DRI, "approve R1")
            await scene.hero.until(lambda: scene.submissions, 20, "the submission begins")
            scene.hero.kill()
            scene.hero.start()
            await scene.hero.until(
                lambda: scene.said_on_slack("not known whether the step `submit` happened"), 20, "Hero notices"
            )
            await scene.hero.until(lambda: scene.hero.life_log.count("still under way on this machine") > 5)
            assert scene.lives == 1
        await _until_training_again(scene)

        assert len(scene.submissions) == 1
        _assert_one_new_life(scene)


async def test_a_submitter_killed_under_way_is_asked_about_before_anything_is_done_again(
    tmp_path: Path, iris_cluster: IrisCluster
) -> None:
    """Killed after the controller took the job: that one is found. Killed before it: only then it is submitted anew."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_kill_the_submitter(tmp_path / "late", iris_cluster, "late", submissions=1))
        group.create_task(_kill_the_submitter(tmp_path / "slow", iris_cluster, "slow", submissions=2))


async def _kill_the_submitter(directory: Path, cluster: IrisCluster, how: str, *, submissions: int) -> None:
    async with scene_of(directory, cluster, f"cut-{how}", *QUICK) as scene:
        with scene.submitting(how):
            await _until_asked(scene)
            await scene.says(DRI, "approve R1")
            begun = 2 if how == "late" else 1
            await scene.hero.until(lambda: scene.submissions and scene.lives == begun, 20, "the submission begins")
            os.kill(scene.submissions[0], signal.SIGKILL)
            await scene.hero.until(lambda: '"outcome": "uncertain"' in scene.hero.life_log, 20, "Hero is not sure")
        await _until_training_again(scene)

        assert len(scene.submissions) == submissions
        _assert_one_new_life(scene)


async def _until_asked(scene: Scene, program: tuple[str, ...] = PROGRAM, *, is_alive: bool = False) -> None:
    """Bring the run to where R1 is put to its DRI: after its death, or on demand while it hangs."""
    scene.launch()
    scene.let("hang" if is_alive else "harm")
    scene.hero.start(program)
    if is_alive:
        await scene.told("Hero watches this run")
        await scene.until_step(RESUMED_FROM)
        await scene.slack.slash(DRI, CHANNEL, "/hero", f"relaunch {scene.run_id}")
    await scene.hero.until(lambda: scene.said_on_slack("may Hero relaunch"), 40, "R1 is asked")


async def _until_training_again(scene: Scene) -> None:
    """Wait for the end on Slack; on GitHub a post that was under way when Hero died is first looked for a while."""
    done = f"relaunched from step {RESUMED_FROM} and training again"
    await scene.hero.until(lambda: scene.said_on_slack(done), 60, "the relaunch is told")


def _assert_one_new_life(scene: Scene) -> None:
    (job,) = scene.listed()
    assert job["state"] == "JOB_STATE_RUNNING"
    assert scene.lives == 2
    assert not scene.said_on_slack("ended it on purpose")  # it was Hero that stopped it, where it was stopped
    assert scene.ask_database("SELECT count(*), min(state) FROM actions") == [(1, "done")]
    assert scene.slack.mistakes == []
    assert scene.github.mistakes == ()
    # On a busy machine a watch that looks every second is late more than once, and says so in the same words.
    headlines = [line for post in scene.posts if "Hero did not look" not in (line := post.shown.splitlines()[0])]
    assert len(headlines) == len(set(headlines))
    _assert_whole_record(scene)


def _assert_whole_record(scene: Scene) -> None:
    """Whatever moment Hero died in, each thing is on the run's record once, and the chain holds."""
    names = ("run_id", "seq", "at", "kind", "payload", "prev", "hash")
    rows = scene.ask_database(f"SELECT {', '.join(names)} FROM chronicle ORDER BY seq")
    entries = [Entry.model_validate(dict(zip(names, row, strict=True))) for row in rows]
    happened = [each.happening for each in entries]
    steps = [each.step for each in happened if isinstance(each, StepEnded)]

    assert find_fault(RunId(scene.run_id), entries) is None
    assert [each.is_by_hero for each in happened if isinstance(each, Launched)] == [False, True]
    assert sum(isinstance(each, Asked) for each in happened) == 1
    assert [each.outcome for each in happened if isinstance(each, Decided)] == ["granted"]
    assert [each.outcome for each in happened if isinstance(each, ActionEnded)] == ["done"]
    assert steps == list(dict.fromkeys(steps)), "no step's outcome is there twice"
    assert "submit" in steps
