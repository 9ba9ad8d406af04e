"""A run's whole life on a real Iris cluster, from a real repository: from a plan that is refused to the seal.

Each chapter begins where the one before it ended. Hero is killed three times on the way, each time between an act and
its record: with the job submitted, with one of three checkpoints deleted, and with the tag created.
"""

import json
import signal
from pathlib import Path

from bot.model.chronicle import Asked, Completed, Decided, HandedOver, Launched, MilestoneReached, Sealed, find_fault
from bot.model.value import RunId
from tests.e2e.hero import PROGRAM
from tests.e2e.life import LAST_WORDS, MILESTONE, PLANTED, Life
from tests.e2e.scene import DRI, OTHER, RESUMED_FROM, STEPS
from tests.fakes.iris_cluster import IrisCluster


async def test_a_run_is_planned_launched_handed_over_relaunched_cleaned_up_and_sealed(
    tmp_path: Path, iris_cluster: IrisCluster
) -> None:
    async with Life(tmp_path, iris_cluster, "life") as life:
        await _a_plan_is_refused_until_it_is_mended(life)
        life.hero.start(_dying_after("submit"))
        await _hero_launches_it_on_the_dris_yes(life)
        await _it_is_handed_over(life)
        await _it_crashes_and_the_new_dri_has_it_relaunched(life)
        await _a_success_without_its_final_checkpoint_is_not_sealed(life)
        await _exactly_the_listed_checkpoints_are_deleted(life)
        await _it_is_sealed(life)
        await _its_record_tells_all_of_it(life)
        assert await life.hero.terminate() == 0

        assert life.slack.mistakes == []
        assert life.github.mistakes == ()
        _assert_no_secret_anywhere(life)


def _dying_after(step: str) -> tuple[str, ...]:
    return ("-m", "tests.e2e.mortal_hero", step, "quiet")


async def _killed_and_started_again(life: Life, program: tuple[str, ...]) -> None:
    assert await life.hero.ended(60) == -signal.SIGKILL
    life.hero.start(program)


async def _a_plan_is_refused_until_it_is_mended(life: Life) -> None:
    code, text = await life.shell("plan", "life", "--json")
    plan = json.loads(text)
    blocking = {each["check"]: each["message"] for each in plan["findings"] if each["severity"] == "critical"}
    assert (code, plan["decision"], plan["digest"]) == (3, "blocked", None)
    assert set(blocking) == {"launch.code", "launch.credentials"}
    assert "it was not pushed" in blocking["launch.code"]

    life.mend()
    code, text = await life.shell("plan", "life", "--json")
    plan = json.loads(text)
    asking = [each["check"] for each in plan["findings"] if each["severity"] == "warning"]
    assert (code, plan["decision"], asking) == (3, "needs_dri", ["launch.tracker"])
    assert plan["values"]["source_sha"] == {"value": life.sha, "basis": "stated"}
    assert not life.hero.database.exists()


async def _hero_launches_it_on_the_dris_yes(life: Life) -> None:
    await life.command(DRI, "launch life")
    await life.told("R1: may Hero launch this run from step 0?", "NOT CLEAR, a yes accepts it: launch.tracker")
    assert life.listed() == []
    (asked,) = life.said_on_slack("R1: may Hero launch")
    assert "-e WANDB_API_KEY [redacted] -- python" in asked.shown
    assert "--data=https://reader:[redacted]@data.example.org" in asked.shown
    await life.says(DRI, "approve R1")
    await _killed_and_started_again(life, _dying_after("delete"))
    await life.told("submitted /me/life", f"step {MILESTONE} is reached", "launched from step 0 and training")
    assert life.lives == 1


async def _it_is_handed_over(life: Life) -> None:
    await life.command(DRI, "handoff life omar")
    await life.told("the part of DRI is to go from dana to omar: omar, do you agree?")
    await life.command(OTHER, "handoff life accept")
    await life.told("DRI of this run is now omar; it was dana")


async def _it_crashes_and_the_new_dri_has_it_relaunched(life: Life) -> None:
    life.let("harm", LAST_WORDS)
    await life.told("the job failed (infra preemption)", f"R2: may Hero relaunch this run from step {RESUMED_FROM}?")
    assert life.said_on_slack("log: Received preemption notice from https://agent:[redacted]@metadata.example.org")
    await life.says(DRI, "approve R2")
    await life.refused("slack", "not_the_dri")
    await life.whispered("only omar (DRI of life) can decide R2")
    assert life.lives == 1

    life.let("forget")
    await life.says(OTHER, "approve R2")
    await life.told(f"relaunched from step {RESUMED_FROM} and training again")
    assert life.lives == 2


async def _a_success_without_its_final_checkpoint_is_not_sealed(life: Life) -> None:
    life.let("finish")
    missing = f"there is no complete checkpoint of the final step {STEPS}"
    await life.told(f"the job succeeded at its final step {STEPS}, but {missing}")
    await life.command(OTHER, "seal life")
    await life.told("no seal: ", f"MISSING: there is no checkpoint of the final step {STEPS}")
    assert life.github.tags == {}

    life.save_at_last()
    await life.told("I2 is over", f"the job succeeded and the final step {STEPS} was seen")


async def _exactly_the_listed_checkpoints_are_deleted(life: Life) -> None:
    assert life.checkpoints == [10, 20, 30, 40, 50, 60]
    await life.command(OTHER, "cleanup life")
    await life.told("R3: may Hero delete 3 checkpoints of this run for good")
    (asked,) = life.said_on_slack("R3: may Hero delete")
    assert [step for step in life.checkpoints if f"delete: {life.home}/checkpoints/step-{step} " in asked.shown] == [
        10,
        40,
        50,
    ]
    assert f"step-{MILESTONE} (step {MILESTONE}): a milestone" in asked.shown
    assert f"step-{RESUMED_FROM} (step {RESUMED_FROM}): launch 1 of this run began from it" in asked.shown
    await life.says(DRI, "approve R3")
    await life.refused("slack", "not_the_dri", times=2)
    await life.says(OTHER, "approve R3")
    await _killed_and_started_again(life, _dying_after("tag"))
    await life.told("the listed checkpoints are gone; nothing else was touched")
    assert life.checkpoints == [MILESTONE, RESUMED_FROM, STEPS]


async def _it_is_sealed(life: Life) -> None:
    await life.command(OTHER, "seal life")
    await life.told("R4: may Hero seal this run with the tag seal/life?")
    await life.says(OTHER, "approve R4")
    await _killed_and_started_again(life, PROGRAM)
    await life.told("the run is sealed")
    ((name, (sha, words)),) = life.github.tags.items()
    assert (name, sha) == ("seal/life", life.sha)
    assert f"final step {STEPS}, checkpoint {life.home}/checkpoints/step-{STEPS}" in words
    assert "DRI omar" in words


async def _its_record_tells_all_of_it(life: Life) -> None:
    await life.hero.until(lambda: "sealed: tag seal/life" in life.issue_body, 30, "the issue's body is current")
    entries = life.record()
    happened = [each.happening for each in entries]
    assert find_fault(RunId("life"), entries) is None
    launches = [each for each in happened if isinstance(each, Launched)]
    assert [each.is_by_hero for each in launches] == [True, True]
    assert [(each.plan, each.dri) for each in happened if isinstance(each, Asked)] == [
        ("launch", "dana"),
        ("relaunch", "omar"),
        ("cleanup", "omar"),
        ("seal", "omar"),
    ]
    assert [each.by for each in happened if isinstance(each, Decided)] == ["dana", "omar", "omar", "omar"]
    for kind in (MilestoneReached, HandedOver, Completed, Sealed):
        assert sum(isinstance(each, kind) for each in happened) == 1, kind

    code, said = await life.shell("log", "life", "--verify", "--json")
    verified = json.loads(said)
    assert (code, verified["ok"], verified["count"], verified["text"]) == (0, True, len(entries), "same")
    assert verified["head"] in life.issue_body
    code, said = await life.shell("log", "life", "--markdown")
    assert code == 0
    assert said.strip() in life.issue_body
    code, said = await life.shell("export-state", "life")
    state = json.loads(said)
    assert (code, state["job_id"], state["restart_count"]) == (0, life.job_id, 1)
    assert "job run --no-wait" in state["resubmit_command"]
    code, said = await life.shell("status", "life", "--json")
    assert (code, json.loads(said)[0]["state"]) == (0, "completed")


def _assert_no_secret_anywhere(life: Life) -> None:
    secrets = {**PLANTED, **life.secrets}
    for where, content in life.shown_anywhere().items():
        assert [name for name, secret in secrets.items() if secret.encode() in content] == [], where
