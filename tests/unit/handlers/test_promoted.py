"""A bounded diagnostic goes the light path until it outgrows it: then it is on record, once and for good."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.model.chronicle import Promoted
from bot.model.contract import ChannelsContract, Contract
from bot.model.delivery import ChannelName, Posted
from bot.model.event import RunChecked
from bot.model.promotion import BOUNDED, lineage_of
from bot.model.reading import Gap, Known, Unknown
from bot.model.record import Decision, Record
from bot.model.roles import HeldRole, Role
from bot.model.run import Run
from bot.model.snapshot import Snapshot
from bot.model.update import UpdateKind
from bot.model.value import RunId
from bot.redaction import Redactor
from bot.store.store import Store
from bot.written import RecordReader
from handlers.checked import decide_checked
from handlers.context import Context, channels_of, everywhere
from handlers.promises import promise_of
from handlers.promoted import promoted
from handlers.recorded import RECORD_SLOT, recorded
from tests.fakes.clock import FakeClock
from tests.fakes.snapshots import AT, RUN, instance, job, snapshot
from tests.unit.handlers.scene import ADA, BOB, EVERYWHERE, context, planner, record, shape

SLACK, GITHUB, CONSOLE = EVERYWHERE
ROOT = "gs://bucket/users/ada/hero-12d8b6f0"


def light(**fields: Any) -> Context:
    """Return a diagnostic's surroundings as every decision gets them."""
    whole = context(**{"kind": "diagnostic", **fields})
    told_on = channels_of(whole.contract, None, whole.channels)
    kept_out = tuple(name for name in whole.channels if name not in told_on)
    return whole.model_copy(update={"channels": told_on, "kept_out": kept_out})


def known(**run: Any) -> Record:
    return record(run=Run(run_id=RUN, last_checked_at=AT, **run), instances=(instance(),), posted=())


def checked(before: Record, seen: Snapshot, surroundings: Context, *, lineage: str = "") -> Decision:
    event = RunChecked(run_id=RUN, snapshot=seen, judgements=(), lineage=lineage)
    promise = shape(surroundings)
    decision = decide_checked(before, event, surroundings, make_plan=planner(surroundings), shape=promise)
    decision = promoted(before, decision, surroundings, seen, shape=promise, lineage=lineage)
    return recorded(before, decision, surroundings, seen.at, shape=promise, seen=seen)


def reasons(decision: Decision) -> list[str]:
    return [each.reason for each in decision.happened if isinstance(each, Promoted)]


def on_github(decision: Decision) -> list[str]:
    return [each.target.slot for each in decision.tell if GITHUB in each.channels]


def seen_now(**readings: Any) -> Snapshot:
    return snapshot(jobs=job()).model_copy(update=readings)


def test_a_bounded_diagnostic_is_told_of_in_its_thread_and_opens_no_issue() -> None:
    first = record(run=Run(run_id=RUN), instances=(), posted=())

    decision = checked(first, snapshot(is_first=True), light())

    assert decision.tell
    assert on_github(decision) == []
    assert all(SLACK in each.channels for each in decision.tell)
    assert [each.kind for each in decision.happened] == ["launched"], (
        "its record is kept in Hero's own log all the same"
    )


@pytest.mark.parametrize(
    ("fields", "channels", "expected"),
    [
        ({"kind": "production"}, EVERYWHERE, EVERYWHERE),
        ({}, EVERYWHERE, EVERYWHERE),
        ({"kind": "diagnostic"}, EVERYWHERE, (SLACK, CONSOLE)),
        ({"params": 1e9, "tokens": 1e9}, EVERYWHERE, (SLACK, CONSOLE)),
        ({"kind": "diagnostic", "channels": {"github_issue": 4}}, EVERYWHERE, EVERYWHERE),
        ({"kind": "diagnostic"}, (GITHUB,), (GITHUB,)),
    ],
    ids=[
        "production",
        "in doubt",
        "a diagnostic",
        "by its size",
        "its contract names an issue",
        "nowhere else to tell",
    ],
)
def test_where_a_run_is_told_of(
    fields: dict[str, Any], channels: tuple[ChannelName, ...], expected: tuple[ChannelName, ...]
) -> None:
    named = fields.pop("channels", None)
    promised = context(**fields).contract
    if named:
        promised = promised.model_copy(update={"channels": ChannelsContract.model_validate(named)})

    assert channels_of(promised, None, channels) == expected


def test_a_diagnostic_that_has_an_issue_already_goes_on_there() -> None:
    issue = Posted(channel=GITHUB, run_id=RUN, slot="thread", message_id="4")
    before = record(run=Run(run_id=RUN), posted=(issue,))

    assert channels_of(light().contract, before, EVERYWHERE) == EVERYWHERE


def test_a_diagnostic_within_its_bounds_is_not_promoted() -> None:
    surroundings = light(export_root="gs://bucket/export", initialize_from="gs://bucket/hero/checkpoints/step-9")
    held = promise_of(surroundings.contract, shape(surroundings))
    nothing = Unknown(reason=Gap.NOT_YET, detail="the job has not succeeded", at=AT)

    for export in (nothing, Known(value=0, at=AT), Unknown(reason=Gap.TIMEOUT, detail="no answer", at=AT)):
        assert reasons(checked(known(promised=held), seen_now(export=export), surroundings)) == []


def test_one_that_lasts_over_a_day_is_promoted_and_one_that_ended_before_is_not() -> None:
    began = AT - BOUNDED
    lasting = known().model_copy(update={"instances": (instance(launched_at=began - timedelta(minutes=1)),)})
    bounded = known().model_copy(update={"instances": (instance(launched_at=began),)})
    over = instance(launched_at=AT - 9 * BOUNDED, ended_at=AT - 9 * BOUNDED + timedelta(hours=1))
    ended = known().model_copy(update={"instances": (over,)})

    assert reasons(checked(lasting, seen_now(), light())) == [
        "it has lasted more than a day, since 2026-11-28 03:59 UTC"
    ]
    assert reasons(checked(bounded, seen_now(), light())) == []
    assert reasons(checked(ended, seen_now(jobs=Known(value=(), at=AT)), light())) == []


def test_a_handoff_promotes_it() -> None:
    given = HeldRole(role=Role.DRI, person=BOB, instead_of=ADA, at=AT)
    before = promise_of(light().contract, shape(light()))

    [by_command] = reasons(checked(known(roles=(given,)), seen_now(), light()))
    [by_contract] = reasons(checked(known(promised=before), seen_now(), light(owner="bob")))

    assert by_command == "it is being handed over, or was"
    assert "another DRI or monitoring owner" in by_contract


def test_a_discoverable_artifact_promotes_it() -> None:
    exported = seen_now(export=Known(value=4096, at=AT))

    [left] = reasons(checked(known(), exported, light(export_root="gs://bucket/export")))
    [sealed] = reasons(checked(known(seal="seal/hero"), seen_now(), light()))

    assert left == "it has left an export for others to find, at gs://bucket/export"
    assert sealed == "it was sealed as seal/hero, for others to find"


def test_another_lineage_promotes_it() -> None:
    before = promise_of(light().contract, shape(light()))

    [moved] = reasons(checked(known(promised=before), seen_now(), light(initialize_from="gs://bucket/x/step-1")))
    [became] = reasons(checked(known(), seen_now(), light(), lineage="it has become lineage"))

    assert "another initialize_from than before" in moved
    assert became == "it has become lineage"


def run_of(run_id: str, **fields: Any) -> Contract:
    return context(run_id=run_id, output_root=f"gs://bucket/users/ada/{run_id}", **fields).contract


def test_lineage_is_told_by_what_other_runs_start_from_and_by_whose_tree_is_written() -> None:
    probe = run_of("probe", kind="diagnostic")
    heir = run_of("heir", initialize_from="gs://bucket/users/ada/probe/checkpoints/step-90/")
    alike = run_of("alike", initialize_from="gs://bucket/users/ada/probe-2/checkpoints/step-90")
    hero = run_of("hero")
    guest = run_of("guest", kind="diagnostic", checkpoint_roots=["gs://bucket/users/ada/hero/checkpoints/probe"])
    starts = run_of("starts", kind="diagnostic", initialize_from="gs://bucket/users/ada/hero/checkpoints/step-90")

    assert "heir starts from its checkpoint" in lineage_of(probe, (hero, alike, heir))
    assert lineage_of(probe, (probe, hero, alike)) == ""
    assert "the production run hero" in lineage_of(guest, (hero,))
    assert lineage_of(starts, (hero,)) == "", "a probe of a production checkpoint changes nothing there"


def test_a_promotion_is_told_once_everywhere_and_the_record_is_kept_from_then_on() -> None:
    first = checked(known(), seen_now(), light(), lineage="it has become lineage")
    assert first.run is not None

    [telling] = [each for each in first.tell if each.update.kind is UpdateKind.ROUTINE_STATUS]
    assert telling.channels == (SLACK, CONSOLE, GITHUB)
    assert telling.update.headline == "this diagnostic goes on record: it has become lineage"
    assert [each.channels for each in first.tell if each.target.slot == RECORD_SLOT] == [(GITHUB,)]
    assert reasons(first) == ["it has become lineage"]

    after = record(run=first.run, instances=(instance(),), posted=())
    surroundings = light()
    assert channels_of(surroundings.contract, after, EVERYWHERE) == EVERYWHERE
    again = checked(after, seen_now(), everywhere(surroundings), lineage="it has become lineage")
    assert reasons(again) == []
    assert again.run is not None
    assert again.run.promoted == "it has become lineage"


def test_a_production_run_is_on_record_anyway() -> None:
    assert reasons(checked(known(), seen_now(), context(), lineage="it has become lineage")) == []


@pytest.mark.parametrize(("why", "is_written"), [("", True), ("it has become lineage", False)])
async def test_a_seal_asks_for_the_issue_of_a_promoted_diagnostic_alone(
    tmp_path: Path, why: str, *, is_written: bool
) -> None:
    clock = FakeClock(AT)
    store = await Store.open(f"sqlite:///{tmp_path / 'hero.db'}", clock, Redactor())
    try:
        async with store.transaction() as tx:
            decision = Decision(run=Run(run_id=RUN, promoted=why), happened=(Promoted(reason="it lasted"),))
            await tx.apply(decision, RunId(RUN), AT)
        reading = await RecordReader(store, clock, has_issues=True).fault(light().contract)
    finally:
        await store.close()

    assert isinstance(reading, Known), reading
    assert (not reading.value) is is_written
