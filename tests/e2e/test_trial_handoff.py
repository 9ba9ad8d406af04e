"""The handoff checkpoint vanishes under a trial, on the real Iris cluster: before the old run is stopped, and after."""

import signal
from pathlib import Path

import pytest

from tests.e2e.trial_scene import HANDOFF, TrialScene
from tests.fakes.iris_cluster import IrisCluster

DYING_ONCE_STOPPED = ("-m", "tests.e2e.mortal_hero", "stop", "outcome")


@pytest.mark.timeout(360)
async def test_a_handoff_that_is_lost_before_the_cut_over_leaves_the_old_run_untouched(
    tmp_path: Path, iris_cluster: IrisCluster
) -> None:
    async with TrialScene(tmp_path, iris_cluster, "lost") as scene:
        scene.launch()
        scene.hero.start()
        await scene.begin()
        asked = f"launch {scene.child_id} in its place"
        await scene.hero.until(lambda: scene.asked(asked), 60, "the cut-over is asked for")
        scene.lose_the_handoff()
        scene.hero.kill()
        scene.hero.start()
        await scene.approved(asked)
        await scene.until_said("nothing was cut over")

        assert scene.stage == "control_complete"
        await scene.assert_one_lives(scene.run_id, scene.old_sha)
        assert len(scene.starts(scene.run_id)) == 1
        assert scene.starts(scene.child_id) == []


@pytest.mark.timeout(360)
async def test_a_handoff_that_is_lost_once_the_old_run_is_stopped_brings_the_old_run_back(
    tmp_path: Path, iris_cluster: IrisCluster
) -> None:
    async with TrialScene(tmp_path, iris_cluster, "gone") as scene:
        scene.launch()
        scene.hero.start(DYING_ONCE_STOPPED)
        await scene.begin()
        later = scene.handoff.with_name(f"step-{HANDOFF + 400}")
        await scene.hero.until((later / "metadata.json").exists, 60, "the old run's next checkpoint")
        await scene.approved(f"launch {scene.child_id} in its place")
        assert await scene.hero.ended(60) == -signal.SIGKILL
        assert scene.living() == []
        scene.lose_the_handoff()
        scene.hero.start()
        await scene.until_stage("closed", within_s=120)

        assert scene.trial["ending"] == "rolled_back"
        await scene.assert_one_lives(scene.run_id, scene.old_sha)
        assert len(scene.starts(scene.run_id)) == 2
        rows = await scene.rows(scene.run_id)
        again = scene.starts(scene.run_id)[-1].uid
        first = next(row["step"] for row in rows if row["execution_uid"] == f"iris:{again}")
        assert first >= HANDOFF + 400
        assert await scene.rows(scene.child_id) == []
