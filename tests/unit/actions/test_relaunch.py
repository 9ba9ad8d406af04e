"""The relaunch plan: what the DRI says yes to, word for word, and nothing once any word of it has changed."""

import asyncio
import hashlib
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.actions.ports import Submission, Unlaunchable
from bot.actions.relaunch import differences, plan_relaunch
from bot.model.contract import Contract
from bot.model.job import JobState
from bot.model.plan import Grant
from bot.model.planned import NoPlan, PlannedCheckpoint, RelaunchPlan, canonical_json
from bot.model.reading import Gap
from bot.model.record import Decision
from bot.model.run import Instance
from bot.model.snapshot import Snapshot
from bot.model.value import JobId, PersonName
from bot.redaction import Redactor
from bot.store.store import Store
from tests.fakes.clock import FakeClock
from tests.fakes.decisions import a_plan, a_request
from tests.fakes.snapshots import AT, JOB, RUN, checkpoint, contract, failed_job, instance, job, snapshot, unknown

SECRET = "hunter2-is-the-password"  # a made-up one
ROOT = "gs://bucket/hero/checkpoints"


class Launcher:
    """The pure half: the command as it stands, or what is wrong with it."""

    def __init__(self, *problems: str, notes: tuple[str, ...] = ()) -> None:
        self._problems = problems
        self._notes = notes

    def prepare(self, promised: Contract, *, number: int) -> Submission | Unlaunchable:
        if self._problems:
            return Unlaunchable(problems=self._problems)
        return Submission(job_id=JobId(f"/me/hero-{number}"), command=promised.command, notes=self._notes)


def plan(
    seen: Snapshot, promised: Contract | None = None, launch: Instance | None = None, launcher: Any = None
) -> RelaunchPlan | NoPlan:
    half: Any = launcher or Launcher()
    return plan_relaunch(promised or contract(), seen, launch or instance(), half, Redactor((SECRET,)))


def made(seen: Snapshot, **fields: Any) -> RelaunchPlan:
    found = plan(seen, **fields)
    assert isinstance(found, RelaunchPlan), found
    return found


FAILED = snapshot(jobs=failed_job(137), checkpoints=[checkpoint(100), checkpoint(200)])


def test_a_plan_is_the_same_run_from_its_newest_complete_checkpoint() -> None:
    found = made(FAILED)

    assert found.run_id == RUN
    assert found.output_root == contract().output_root
    assert found.resume_from is not None
    assert found.resume_from.step == 200
    assert found.stop is None
    assert found.instance == failed_job().instance_id
    assert found.job_id == "/me/hero-1"


def test_a_job_that_still_lives_is_stopped_first() -> None:
    assert made(snapshot(jobs=job(), checkpoints=[checkpoint(200)])).stop == JOB
    assert made(snapshot(jobs=job(JobState.PENDING), checkpoints=[checkpoint(200)])).stop == JOB


def test_the_checkpoint_is_chosen_by_number_and_not_by_name() -> None:
    """Field report R23: a wider zero padding made 100000 outrank 0900000."""
    saved = [
        checkpoint(99_000, root=ROOT),
        checkpoint(100_000, root=ROOT),
        checkpoint(900_000, root=ROOT).model_copy(update={"path": f"{ROOT}/step-0900000"}),
    ]

    found = made(snapshot(jobs=failed_job(), checkpoints=saved))

    assert found.resume_from == PlannedCheckpoint(step=900_000, path=f"{ROOT}/step-0900000")


def test_an_incomplete_checkpoint_is_never_proposed_however_new() -> None:
    """Field report R24."""
    found = made(snapshot(jobs=failed_job(), checkpoints=[checkpoint(200), checkpoint(300, is_complete=False)]))

    assert found.resume_from is not None
    assert found.resume_from.step == 200


def test_the_newest_of_all_roots_is_proposed_and_the_permanent_one_of_two_equals() -> None:
    """Field report R47: a launcher that pointed at 54000 while 58014 was there."""
    saved = [
        checkpoint(54_000, root="gs://a"),
        checkpoint(58_014, root="gs://z", is_temporary=True),
        checkpoint(58_014, root="gs://b"),
    ]

    found = made(snapshot(jobs=failed_job(), checkpoints=saved))

    assert found.resume_from == PlannedCheckpoint(step=58_014, path="gs://b/step-58014")


@given(st.lists(st.tuples(st.integers(0, 10**7), st.booleans()), max_size=20))
def test_no_complete_checkpoint_is_ever_newer_than_the_proposed_one(saved: list[tuple[int, bool]]) -> None:
    candidates = [checkpoint(step, is_complete=whole) for step, whole in saved]

    found = made(snapshot(jobs=failed_job(), checkpoints=candidates))

    complete = [step for step, whole in saved if whole]
    assert (found.resume_from.step if found.resume_from else None) == max(complete, default=None)


@pytest.mark.parametrize("gap", list(Gap))
@pytest.mark.parametrize("source", ["jobs", "checkpoints"])
def test_what_cannot_be_read_makes_no_plan(source: str, gap: Gap) -> None:
    """Field report R25: "cannot verify", never "none there"."""
    found = plan(FAILED.model_copy(update={source: unknown(gap, "expired credentials")}))

    assert isinstance(found, NoPlan)
    assert found.is_unknown
    assert "expired credentials" in found.reason


def test_no_plan_is_made_beside_another_live_job_of_the_run_or_when_nobody_can_say() -> None:
    other = job(job_id="/me/hero-coord-2", tasks=unknown(Gap.NOT_CONFIGURED))

    beside = plan(snapshot(jobs=failed_job(), checkpoints=[checkpoint(100)], neighbours=(other,)))
    dark = plan(snapshot(jobs=failed_job(), checkpoints=[checkpoint(100)], neighbours=unknown()))
    nobody = plan(snapshot(jobs=failed_job(), checkpoints=[checkpoint(100)], neighbours=unknown(Gap.NOT_CONFIGURED)))

    assert isinstance(beside, NoPlan)
    assert not beside.is_unknown
    assert "/me/hero-coord-2" in beside.reason
    assert "end the other by hand" in beside.fix
    assert isinstance(dark, NoPlan)
    assert dark.is_unknown
    assert isinstance(nobody, RelaunchPlan)


def test_a_command_that_may_not_be_submitted_makes_no_plan_and_says_why() -> None:
    found = plan(FAILED, launcher=Launcher("--no-wait is missing"))

    assert isinstance(found, NoPlan)
    assert not found.is_unknown
    assert "--no-wait is missing" in found.reason
    assert f"runs/{RUN}.toml" in found.fix


def test_no_checkpoint_at_all_is_said_and_not_guessed() -> None:
    assert made(snapshot(jobs=failed_job())).resume_from is None


# The digest


def granted(found: RelaunchPlan) -> Grant:
    return Grant(
        request=1, run_id=RUN, digest=found.digest, by=PersonName("ada"), at=AT, expires_at=AT + timedelta(hours=1)
    )


CHANGED: list[dict[str, Any]] = [
    {"instance": "/me/hero-coord@2026-11-29T05:00:00+00:00"},
    {"stop": JobId("/me/hero-coord")},
    {"command": ("python", "train.py", "--lr", "1")},
    {"command_sha256": "2" * 64},
    {"environment": ("LR", "SEED")},
    {"directory": "/elsewhere"},
    {"job_id": JobId("/me/other")},
    {"output_root": "gs://bucket/other"},
    {"resume_from": PlannedCheckpoint(step=300, path="gs://bucket/step-300")},
    {"source_sha": "f" * 40},
    {"code": "f" * 40},
    {"config_digest": "3" * 64},
    {"changes": ("lr: 1 → 2",)},
    {"accepts": ("checkpoint policy: three are kept",)},
    {"run_id": "another-run"},
]


IN_WORDS = {
    "command_sha256": "a value that is not shown, of the command or of [environment]",
    "config_digest": "a field of the contract that shapes the launch",
}


@pytest.mark.parametrize("change", CHANGED, ids=lambda change: next(iter(change)))
def test_a_changed_plan_voids_its_grant(change: dict[str, Any]) -> None:
    asked = a_plan()
    rebuilt = RelaunchPlan.model_validate(asked.model_dump() | change)

    assert granted(asked).covers(asked, AT)
    assert not granted(asked).covers(rebuilt, AT)
    (difference,) = differences(asked, rebuilt)
    name = next(iter(change))
    assert difference.startswith(IN_WORDS.get(name, name))
    assert "2222" not in difference, "nobody can say yes or no to a hash"


def test_every_field_of_a_plan_is_in_that_table() -> None:
    assert {name for change in CHANGED for name in change} | {"kind"} == set(RelaunchPlan.model_fields)


def test_a_yes_from_before_an_upgrade_counts_after_it() -> None:
    """A field that came later is no part of the digest while it is empty."""
    dump = a_plan().model_dump(mode="json")
    before = {name: value for name, value in dump.items() if name not in {"accepts", "code"}}

    assert a_plan().digest == hashlib.sha256(canonical_json(before).encode()).hexdigest()


def test_a_grant_ends_with_its_hour() -> None:
    found = a_plan()

    assert granted(found).covers(found, AT + timedelta(minutes=59))
    assert not granted(found).covers(found, AT + timedelta(hours=1))


@given(st.permutations(list(RelaunchPlan.model_fields)))
def test_the_order_of_keys_is_nothing_to_the_digest(order: list[str]) -> None:
    dump = a_plan().model_dump(mode="json")

    shuffled = RelaunchPlan.model_validate_json(json.dumps({name: dump[name] for name in order}))

    assert shuffled.digest == a_plan().digest
    assert canonical_json(shuffled) == canonical_json(a_plan())


COMMANDS = [
    ("python", "train.py", "--wandb-key", SECRET),
    ("python", "train.py", f"--token={SECRET}"),
    ("env", f"HF_TOKEN={SECRET}", "python", "train.py"),
    ("python", "train.py", "--api-key=sk-0123456789abcdefghijklmnopqrstuvwxyz"),
    ("curl", "-H", "Authorization: Bearer abcdef0123456789", "https://u:pw0rd-x@host/x"),
    ("sh", "-c", f"PASSWORD={SECRET} ./launch --no-wait"),
    ("python", "train.py", "--note", "ünïcode → ok", "--empty", ""),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command)[:30])
def test_a_plan_that_was_stored_and_read_again_has_the_same_digest_and_no_secret(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    """What the store scrubbed of a plan would make its approval worthless: so the plan is made scrubbed."""
    promised = contract(command=command, environment={"HF_TOKEN": SECRET})
    found = made(FAILED, promised=promised)
    request = a_request(1).model_copy(update={"plan": found})

    async def through_the_store() -> RelaunchPlan:
        store = await Store.open(f"sqlite:///{tmp_path}/hero.db", FakeClock(), Redactor((SECRET,)))
        async with store.transaction() as tx:
            await tx.apply(Decision(requests=(request,)), RUN, AT)
        record = await store.record(RUN)
        await store.close()
        assert record is not None
        plan = record.requests[0].plan
        assert isinstance(plan, RelaunchPlan)
        return plan

    stored = asyncio.run(through_the_store())

    assert stored == found
    assert stored.digest == found.digest == made(FAILED, promised=promised).digest
    assert SECRET not in canonical_json(stored)
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_a_changed_secret_changes_the_plan_without_showing_it() -> None:
    one = made(FAILED, promised=contract(command=("train", f"--token={SECRET}")))
    two = made(FAILED, promised=contract(command=("train", "--token=another-password-9")))

    assert one.command == two.command
    assert one.digest != two.digest


def test_what_differs_from_the_last_launch_is_part_of_the_plan() -> None:
    before = made(FAILED)
    launch = instance().model_copy(update={"shape": {"source_sha": '"aaa"', "bundle": "null"}})

    found = made(FAILED, promised=contract(source_sha="bbb"), launch=launch)

    assert any(change.startswith('source_sha: "aaa" → "bbb"') for change in found.changes)
    assert before.changes == ()


def test_what_hero_adds_to_the_command_is_said() -> None:
    found = made(FAILED, launcher=Launcher(notes=("--job-name hero-1, so that it can be looked up",)))

    assert found.changes == ("added by Hero: --job-name hero-1, so that it can be looked up",)
