"""The guards of "Land the launch record", and of the two checkouts."""

from datetime import timedelta
from typing import Any

import pytest

from bot.model.code import SourceFault, SourceFaultKind
from bot.model.rehearsal import Pin, Rehearsal
from tests.fakes.preparations import code_state
from tests.fakes.rehearsals import (
    NEW_SHA,
    OLD_SHA,
    child_contract,
    child_seen,
    green_rehearsal,
    known,
    launched,
    main_state,
    old_contract,
    old_seen,
)
from tests.fakes.snapshots import AT, RUN, unknown
from tests.unit.checks.trial.guards.cases import DARK, FAIL, PASS, Case, hold, ids

THIRD_SHA = "3" * 40


def on_main(**fields: Any) -> Rehearsal:
    return green_rehearsal(main=known(main_state(**fields)))


def old_code(**fields: Any) -> Rehearsal:
    return green_rehearsal(seen=old_seen(code=code_state(directory="/srv/hero-old", **fields)))


def new_code(**fields: Any) -> Rehearsal:
    source = {"sha": NEW_SHA, "pushed_to": ("origin/main",), "is_ancestor": True}
    given = {"directory": "/srv/hero-new", "head": NEW_SHA, "source": source}
    return green_rehearsal(child_seen=child_seen(code=code_state(**(given | fields))))


BLIND = green_rehearsal(main=unknown())
STALE = on_main(fetched_at=AT - timedelta(hours=2), is_on_main=False)
CHILDLESS = green_rehearsal(child=None, child_seen=None)
CUT_OFF = SourceFault(kind=SourceFaultKind.MISSING, detail="it is not here", fix="fetch")
CASES = (
    # The commit is on main.
    Case("record.main", green_rehearsal(), PASS, "is on origin/main"),
    Case("record.main", green_rehearsal(child=child_contract(source_sha=NEW_SHA[:9])), PASS, "is on origin/main"),
    Case("record.main", on_main(is_on_main=False), FAIL, "is not on origin/main"),
    Case("record.main", on_main(source_sha=None, is_on_main=None), FAIL, "names no commit that is there"),
    Case("record.main", green_rehearsal(child=child_contract(source_sha=None)), FAIL, "names no commit"),
    Case("record.main", CHILDLESS, FAIL, "names no commit"),
    Case("record.main", on_main(is_on_main=None), DARK, "cannot be said"),
    Case("record.main", green_rehearsal(child=child_contract(source_sha=THIRD_SHA)), DARK, "the contract names 333"),
    Case("record.main", STALE, DARK, "fetched 2 h ago"),
    Case("record.main", BLIND, DARK, "no answer in 20 s"),
    # The values are on main.
    Case("record.values", green_rehearsal(), PASS, "trigger_hero.sh is on origin/main as it is here"),
    Case("record.values", on_main(contract_on_main=False), FAIL, "trigger_hero.sh is not on origin/main"),
    Case("record.values", on_main(contract_on_main=None, contract_path=""), DARK, "below /srv/hero-new"),
    Case("record.values", BLIND, DARK, "no answer in 20 s"),
    # What pins the old run.
    Case("record.inventory", green_rehearsal(), PASS, "weekly.py:12"),
    Case("record.inventory", green_rehearsal(pins=known(())), PASS, "nothing pins the old run in team/reports"),
    Case(
        "record.inventory",
        green_rehearsal(pins=known(tuple(Pin(where=f"team/reports: a.py:{n}", what=RUN) for n in range(7)))),
        PASS,
        "and 2 more",
    ),
    Case("record.inventory", green_rehearsal(searched=(), pins=known(())), FAIL, "[trial] inventory"),
    Case("record.inventory", green_rehearsal(pins=unknown()), DARK, "no answer in 20 s"),
    # The child's checkout.
    Case("deploy.checkout", green_rehearsal(), PASS, "/srv/hero-new is clean"),
    Case("deploy.checkout", on_main(main_sha=THIRD_SHA), PASS, "origin/main has gone on to 333333333333"),
    Case("deploy.checkout", on_main(dirty=("model.py",)), FAIL, "not committed: model.py"),
    Case("deploy.checkout", on_main(dirty=tuple("abcdefg")), FAIL, "and 2 more"),
    Case("deploy.checkout", on_main(head=THIRD_SHA), FAIL, "is at 333333333333"),
    Case("deploy.checkout", on_main(source_sha=None), FAIL, "names no commit"),
    Case("deploy.checkout", STALE, DARK, "fetched 2 h ago"),
    Case("deploy.checkout", BLIND, DARK, "no answer in 20 s"),
    # The old run's checkout.
    Case("rollback.checkout", green_rehearsal(), PASS, "/srv/hero-old is clean at 9f86d081884c"),
    Case("rollback.checkout", green_rehearsal(instance=None), PASS, "is clean"),
    Case("rollback.checkout", old_code(dirty=("out/x",), harmless=("/out/",)), PASS, "is clean"),
    Case("rollback.checkout", old_code(dirty=("model.py",), patch_sha256="ab"), FAIL, "not committed: model.py"),
    Case("rollback.checkout", old_code(head=THIRD_SHA), FAIL, "is at 333333333333"),
    Case("rollback.checkout", old_code(underway="a rebase"), FAIL, "a rebase is underway"),
    Case(
        "rollback.checkout",
        green_rehearsal(instance=launched(old_contract(), source_sha=THIRD_SHA)),
        FAIL,
        "was launched from 333333333333",
    ),
    Case(
        "rollback.checkout",
        green_rehearsal(contract=old_contract(source_sha=None), instance=launched(old_contract(source_sha=None))),
        FAIL,
        "no commit of the old run is on record",
    ),
    Case("rollback.checkout", old_code(source=None, source_fault=CUT_OFF, is_shallow=True), DARK, "--unshallow"),
    Case("rollback.checkout", green_rehearsal(seen=old_seen(code=unknown())), DARK, "no answer in 20 s"),
    # A dirty one is refused.
    Case("launch.refuses_dirty", green_rehearsal(), PASS, "a made-up dirty checkout would be refused"),
    Case("launch.refuses_dirty", green_rehearsal(child=child_contract(dirty_approved=True)), FAIL, "dirty_approved"),
    Case(
        "launch.refuses_dirty", green_rehearsal(child=child_contract(bundle="gs://b/x.zip")), FAIL, "would not refuse"
    ),
    Case("launch.refuses_dirty", green_rehearsal(child=child_contract(source_sha=None)), FAIL, "would not refuse"),
    Case(
        "launch.refuses_dirty", new_code(dirty=("model.py",), patch_sha256="ab"), FAIL, "refuses the checkout as it is"
    ),
    Case("launch.refuses_dirty", new_code(head=OLD_SHA, changed=("model.py",)), FAIL, "refuses the checkout as it is"),
    Case("launch.refuses_dirty", green_rehearsal(child_seen=child_seen(code=unknown())), DARK, "no answer in 20 s"),
    Case("launch.refuses_dirty", BLIND, DARK, "no answer in 20 s"),
    Case("launch.refuses_dirty", CHILDLESS, DARK, "no contract that can be used"),
)


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_the_record_is_on_main_and_both_checkouts_are_clean_at_their_commits(case: Case) -> None:
    hold(case)
