"""A trial that passes, on the real Iris cluster and with a tracker whose answer to the fork is lost."""

from pathlib import Path

import psutil
import pytest

from tests.e2e.trial_scene import FORK_OFFSET, HANDOFF, PROJECT, TrialScene, killing
from tests.fakes.iris_cluster import IrisCluster
from tests.fakes.wandb import FakeWandb


@pytest.mark.timeout(480)
async def test_a_change_that_holds_every_gate_is_accepted_and_its_history_is_forked_once_though_the_answer_is_lost(
    tmp_path: Path, iris_cluster: IrisCluster
) -> None:
    with FakeWandb() as wandb:
        async with TrialScene(tmp_path, iris_cluster, "good", wandb=wandb) as scene:
            wandb.lose("UpsertBucket", times=100, is_silent=True)
            await scene.cut_over()
            await scene.hero.until(lambda: wandb.begun, 60, "the fork is asked for")
            _end_everything(scene)
            wandb.recover()
            scene.hero.start()
            async with killing(scene, "good", times=3, every_s=(5.0, 12.0)):
                await scene.approved(f"accept {scene.child_id} (go)", 120)
                await scene.until_stage("closed")

            assert scene.trial["ending"] == "accepted"
            assert scene.reached == [
                "planned",
                "recorded",
                "rehearsed",
                "control_complete",
                "forked",
                "old_stopped",
                "launched",
                "running",
                "go",
                "closed",
            ]
            await scene.assert_one_lives(scene.child_id, scene.new_sha)
            assert len(scene.starts(scene.run_id)) == len(scene.starts(scene.child_id)) == 1
            assert (await scene.rows(scene.child_id))[0]["step"] == HANDOFF
            assert wandb.begun == [scene.child_id]
            (child,) = (run for run in wandb.stored(PROJECT) if run.id == scene.child_id)
            point = {"run_id": scene.run_id, "step": HANDOFF - 1 + FORK_OFFSET}
            assert child.internals["branch_point"].items() >= point.items()
            assert [row["global_step"] for row in child.rows[: HANDOFF + 5]] == list(range(HANDOFF + 5))


def _end_everything(scene: TrialScene) -> None:
    """End Hero and all that it has begun, as a machine that is lost does."""
    begun = psutil.Process(scene.hero.pid).children(recursive=True)
    scene.hero.kill()
    for process in begun:
        process.kill()
