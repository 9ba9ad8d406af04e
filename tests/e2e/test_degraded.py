"""A part of the world is down: Hero says so, concludes nothing from it, and is whole again when it is back."""

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path

from tests.e2e.hero import ROOT, Hero, to_toml
from tests.e2e.scene import CHANNEL, DRI, RESUMED_FROM, Scene
from tests.fakes.iris_cluster import IrisCluster
from tests.fakes.wandb import FakeWandb

STOP_WITHIN_S = 10.0


async def test_slack_that_is_down_at_the_start_keeps_nobody_else_from_being_told(
    tmp_path: Path, iris_cluster: IrisCluster
) -> None:
    async with Scene(tmp_path, iris_cluster, "no-slack") as scene:
        await scene.slack.stop()
        scene.launch()
        scene.hero.start()
        await scene.hero.until(lambda: scene.said_on_github("Hero watches this run"), 20, "GitHub is told")
        status, health = await asyncio.to_thread(scene.hero.health)
        assert status == 200
        assert health["channels"]["github"] == "ok"
        assert health["channels"]["slack"] != "ok"

        await scene.slack.start()
        await scene.hero.until(lambda: scene.said_on_slack("Hero watches this run"), 40, "Slack is told")
        await scene.hero.until(lambda: scene.slack.open_sockets == 1, 40, "Slack is listened to")
        answer = await scene.slack.slash(DRI, CHANNEL, "/hero", "status no-slack")
        assert answer.acked
        await scene.whispered("no-slack: running")


async def test_github_that_hangs_delays_nobody_on_slack(tmp_path: Path, iris_cluster: IrisCluster) -> None:
    async with Scene(tmp_path, iris_cluster, "no-github") as scene:
        scene.let_github_hang()
        scene.launch()
        scene.hero.start()
        await scene.hero.until(lambda: scene.said_on_slack("Hero watches this run"), 20, "Slack is told")
        await scene.hero.until(lambda: scene.github.requests, 10, "GitHub is asked")
        await scene.until_step(RESUMED_FROM)

        answer = await scene.slack.slash(DRI, CHANNEL, "/hero", "status no-github")
        assert answer.acked
        assert answer.latency_s is not None
        assert answer.latency_s < 3
        await scene.whispered("no-github: running", within_s=3)
        assert scene.github.issues() == ()
        _, health = await asyncio.to_thread(scene.hero.health)
        assert health["late"] == []
        assert await scene.hero.terminate(STOP_WITHIN_S) == 0


class Tracked(Scene):
    """The same with a W&B, and with deadlines longer than what hangs here."""

    wandb: FakeWandb

    @property
    def secrets(self) -> dict[str, str]:
        return super().secrets | {"HERO_WANDB__API_KEY": self.wandb.key}

    def sections(self) -> dict[str, dict[str, str]]:
        wandb = {"entity": '"acme"', "project": '"hero"', "base_url": f'"{self.wandb.url}"', "deadline": '"60s"'}
        own = super().sections()
        return own | {"github": own["github"] | {"deadline": '"60s"'}, "wandb": wandb}

    def contract(self) -> str:
        tracker = {"mode": '"online"', "entity": '"acme"', "project": '"hero"', "id": f'"{self.run_id}"'}
        return super().contract() + to_toml({"tracker": tracker})


async def test_status_is_acknowledged_at_once_and_says_its_age_while_github_crawls_and_wandb_hangs(
    tmp_path: Path, iris_cluster: IrisCluster
) -> None:
    with FakeWandb() as wandb:
        wandb.log_steps(wandb.run("hero", "crawling"), range(1, RESUMED_FROM + 1))
        scene = Tracked(tmp_path, iris_cluster, "crawling")
        scene.wandb = wandb
        async with scene:
            scene.launch()
            scene.hero.start()
            await scene.hero.until(lambda: scene.said_on_slack("Hero watches this run"), 30, "Slack is told")
            await scene.hero.until(lambda: wandb.queries, 20, "W&B is asked")
            await scene.until_step(RESUMED_FROM)

            scene.github.answers_after_s = 30.0
            asked_github = len(scene.github.requests)
            wandb.stall()
            asked_wandb = len(wandb.queries)
            await scene.hero.until(lambda: len(scene.github.requests) > asked_github, 20, "GitHub is asked, and crawls")
            await scene.hero.until(lambda: len(wandb.queries) > asked_wandb, 20, "W&B is asked, and hangs")

            began = time.monotonic()
            answer = await scene.slack.slash(DRI, CHANNEL, "/hero", "status crawling")
            assert answer.acked
            assert answer.latency_s is not None
            assert answer.latency_s < 3
            await scene.whispered("crawling: ", within_s=3)
            assert time.monotonic() - began < 6
            (shown,) = [each.text for each in scene.slack.ephemerals if "crawling: " in each.text]
            assert f"{RESUMED_FROM}" in shown
            assert re.search(r"(?:checked|STALE, not checked for) [0-9.]+ (?:s|min)", shown), shown
            assert re.search(r"true at [0-9-]+ [0-9:]+", shown), shown


async def test_a_controller_that_is_gone_is_shown_as_unknown_and_nothing_is_proposed(
    tmp_path: Path, start_iris_cluster: Callable[[], IrisCluster]
) -> None:
    cluster = await asyncio.to_thread(start_iris_cluster)
    async with Scene(tmp_path, cluster, "no-iris") as scene:
        scene.launch()
        scene.hero.start()
        await scene.told("Hero watches this run")
        await scene.until_step(RESUMED_FROM)

        await asyncio.to_thread(cluster.kill)
        sql = "SELECT json_extract(value, '$.gaps') FROM runs WHERE json_extract(value, '$.gaps') LIKE '%jobs%'"
        await scene.hero.until(lambda: scene.ask_database(sql), 30, "the gap is noted")
        checks = scene.hero.log.count("run_checked")
        await scene.hero.until(lambda: scene.hero.log.count("run_checked") > checks + 2, 30, "it is checked on")
        await scene.slack.slash(DRI, CHANNEL, "/hero", "status no-iris")
        await scene.whispered("no-iris:")

        assert scene.ask_database("SELECT json_extract(value, '$.state') FROM runs") == [("running",)]
        assert scene.ask_database("SELECT count(*) FROM requests") == [(0,)]
        assert not scene.said_on_slack("the job failed")
        assert not scene.said_on_slack("the job was stopped")
        (root,) = [post for post in scene.posts if post.ts == scene.root]
        assert "unknown" in root.shown.lower()


async def test_sigterm_while_hero_starts_and_while_it_idles_ends_it_well(
    tmp_path: Path, iris_cluster: IrisCluster
) -> None:
    async with Scene(tmp_path, iris_cluster, "idle") as scene:
        scene.launch()
        scene.hero.start()
        await scene.hero.until(scene.hero.database.exists, 20, "it starts")
        assert await scene.hero.terminate(STOP_WITHIN_S) == 0

        scene.hero.start()
        await scene.told("Hero watches this run")
        assert await scene.hero.terminate(STOP_WITHIN_S) == 0
        assert "hero_stopped" in scene.hero.life_log
        assert "Traceback" not in scene.hero.log


async def test_sigterm_during_a_relaunch_ends_hero_in_time_and_leads_to_no_second_submission(
    tmp_path: Path, iris_cluster: IrisCluster
) -> None:
    """The submitter outlives the stop, or has been ended by it: either way the next Hero asks before it acts."""
    submit = ("/bin/sh", ROOT / "tests/e2e/submit.sh", "term")
    async with Scene(tmp_path, iris_cluster, "term", submit_with=(*submit, iris_cluster.cli)) as scene:
        scene.launch()
        scene.let("harm")
        scene.hero.start()
        await scene.hero.until(lambda: scene.said_on_slack("may Hero relaunch"), 40, "R1 is asked")
        await scene.says(DRI, "approve R1")
        await scene.hero.until(lambda: scene.submissions, 20, "the submission begins")
        assert await scene.hero.terminate(STOP_WITHIN_S) == 0

        scene.hero.start()
        await scene.hero.until(lambda: scene.said_on_slack("training again"), 60, "the relaunch is told")
        assert scene.lives == 2
        assert len(scene.listed()) == 1
        # On a slow machine the stop ends the command before it has submitted: then it is rightly started once more.
        assert len(scene.submissions) <= (2 if "stop_step_cut_off" in scene.hero.log else 1)


async def test_a_second_hero_on_the_same_database_stands_by_until_the_first_is_gone(
    tmp_path: Path, iris_cluster: IrisCluster
) -> None:
    async with Scene(tmp_path, iris_cluster, "two") as scene:
        scene.launch()
        scene.hero.start()
        await scene.told("Hero watches this run")
        second = Hero(tmp_path, scene.sections(), scene.secrets | iris_cluster.env, name="second")
        second.start()
        try:
            await second.until(lambda: "standing_by" in second.log, 20, "the second stands by")
            assert "hero_started" not in second.log
            _, health = await asyncio.to_thread(scene.hero.health)
            status, waiting = await asyncio.to_thread(second.health)
            assert (health["lease"], waiting["lease"], status) == ("held", "standing by", 200)
            scene.hero.kill()
            await second.until_at_work()
            scene.let("harm")
            await scene.told("the job failed")
            assert scene.slack.mistakes == []
        finally:
            second.kill()


async def test_a_full_disk_is_told_nothing_is_launched_and_hero_recovers(
    tmp_path: Path, iris_cluster: IrisCluster
) -> None:
    async with Scene(tmp_path, iris_cluster, "full") as scene:
        scene.launch()
        scene.let("harm")
        scene.hero.start(("-m", "tests.e2e.crowded_hero"))
        await scene.hero.until(lambda: scene.said_on_slack("may Hero relaunch"), 40, "R1 is asked")
        await scene.hero.until(lambda: scene.ask_database("SELECT 1 FROM posted WHERE slot = 'request:1'"), 10, "noted")
        (tmp_path / "full").touch()
        await scene.says(DRI, "approve R1")
        await scene.hero.until(lambda: scene.said_on_slack("Hero cannot write its database"), 30, "the alarm")
        await scene.hero.until(lambda: scene.hero.health()[0] == 503, 20, "it says so to whoever watches it")
        assert scene.lives == 1

        (tmp_path / "full").unlink()
        await scene.hero.until(lambda: scene.hero.health()[0] == 200, 40, "it is well again")
        await scene.hero.until(lambda: scene.said_on_slack("training again"), 60, "the relaunch is told")
        assert scene.lives == 2
        assert scene.ask_database("SELECT count(*) FROM actions") == [(1,)]
