"""The main job from end to end: a real Iris job dies, people talk on Slack and GitHub, and one new job goes on."""

from pathlib import Path

from tests.e2e.scene import CHANNEL, DRI, DRI_LOGIN, OTHER, OTHER_LOGIN, RESUMED_FROM, WANDB_KEY, Scene
from tests.fakes.iris_cluster import IrisCluster
from tests.fakes.slack_values import Post

APPROVE_BUTTON = "hero_approve"
DENY_BUTTON = "hero_deny"


async def test_a_dead_run_is_told_asked_about_and_relaunched_once_on_the_dris_yes_alone(
    tmp_path: Path, iris_cluster: IrisCluster
) -> None:
    async with Scene(tmp_path, iris_cluster, "story") as scene:
        scene.launch()
        scene.hero.start()
        await scene.told("Hero watches this run")
        (first,) = scene.listed()
        await scene.until_live_status()

        await _approve_before_anything_is_asked(scene)
        scene.let("harm")
        await scene.told(
            "the job failed (infra preemption)", f"R1: may Hero relaunch this run from step {RESUMED_FROM}?"
        )
        asked = _the_request(scene)
        await _let_everybody_else_approve(scene, asked.ts)
        assert scene.lives == 1
        assert scene.ask_database("SELECT state FROM requests") == [("open",)]
        assert scene.ask_database("SELECT count(*) FROM actions") == [(0,)]

        await scene.says(DRI, "approve R1")
        await scene.told("R1 was approved by dana", "submitted /me/story", "training again")
        await _approve_once_more(scene, asked.ts)
        scene.let("finish")
        await scene.told("the job succeeded and the final step 60 was seen")
        assert await scene.hero.terminate() == 0

        _assert_one_new_job(scene, first["submittedAt"])
        _assert_told_well(scene)
        _assert_nothing_secret_anywhere(scene)


async def _approve_before_anything_is_asked(scene: Scene) -> None:
    """What was said before the question can't have been meant for it."""
    await scene.says(DRI, "approve R1")
    scene.github.user_comments(scene.issue, DRI_LOGIN, "approve")
    await scene.refused("slack", "other_request")
    await scene.refused("github", "no_request")


async def _let_everybody_else_approve(scene: Scene, asked: str) -> None:
    """A stranger, a bot, a quotation, an edit and a stranger's button: each in turn, none of them counts."""
    await scene.says(OTHER, "approve R1")
    await scene.refused("slack", "not_the_dri")
    await scene.whispered("only dana (DRI of story) can decide R1")
    await scene.slack.user_clicks(OTHER, asked, APPROVE_BUTTON)
    await scene.refused("slack", "not_the_dri", times=2)
    scene.github.user_comments(scene.issue, OTHER_LOGIN, "approve R1")
    await scene.refused("github", "not_the_dri")

    await scene.slack.bot_says(CHANNEL, "approve R1", scene.root)
    await scene.slack.bot_says(CHANNEL, "approve R1", scene.root, user=None)
    await scene.says(DRI, "> approve R1")
    scene.github.user_comments(scene.issue, DRI_LOGIN, "> approve R1\n\nOmar wants this, I have to look first.")
    harmless = await scene.says(DRI, "looking")
    await scene.slack.user_edits(harmless, "approve R1")
    await scene.whispered("An edited message decides nothing")
    comment = scene.github.user_comments(scene.issue, DRI_LOGIN, "looking")
    await scene.heard(f"{comment}:")
    scene.github.user_edits(comment, "approve R1")
    await scene.refused("github", "edited")
    await scene.until_handled()


async def _approve_once_more(scene: Scene, asked: str) -> None:
    """The same yes again, by word, by button and on GitHub: too late, nothing further is done (field report R43)."""
    await scene.says(DRI, "approve R1")
    await scene.slack.user_clicks(DRI, asked, APPROVE_BUTTON, "R1")  # an old screen still shows the button
    scene.github.user_comments(scene.issue, DRI_LOGIN, "approve R1")
    await scene.refused("slack", "already_decided", times=2)
    await scene.refused("github", "already_decided")
    await scene.whispered("R1 was already handled: approved by dana")


def _the_request(scene: Scene) -> Post:
    (asked,) = scene.said_on_slack("R1: may Hero relaunch")
    buttons = [
        element["action_id"] for block in asked.blocks if block["type"] == "actions" for element in block["elements"]
    ]
    assert buttons == [APPROVE_BUTTON, DENY_BUTTON]
    assert f"resume from: step {RESUMED_FROM}, {scene.home}/checkpoints/step-{RESUMED_FROM}" in asked.shown
    assert "WANDB_API_KEY [redacted] -- python" in asked.shown
    return asked


def _assert_one_new_job(scene: Scene, first_submitted_at: object) -> None:
    (job,) = scene.listed()
    assert job["submittedAt"] != first_submitted_at
    assert job["state"] == "JOB_STATE_SUCCEEDED"
    assert scene.lives == 2
    (task,) = scene.cluster.tasks(scene.job_id)
    assert len(task["attempts"]) == 1
    (restored,) = scene.said_on_slack("training again")
    assert f"loaded {scene.home}/checkpoints/step-{RESUMED_FROM}" in restored.shown


def _assert_told_well(scene: Scene) -> None:
    assert scene.slack.mistakes == []
    assert scene.github.mistakes == ()
    headlines = [post.shown.splitlines()[0] for post in scene.posts]
    assert len(headlines) == len(set(headlines))
    live = [comment for comment in scene.own_comments if "hero:delivery=story/live/" in comment.body]
    assert len(live) == 1
    assert live[0].updated_at > live[0].created_at
    assert "**state:** completed" in live[0].body
    (root,) = [post for post in scene.posts if post.ts == scene.root]
    assert root.edited
    assert "completed" in root.shown
    closed = next(post for post in scene.posts if "R1 approved by dana" in post.shown)
    assert not any(block["type"] == "actions" for block in closed.blocks)


def _assert_nothing_secret_anywhere(scene: Scene) -> None:
    secrets = [WANDB_KEY, *scene.secrets.values()]
    said = "\n".join([repr(scene.posts), repr(scene.slack.ephemerals), *scene.comments, scene.hero.log])
    stored = scene.stored_bytes()
    for secret in secrets:
        assert secret not in said
        assert secret.encode() not in stored
