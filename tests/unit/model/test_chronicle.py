"""The chain: whatever is changed, dropped, moved or slipped in is found, and named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.chronicle import Entry, Happening, MilestoneReached, StepEnded, find_fault, head_of, start_of
from bot.model.value import RunId
from tests.fakes.chronicles import LIFE, entries_of

RUN = RunId("hero-12d8b6f0")

happenings = st.lists(
    st.one_of(
        st.builds(MilestoneReached, step=st.integers(0, 3)),
        st.builds(StepEnded, action=st.integers(1, 2), step=st.just("stop"), outcome=st.just("done"), detail=st.text()),
    ),
    min_size=1,
    max_size=8,
)
others = st.sampled_from(["", "0" * 64, "2026-11-29T03:00:00.000001+00:00", "sealed", '{"step":9}', "x"])


def fault_at(entries: list[Entry], head: str | None = None) -> int | None:
    fault = find_fault(RUN, entries, head=head)
    return fault.seq if fault else None


@given(happenings)
def test_a_record_that_nobody_touched_is_whole_and_so_is_each_beginning_of_it(happened: list[Happening]) -> None:
    entries = entries_of(RUN, tuple(happened))

    assert fault_at(entries) is None
    for kept in range(len(entries) + 1):
        assert fault_at(entries, head=head_of(RUN, entries[:kept])) is None, "a head that was kept earlier is in it"


@given(happenings, st.data())
def test_any_field_of_any_entry_that_is_changed_is_found_there(happened: list[Happening], data: st.DataObject) -> None:
    entries = entries_of(RUN, tuple(happened))
    place = data.draw(st.integers(0, len(entries) - 1))
    field = data.draw(st.sampled_from(["at", "kind", "payload", "prev", "hash"]))
    value = data.draw(others.filter(lambda each: each != getattr(entries[place], field)))
    entries[place] = entries[place].model_copy(update={field: value})

    assert fault_at(entries) == place + 1


@given(happenings, st.data())
def test_a_change_that_got_a_fitting_hash_of_its_own_is_found_at_the_next_entry(
    happened: list[Happening], data: st.DataObject
) -> None:
    entries = entries_of(RUN, (*happened, MilestoneReached(step=1)))
    head = head_of(RUN, entries)
    place = data.draw(st.integers(0, len(entries) - 1))
    forged = entries[place].model_copy(update={"payload": '{"forged":true}'})
    entries[place] = forged.model_copy(update={"hash": forged.computed_hash})

    if place < len(entries) - 1:
        assert fault_at(entries) == place + 2
    else:
        assert fault_at(entries) is None, "the last one has nothing behind it"
        assert fault_at(entries, head=head) == len(entries) + 1, "which is what the head is kept elsewhere for"


@given(happenings, st.data())
def test_an_entry_that_is_dropped_moved_or_doubled_is_found(happened: list[Happening], data: st.DataObject) -> None:
    entries = entries_of(RUN, (*happened, MilestoneReached(step=1), MilestoneReached(step=1)))
    head = head_of(RUN, entries)
    place = data.draw(st.integers(0, len(entries) - 1))
    other = data.draw(st.integers(0, len(entries) - 1).filter(lambda each: each != place))
    dropped = [*entries[:place], *entries[place + 1 :]]
    moved = list(entries)
    moved[place], moved[other] = moved[other], moved[place]
    doubled = [*entries[: place + 1], entries[place], *entries[place + 1 :]]

    assert fault_at(dropped, head) == place + 1
    assert fault_at(moved) == min(place, other) + 1
    assert fault_at(doubled) == place + 2


@given(happenings, st.data())
def test_entries_that_are_numbered_anew_are_found_all_the_same(happened: list[Happening], data: st.DataObject) -> None:
    entries = entries_of(RUN, (*happened, MilestoneReached(step=1), MilestoneReached(step=1)))
    place = data.draw(st.integers(0, len(entries) - 2))
    left = [*entries[:place], *entries[place + 1 :]]
    renumbered = [each.model_copy(update={"seq": seq}) for seq, each in enumerate(left, start=1)]

    assert fault_at(renumbered) == place + 1


def test_a_record_of_another_run_is_not_taken_for_this_ones() -> None:
    moved = [each.model_copy(update={"run_id": RUN}) for each in entries_of(RunId("other"))]

    assert fault_at(entries_of(RunId("other"))) == 1
    assert fault_at(moved) == 1


def test_a_record_that_was_cut_off_or_written_anew_is_found_by_the_head_that_was_kept() -> None:
    entries = entries_of(RUN)
    head = head_of(RUN, entries)
    anew = entries_of(RUN, LIFE[1:])

    assert fault_at(entries[:-1]) is None, "the chain alone cannot tell"
    assert fault_at(entries[:-1], head) == len(entries)
    assert fault_at(anew) is None
    assert fault_at(anew, head) == len(anew) + 1
    assert fault_at(entries, head[:16].upper()) is None
    assert fault_at(entries, head[:4]) == len(entries) + 1, "four digits are anybody's"
    assert fault_at([], start_of(RUN)) is None


def test_an_entry_says_again_what_happened() -> None:
    assert tuple(each.happening for each in entries_of(RUN)) == LIFE


@pytest.mark.parametrize(
    ("kind", "payload"), [("sung", "{}"), ("milestone", "{}"), ("milestone", "no JSON"), ("sealed", "[]")]
)
def test_what_a_newer_hero_or_a_forger_wrote_is_no_happening(kind: str, payload: str) -> None:
    (entry,) = entries_of(RUN, (MilestoneReached(step=1),))

    assert entry.model_copy(update={"kind": kind, "payload": payload}).happening is None


def test_a_hash_is_what_anybody_computes_from_the_printed_line() -> None:
    """As docs/record.md says: SHA-256 over the other fields as JSON, sorted, without spaces; the payload as text."""
    import hashlib  # noqa: PLC0415 - the whole recipe in one place, as somebody else would write it
    import json  # noqa: PLC0415 - as above

    row = entries_of(RUN)[0].row()
    told = row.pop("hash")
    row["payload"] = json.dumps(row["payload"], sort_keys=True, separators=(",", ":"))

    assert hashlib.sha256(json.dumps(row, sort_keys=True, separators=(",", ":")).encode()).hexdigest() == told
