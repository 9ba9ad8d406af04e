"""Trials that fail, on the real Iris cluster: a worse loss, a slower step, a hang, a crash loop.

Each time the old run trains again from its own checkpoint under its own id and commit, nothing else lives, and Hero was
killed and started again at random moments on the way.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.trial_scene import HANDOFF, TrialScene, killing
from tests.fakes.iris_cluster import IrisCluster


@dataclass(frozen=True)
class Fault:
    """What is wrong with a change, and what the trial says of it."""

    name: str
    change: str
    why: str
    """Words of why it is a no-go."""
    retries: int = 0
    before: int | None = None
    """The step that it never logs; None: it trains on."""


LOSS = Fault("loss", "--loss-factor 1.005", "loss mean <= +0.002")
SLOW = Fault("slow", "--slow 1.5", "tokens_per_second mean >= -5%")
HANG = Fault("hang", "--hang-at 50", "stalled at step 49", before=50)
CRASH = Fault("crash", "--crash-at 50", "retr", retries=100, before=50)


@pytest.mark.timeout(480)
@pytest.mark.parametrize("faults", [(LOSS, SLOW), (HANG, CRASH)], ids=["gates", "ends"])
async def test_a_change_that_fails_is_rolled_back_at_once_and_the_old_run_alone_trains_again(
    tmp_path: Path, iris_cluster: IrisCluster, faults: tuple[Fault, ...]
) -> None:
    async with asyncio.TaskGroup() as group:
        for fault in faults:
            group.create_task(_rolled_back(tmp_path / fault.name, iris_cluster, fault), name=fault.name)


async def _rolled_back(directory: Path, cluster: IrisCluster, fault: Fault) -> None:
    scene = TrialScene(directory, cluster, fault.name, change=fault.change, retries=fault.retries)
    async with scene, killing(scene, fault.name, times=3, every_s=(5.0, 12.0)):
        await scene.cut_over()
        await scene.until_stage("no_go", "rolled_back", "closed", within_s=90)
        await scene.until_stage("closed", within_s=90)

        assert scene.trial["ending"] == "rolled_back"
        assert fault.why in scene.trial["why"]
        assert scene.reached[-3:] == ["no_go", "rolled_back", "closed"]
        await scene.assert_one_lives(scene.run_id, scene.old_sha)
        before, after = scene.starts(scene.run_id)
        rows = await scene.rows(scene.run_id)
        replayed = [row["step"] for row in rows if row["execution_uid"] == f"iris:{after.uid}"]
        assert replayed[0] >= HANDOFF
        assert before.uid != after.uid
        assert {start.sha for start in scene.starts(scene.child_id)} == {scene.new_sha}
        assert fault.retries or len(scene.starts(scene.child_id)) == 1
        tried = {row["step"] for row in await scene.rows(scene.child_id)}
        assert min(tried) == HANDOFF
        assert fault.before is None or tried == set(range(HANDOFF, fault.before))
