"""What is on record of a child's launch, and whether its contract is still the one that it was launched with."""

from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.actions.both_runs import changed_since_launch, launches_of, was_never_launched
from bot.model.contract import Contract
from bot.model.plan import Grant
from bot.model.record import Record
from tests.fakes.snapshots import RUN
from tests.unit.actions.trial_world import CHILD, Bench, child_contract

MENDED = child_contract(source_sha="f" * 40)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with capture_logs():
        yield


async def launched() -> Bench:
    bench = Bench()
    await bench.after_cutover()
    return bench


def agreed_anew(bench: Bench, request: int) -> Record:
    """Return the record once the very same plan was agreed to again, by this request."""
    record = bench.store.records[RUN]
    assert record.run.trial is not None
    trial = record.run.trial.model_copy(update={"request": request})
    return record.model_copy(update={"run": record.run.model_copy(update={"trial": trial})})


async def test_a_launch_of_an_earlier_trial_of_the_same_plan_bars_no_mended_child() -> None:
    bench = await launched()
    request = bench.action.grant.request
    assert "was changed since its launch" in changed_since_launch(MENDED, bench.store.records[RUN])

    retry = agreed_anew(bench, request + 1)

    assert (changed_since_launch(MENDED, retry), launches_of(CHILD, retry)) == ("", ())
    assert not was_never_launched(CHILD, retry, None), "no cut-over of this trial is on record, so nobody can say"


async def with_launch_digest(digest: str) -> Record:
    """Return the record of a child that was launched under a contract of this digest."""
    bench = await launched()
    action = bench.action
    plan: Any = action.plan
    plan = plan.model_copy(update={"launch": plan.launch.model_copy(update={"config_digest": digest})})
    grant: Grant = action.grant.model_copy(update={"digest": plan.digest})
    before = bench.store.records[RUN]
    return before.model_copy(update={"actions": (action.model_copy(update={"plan": plan, "grant": grant}),)})


@pytest.mark.parametrize(
    ("now", "is_changed"),
    [
        (child_contract(), False),
        (child_contract(spill="/scratch"), True),
        (child_contract(final_step=9_000), True),
        (MENDED, True),
    ],
)
async def test_fields_that_hero_learned_of_since_the_launch_are_no_change_while_they_are_empty(
    now: Contract, *, is_changed: bool
) -> None:
    """An upgrade of Hero is nothing that anybody could undo in the contract."""
    record = await with_launch_digest(child_contract().digest_without({"bundle", "spill"}))

    assert bool(changed_since_launch(now, record)) is is_changed
