"""The world of the trials by itself, without a Hero: what a cut-over and a rollback done by hand leave behind."""

from pathlib import Path

import pytest

from tests.e2e.trial_scene import HANDOFF, WINDOW, TrialScene
from tests.fakes.iris_cluster import IrisCluster


async def test_a_cut_over_and_a_rollback_by_hand_leave_one_job_each_time_with_its_own_code_on_the_same_batches(
    tmp_path: Path, iris_cluster: IrisCluster
) -> None:
    async with TrialScene(tmp_path, iris_cluster, "by-hand", change="--loss-factor 1.005 --slow 1.5") as scene:
        scene.launch()
        await scene.hero.until(lambda: _window_is_there(scene, scene.run_id), 60, "the control window")
        await scene.assert_one_lives(scene.run_id, scene.old_sha)
        scene.stop(scene.job_id)
        scene.launch_child()
        await scene.hero.until(lambda: _window_is_there(scene, scene.child_id), 30, "the child's window")
        await scene.assert_one_lives(scene.child_id, scene.new_sha)
        scene.stop(scene.child_job)
        scene.launch()
        await scene.assert_one_lives(scene.run_id, scene.old_sha)

        before, after = (start.uid for start in scene.starts(scene.run_id))
        (tried,) = (start.uid for start in scene.starts(scene.child_id))
        old, again = await _losses(scene, scene.run_id, before), await _losses(scene, scene.run_id, after)
        new = await _losses(scene, scene.child_id, tried)
        assert min(new) == min(again) == HANDOFF
        for step in range(HANDOFF, HANDOFF + WINDOW):
            assert new[step] / old[step] == pytest.approx(1.005, abs=1e-4)
        assert all(again[step] == old[step] for step in again.keys() & old.keys())
        durations = [row["value"] for row in await scene.rows(scene.child_id, "throughput_duration")]
        assert sum(durations) / len(durations) == pytest.approx(1.5 * 0.04, rel=0.01)
        log = scene.cluster.run_cli("job", "logs", scene.child_job).stdout
        assert f"Loading checkpoint from {scene.handoff}\n" in log


async def _window_is_there(scene: TrialScene, run_id: str) -> bool:
    steps = {row["step"] for row in await scene.rows(run_id)}
    return steps.issuperset(range(HANDOFF, HANDOFF + WINDOW))


async def _losses(scene: TrialScene, run_id: str, uid: str) -> dict[int, float]:
    return {row["step"]: row["value"] for row in await scene.rows(run_id) if row["execution_uid"] == f"iris:{uid}"}
