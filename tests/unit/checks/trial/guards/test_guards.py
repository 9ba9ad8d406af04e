"""What holds for every guard of a trial."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.reading import Gap, Known, Unknown
from bot.model.rehearsal import Rehearsal
from bot.model.snapshot import Snapshot, Source
from bot.model.trial import Outcome
from checks.trial.guards import GUARDS
from checks.trial.guards.guard import Group, Guard, Word, all_of, cannot_tell, fails, passes
from checks.trial.guards.judging import judge_guards, outcome_of
from tests.fakes.rehearsals import child_contract, child_seen, forked_child, green_rehearsal, old_seen, trial_plan
from tests.fakes.snapshots import AT, checkpoint, unknown
from tests.unit.checks.trial.guards import test_fork, test_handoff, test_live, test_plan, test_record, test_rollback
from tests.unit.checks.trial.guards.cases import DARK, FAIL, PASS

ROOT = Path(__file__).parents[5]
CASES = (
    *test_plan.CASES,
    *test_record.CASES,
    *test_rollback.CASES,
    *test_handoff.CASES,
    *test_fork.CASES,
    *test_live.CASES,
    *test_live.CREDENTIALS,
)
NO_READING = {"plan.handoff", "plan.child", "plan.window", "plan.gates", "plan.schedule", "plan.gaps"}
"""These judge the agreed plan and the contracts alone; so there is no Unknown, and what is broken fails."""

type Change = Callable[[Rehearsal, Unknown], Rehearsal]


def _of_rehearsal(name: str) -> Change:
    return lambda rehearsal, gap: rehearsal.model_copy(update={name: gap})


def _of_snapshot(which: str, source: Source) -> Change:
    def change(rehearsal: Rehearsal, gap: Unknown) -> Rehearsal:
        seen: Snapshot = getattr(rehearsal, which)
        return rehearsal.model_copy(update={which: seen.model_copy(update={source.value: gap})})

    return change


def _of_credential(place: int) -> Change:
    def change(rehearsal: Rehearsal, gap: Unknown) -> Rehearsal:
        given = rehearsal.credentials
        return rehearsal.model_copy(update={"credentials": (*given[:place], gap, *given[place + 1 :])})

    return change


def _of_tasks(rehearsal: Rehearsal, gap: Unknown) -> Rehearsal:
    assert isinstance(rehearsal.seen.jobs, Known)
    jobs = tuple(job.model_copy(update={"tasks": gap}) for job in rehearsal.seen.jobs.value)
    return rehearsal.model_copy(update={"seen": rehearsal.seen.model_copy(update={"jobs": Known(value=jobs, at=AT)})})


JUDGED = ("jobs", "neighbours", "pods", "checkpoints", "code", "tracker")
NEEDED: dict[str, Change] = {
    **{name: _of_rehearsal(name) for name in ("main", "boundary", "pins", "limits")},
    **{f"seen.{name}": _of_snapshot("seen", Source(name)) for name in (*JUDGED, "config")},
    **{f"child_seen.{name}": _of_snapshot("child_seen", Source(name)) for name in JUDGED},
    **{f"credentials[{place}]": _of_credential(place) for place in range(5)},
    "seen.jobs.tasks": _of_tasks,
}
OTHERS: dict[str, Change] = {
    f"{which}.{source}": _of_snapshot(which, source)
    for which in ("seen", "child_seen")
    for source in Source
    if f"{which}.{source}" not in NEEDED
}
RECOVERY = green_rehearsal(
    is_recovery=True,
    child_seen=child_seen(
        checkpoints=(checkpoint(6100, root=trial_plan().child_root),), tracker=forked_child(last_step=9000)
    ),
)


def outcomes(rehearsal: Rehearsal) -> dict[str, Outcome]:
    return {said.guard: said.outcome for said in judge_guards(rehearsal)}


@pytest.mark.parametrize("rehearsal", [green_rehearsal(), RECOVERY], ids=["first", "recovery"])
def test_a_trial_in_order_passes_every_guard(rehearsal: Rehearsal) -> None:
    says = judge_guards(rehearsal)

    assert [said.line for said in says if said.outcome is not PASS] == []
    assert outcome_of(says) is PASS
    assert all(said.detail and not said.fix for said in says)


def test_every_guard_has_a_case_that_passes_one_that_fails_and_one_that_cannot_tell() -> None:
    seen = {(case.guard, case.outcome) for case in CASES}
    wanted = {(guard.id, outcome) for guard in GUARDS for outcome in Outcome}
    never_fail = {(guard.id, FAIL) for guard in GUARDS if guard.id.startswith("credentials.")}

    assert wanted - seen == never_fail | {(guard, DARK) for guard in NO_READING}


@pytest.mark.parametrize("rehearsal", [green_rehearsal(), RECOVERY], ids=["first", "recovery"])
@pytest.mark.parametrize("name", NEEDED)
@given(reason=st.sampled_from(Gap))
def test_a_reading_that_is_missing_makes_some_guard_unable_to_tell_and_fails_none(
    rehearsal: Rehearsal, name: str, reason: Gap
) -> None:
    found = outcomes(NEEDED[name](rehearsal, unknown(reason)))

    assert FAIL not in found.values()
    if (name, reason) == ("seen.config", Gap.NOT_CONFIGURED):
        return  # many runs' configuration is not read; nothing hangs on it alone
    assert DARK in found.values()


@given(names=st.sets(st.sampled_from(sorted({**NEEDED, **OTHERS}))), reason=st.sampled_from(Gap))
def test_no_guard_fails_however_many_readings_are_missing(names: set[str], reason: Gap) -> None:
    rehearsal = green_rehearsal()
    for name in sorted(names - {"seen.jobs.tasks"}):
        rehearsal = {**NEEDED, **OTHERS}[name](rehearsal, unknown(reason))

    assert FAIL not in outcomes(rehearsal).values()


@given(case=st.sampled_from(CASES), name=st.sampled_from(sorted(set(NEEDED) - {"seen.jobs.tasks"})))
def test_what_passes_does_not_fail_for_a_reading_that_goes_missing_whatever_else_is_wrong(case: Any, name: str) -> None:
    if name.startswith("child_seen") and case.rehearsal.child_seen is None:
        return
    before = outcomes(case.rehearsal)
    after = outcomes(_changed(name, case.rehearsal))

    assert [guard for guard in before if before[guard] is PASS and after[guard] is FAIL] == []


def _changed(name: str, rehearsal: Rehearsal) -> Rehearsal:
    if name.startswith("credentials") and len(rehearsal.credentials) < len(green_rehearsal().credentials):
        name = "credentials[0]"
    return NEEDED[name](rehearsal, unknown())


def test_the_groups_are_judged_apart() -> None:
    plan = {said.guard for said in judge_guards(green_rehearsal(), (Group.PLAN,))}
    rest = {said.guard for said in judge_guards(green_rehearsal(), (Group.RECORD, Group.REHEARSE))}

    assert plan == {guard.id for guard in GUARDS if guard.id.startswith("plan.")}
    assert plan | rest == {guard.id for guard in GUARDS}
    assert not plan & rest


def test_a_guard_that_breaks_cannot_tell_and_hides_none_of_the_others() -> None:
    def broken(_: Rehearsal) -> Word:
        raise KeyError("jobs")

    guard = Guard(id=GUARDS[0].id, title="it breaks", source="a test", group=Group.PLAN, rule=broken)
    first, *others = judge_guards(green_rehearsal(), guards=(guard, *GUARDS))

    assert (first.outcome, first.title) == (DARK, "it breaks")
    assert "KeyError" in first.detail
    assert first.fix
    assert len(others) == len(GUARDS)
    assert outcome_of((first, *others)) is DARK


@pytest.mark.parametrize(
    ("changes", "guard"),
    [
        ({"dri_zone": "Mars/Olympus"}, "plan.schedule"),
        ({"services": ("iris",)}, "credentials.iris"),
        ({"services": ("iris",)}, "credentials.wandb"),
    ],
)
def test_input_that_is_broken_passes_nothing(changes: dict[str, Any], guard: str) -> None:
    assert outcomes(green_rehearsal(**changes))[guard] is DARK


def test_what_fails_comes_before_what_cannot_be_told_and_none_at_all_passes_nothing() -> None:
    word = all_of("fine", (cannot_tell("dark", "look"), fails("wrong", "mend"), fails("wrong", "mend")))

    assert (word.outcome, word.detail, word.fix) == (FAIL, "wrong", "mend")
    assert all_of("fine", ()) == passes("fine")
    assert outcome_of(()) is DARK
    assert (
        outcome_of(judge_guards(green_rehearsal(child=child_contract(source_sha=None), seen=old_seen(pods=unknown()))))
        is FAIL
    )


def test_every_guard_has_a_name_of_its_own_and_is_listed_with_the_procedures_line() -> None:
    page = (
        (ROOT / "docs" / "trial.md").read_text(encoding="utf-8").partition("## The guards\n")[2].partition("\n## ")[0]
    )
    rows = re.findall(r"^\| `([a-z_.]+)` \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)

    assert [row[0] for row in rows] == [guard.id for guard in GUARDS]
    assert {row[0]: row[1].strip() for row in rows} == {guard.id: guard.title for guard in GUARDS}
    assert {row[0]: row[2].strip() for row in rows} == {
        guard.id: guard.source.removeprefix("deploy checklist, ") for guard in GUARDS
    }
