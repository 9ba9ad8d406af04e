"""Each item of the launch checklist: what must be blocked, what must pass, and what must be Unknown."""

from pathlib import Path
from typing import Any

import pytest

from bot.commands.checks import item_row
from bot.model.code import SourceCommit, SourceFault, SourceFaultKind
from bot.model.contract import Basis
from bot.model.crash import Classification, CrashClass, RelaunchAdvice
from bot.model.job import JobState
from bot.model.preflight import Decision, PreflightFinding, PreflightReport, PreflightValue, Preparation, Weight
from bot.model.reading import Gap, Known
from bot.model.tracker import TrackerRunState
from bot.model.value import CheckId, PersonName
from checks.preflight import ITEMS
from checks.preflight.bundle import BUNDLE, commits_in
from checks.preflight.code import CODE
from checks.preflight.command import COMMAND
from checks.preflight.credentials import CREDENTIALS
from checks.preflight.hardware import HARDWARE
from checks.preflight.identity import IDENTITY
from checks.preflight.item import Item, Told, judge_preparation
from checks.preflight.kind import KIND
from checks.preflight.people import PEOPLE
from checks.preflight.tracker import TRACKER
from checks.preflight.trajectory import TRAJECTORY, propose, say_proposal
from tests.fakes.preparations import (
    OTHER_SHA,
    SHA,
    code_state,
    launch_contract,
    message,
    other_run,
    preparation,
    report,
    tracked,
    value,
    weights,
)
from tests.fakes.snapshots import AT, JOB, instance, job, unknown

MINE = (KIND, PEOPLE, COMMAND, CREDENTIALS, HARDWARE, CODE, BUNDLE, TRAJECTORY, IDENTITY, TRACKER)
BLOCKS, ASKS, UNKNOWN, NOTE = Weight.BLOCKS, Weight.ASKS, Weight.UNKNOWN, Weight.NOTE


def planned(state: JobState) -> dict[str, Any]:
    return {"planned": Known(value=(job(state),), at=AT)}


def of_source(**fields: Any) -> Any:
    given = {"sha": SHA, "pushed_to": ("origin/main",), "is_ancestor": True}
    return SourceCommit.model_validate(given | fields)


def fault(kind: SourceFaultKind) -> dict[str, Any]:
    return {"source": None, "source_fault": SourceFault(kind=kind, detail="source_sha = 'main' is no SHA", fix="write")}


@pytest.mark.parametrize("is_first", [True, False])
def test_a_launch_in_order_is_ready_and_prints_what_it_is(is_first: bool) -> None:
    found = judge_preparation(MINE, preparation(is_first=is_first))

    assert (found.decision, found.findings) == (Decision.READY, ())
    names = {each.name for each in found.values}
    assert names >= {"kind", "dri", "owner", "command", "hardware", "source_sha", "bundle", "output_root", "tracker.id"}
    assert len(names) == len(found.values)


@pytest.mark.parametrize("prepared", [preparation(), preparation(is_first=False)])
def test_the_registered_items_are_the_written_ones(prepared: Preparation) -> None:
    assert set(MINE) <= set(ITEMS)
    assert len({item.id for item in ITEMS}) == len(ITEMS)
    assert all(item.id.startswith("launch.") and item.title and item.source for item in ITEMS)
    for item in MINE:
        assert weights(item, prepared) == []


CASES: list[tuple[Item, Preparation, list[Weight], str]] = [
    # The command.
    (COMMAND, preparation(problems=("add --no-wait",), planned_job=None), [BLOCKS], "--no-wait"),
    (COMMAND, preparation(problems=("a", "b"), planned_job=None), [BLOCKS, BLOCKS], ""),
    # Secrets.
    (
        CREDENTIALS,
        preparation(launch_contract(output_root="s3://KEY:hunter2secret@bucket/run")),
        [BLOCKS],
        "output_root",
    ),
    (CREDENTIALS, preparation(launch_contract(datasets=("https://u:hunter2secret@x.y/d",))), [BLOCKS], "datasets.0"),
    (CREDENTIALS, preparation(launch_contract(command="train --api-key hunter2secret")), [NOTE], "the command"),
    # The source.
    (CODE, preparation(launch_contract(source_sha=None)), [ASKS], SHA),
    (CODE, preparation(launch_contract(source_sha=None), is_first=False), [NOTE], SHA),
    (CODE, preparation(launch_contract(source_sha=None), code=unknown(Gap.NOT_CONFIGURED)), [ASKS], "/srv/hero"),
    (CODE, preparation(launch_contract(source_sha=None), code=unknown(Gap.TIMEOUT)), [UNKNOWN], "not known"),
    (CODE, preparation(code=unknown(Gap.REFUSED, "no repository")), [UNKNOWN], "no repository"),
    (CODE, preparation(is_first=False, code=unknown(Gap.TIMEOUT)), [UNKNOWN], SHA),
    (CODE, preparation(code=code_state(**fault(SourceFaultKind.NOT_A_SHA))), [BLOCKS], "is no SHA"),
    (CODE, preparation(code=code_state(**fault(SourceFaultKind.MISSING), is_shallow=True)), [UNKNOWN], "is no SHA"),
    (CODE, preparation(launch_contract(source_sha=SHA[:9])), [ASKS], "abbreviated"),
    (CODE, preparation(launch_contract(source_sha=SHA[:9]), is_first=False), [NOTE], "abbreviated"),
    (CODE, preparation(code=code_state(source=of_source(pushed_to=(), is_ancestor=False))), [BLOCKS], "not pushed"),
    (
        CODE,
        preparation(code=code_state(source=of_source(pushed_to=("origin/x",), is_ancestor=False))),
        [BLOCKS],
        "origin/x",
    ),
    (CODE, preparation(code=code_state(source=of_source(is_ancestor=None, ancestry_gap="cut"))), [UNKNOWN], "cut"),
    (
        CODE,
        preparation(code=code_state(source=of_source(is_ancestor=False), fetched_at=None, fetch_fault="refused")),
        [UNKNOWN],
        "refused",
    ),
    (CODE, preparation(code=code_state(head=OTHER_SHA, changed=("model.py",))), [BLOCKS], "model.py"),
    (CODE, preparation(code=code_state(head=OTHER_SHA, changed=("NOTES.md",), harmless=("*.md",))), [], ""),
    (CODE, preparation(code=code_state(dirty=("model.py",), patch_sha256="ab12")), [BLOCKS], "model.py"),
    (CODE, preparation(code=code_state(dirty=("run.log", "a.md"), harmless=("*.md", "*.log"))), [], ""),
    (
        CODE,
        preparation(launch_contract(dirty_approved=True), code=code_state(dirty=("model.py",), patch_sha256="ab12")),
        [NOTE],
        "ab12",
    ),
    # The bundle.
    (BUNDLE, preparation(launch_contract(bundle=f"ghcr.io/x/train:{OTHER_SHA}")), [BLOCKS], OTHER_SHA),
    (BUNDLE, preparation(launch_contract(bundle=f"gs://b/src-{SHA[:10]}.tar.gz")), [], ""),
    (BUNDLE, preparation(launch_contract(bundle="ghcr.io/x/train:latest")), [ASKS], "no commit"),
    (BUNDLE, preparation(launch_contract(bundle="ghcr.io/x/train:latest"), is_first=False), [NOTE], "no commit"),
    (BUNDLE, preparation(launch_contract(bundle=f"train:{SHA}", source_sha=None)), [ASKS], SHA),
    (
        BUNDLE,
        preparation(
            launch_contract(bundle=f"train:{SHA}", source_sha="main"),
            code=code_state(**fault(SourceFaultKind.NOT_A_SHA)),
        ),
        [UNKNOWN],
        "main",
    ),
    # Identities.
    (IDENTITY, preparation(**planned(JobState.RUNNING)), [BLOCKS], "lives already"),
    (IDENTITY, preparation(**planned(JobState.FAILED)), [ASKS], "used before"),
    (IDENTITY, preparation(planned=unknown()), [UNKNOWN], JOB),
    (IDENTITY, preparation(is_first=False, jobs=job(), **planned(JobState.RUNNING)), [], ""),
    (IDENTITY, preparation(is_first=False, **planned(JobState.FAILED)), [], ""),
    (IDENTITY, preparation(others=(other_run(jobs=frozenset({JOB})),)), [BLOCKS], "hero-older"),
    (IDENTITY, preparation(others=(other_run(),)), [], ""),
    (
        IDENTITY,
        preparation(launch_contract(output_root="gs://bucket/users/ada/hero-older/"), others=(other_run(),)),
        [BLOCKS],
        "output_root",
    ),
    (
        IDENTITY,
        preparation(launch_contract(output_root="gs://bucket/users/ada"), others=(other_run(is_live=True),)),
        [BLOCKS],
        "live",
    ),
    (
        IDENTITY,
        preparation(
            launch_contract(session_root="gs://tmp/sessions/a"),
            others=(other_run(places=frozenset({"gs://tmp/sessions/a"})),),
        ),
        [BLOCKS],
        "session_root",
    ),
    (
        IDENTITY,
        preparation(launch_contract(export_root="gs://models"), others=(other_run(places=frozenset({"gs://models"})),)),
        [ASKS],
        "export_root",
    ),
    (
        IDENTITY,
        preparation(launch_contract(output_root="out"), others=(other_run(places=frozenset({"/srv/hero/out/x"})),)),
        [BLOCKS],
        "/srv/hero/out",
    ),
    # The tracker.
    (TRACKER, preparation(tracker=tracked(TrackerRunState.FINISHED)), [BLOCKS], "already"),
    (TRACKER, preparation(is_first=False, tracker=tracked(TrackerRunState.CRASHED)), [], ""),
    (TRACKER, preparation(tracker=unknown()), [UNKNOWN], "free"),
    (TRACKER, preparation(tracker=unknown(Gap.NOT_CONFIGURED)), [ASKS], "no key"),
    (TRACKER, preparation(is_first=False, tracker=unknown()), [], ""),
    (
        TRACKER,
        preparation(others=(other_run(tracker=f"team/hero/{launch_contract().tracker.id}"),)),
        [BLOCKS],
        "hero-older",
    ),
    (TRACKER, preparation(others=(other_run(tracker_name=launch_contract().tracker.name),)), [ASKS], "hero-older"),
    (TRACKER, preparation(tracker=tracked(namesakes=("abc",))), [ASKS], "abc"),
]


@pytest.mark.parametrize(("item", "prepared", "expected", "named"), CASES)
def test_what_blocks_what_asks_what_is_unknown_and_what_passes(
    item: Item, prepared: Preparation, expected: list[Weight], named: str
) -> None:
    found = report(item, prepared)

    assert [each.weight for each in found.findings] == expected, found.findings
    assert named in " ".join(each.message for each in found.findings)
    assert all(each.fix for each in found.findings)


def with_tracker(**fields: Any) -> Any:
    given = {"mode": "online", "entity": "team", "project": "hero", "id": "hero-x", "resume": "allow"}
    return launch_contract(tracker={**given, **fields})


@pytest.mark.parametrize(
    ("fields", "is_first", "expected", "named"),
    [
        ({"resume": "never"}, True, [], ""),
        ({"resume": "never"}, False, [BLOCKS], "never"),
        ({"resume": "must"}, True, [BLOCKS], "must"),
        ({"resume": "must"}, False, [], ""),
        ({"resume": "sometimes"}, True, [BLOCKS], "sometimes"),
        ({"resume": None}, True, [ASKS], "resume"),
        ({"resume": None}, False, [NOTE], "resume"),
        ({"mode": "onlin"}, True, [BLOCKS], "onlin"),
        ({"mode": "offline"}, True, [ASKS], "offline"),
        ({"mode": "disabled"}, True, [ASKS], "without a tracker"),
        ({"mode": "disabled"}, False, [NOTE], "without a tracker"),
        ({"id": None, "resume": None}, True, [ASKS], "id is not stated"),
    ],
)
def test_the_trackers_mode_and_policy_have_to_be_possible(
    fields: dict[str, Any], is_first: bool, expected: list[Weight], named: str
) -> None:
    prepared = preparation(with_tracker(**fields), is_first=is_first)

    assert weights(TRACKER, prepared) == expected
    assert not named or named in message(TRACKER, prepared)


@pytest.mark.parametrize("state", [TrackerRunState.MISSING, TrackerRunState.FINISHED])
@pytest.mark.parametrize("resume", ["must", "allow"])
def test_the_tracker_run_of_a_trials_child_may_be_forked_already_or_still_be_missing(
    state: TrackerRunState, resume: str
) -> None:
    promised = with_tracker(resume=resume)
    there = tracked(state, id="hero-x")

    assert weights(TRACKER, preparation(promised, tracker=there, trial_of="hero-old")) == []
    assert weights(TRACKER, preparation(promised, tracker=unknown(), trial_of="hero-old")) == [UNKNOWN]


def test_a_diagnostic_may_do_without_a_tracker() -> None:
    promised = launch_contract(kind="diagnostic", model_flops=1e18, tracker={"mode": "disabled"})

    assert weights(TRACKER, preparation(promised)) == []


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (
            {"kind": "diagnostic", "model_flops": None},
            "diagnostic (the contract says so; no model FLOPs are given) (stated)",
        ),
        (
            {"kind": None, "model_flops": 1e22},
            "production (1e+22 model FLOPs (model_flops, stated), not below 1e+22) (inferred)",
        ),
        (
            {"kind": None, "model_flops": None, "params": 1e9, "tokens": 1e12},
            "diagnostic (6e+21 model FLOPs (6 x params x tokens, inferred), below 1e+22) (inferred)",
        ),
        (
            {"kind": None, "model_flops": None},
            "production (no model FLOPs are given, and in doubt a run is production) (inferred)",
        ),
    ],
)
def test_the_kind_is_shown_with_its_reason(fields: dict[str, Any], kind: str) -> None:
    assert value(KIND, preparation(launch_contract(**fields)), "kind") == kind


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"kind": "diagnostic", "model_flops": 2e22}, "1e+22"),
        ({"kind": "diagnostic", "model_flops": 1e20, "export_root": "gs://x/e"}, "export_root"),
        ({"kind": "diagnostic", "model_flops": 1e20, "final_step": None}, "final_step"),
        ({"kind": None, "model_flops": 1e20, "export_root": "gs://x/e"}, "export_root"),
        ({"model_flops": 3e22, "params": 1e9, "tokens": 1e12}, "contradicts"),
    ],
)
def test_what_does_not_go_with_the_kind_is_asked_about(fields: dict[str, Any], named: str) -> None:
    prepared = preparation(launch_contract(**fields))

    assert weights(KIND, prepared) == [ASKS]
    assert named in message(KIND, prepared)


@pytest.mark.parametrize(
    ("fields", "reachable", "expected"),
    [
        ({}, {"ada": ("slack",)}, []),
        ({}, {"ada": ()}, [BLOCKS]),
        ({}, {"bob": ("slack",)}, [BLOCKS]),
        ({"deputies": ["bob"]}, {"ada": ("slack",), "bob": ()}, [NOTE]),
        ({"owner": "bob"}, {"ada": ("slack",)}, [BLOCKS]),
        ({"owner": "ada"}, {"ada": ("slack",)}, []),
    ],
)
def test_the_dri_has_to_be_known_and_reachable(
    fields: dict[str, Any], reachable: dict[str, tuple[str, ...]], expected: list[Weight]
) -> None:
    prepared = preparation(
        launch_contract(**fields), reachable={PersonName(name): found for name, found in reachable.items()}
    )

    assert weights(PEOPLE, prepared) == expected
    assert value(PEOPLE, prepared, "owner").startswith("bob (stated)" if fields.get("owner") == "bob" else "ada (")


@pytest.mark.parametrize(
    ("hardware", "command", "expected", "shown"),
    [
        ("v5p-64", "iris job run --no-wait --tpu v5p-64 -- train", [], "v5p-64 (stated)"),
        ("v5p-64", "iris job run --no-wait --tpu=v5p-32 -- train", [BLOCKS], "v5p-64 (stated)"),
        ("2 x v5p-64", "iris job run --no-wait --tpu v4-8,v5p-64 -- train", [], "2 x v5p-64 (stated)"),
        (None, "iris job run --no-wait --tpu v5p-32 -- train --tpu v4-8", [], "v5p-32 (inferred)"),
        (None, "iris job run --no-wait -- train", [NOTE], "None (None)"),
        ("H100", "iris job run --no-wait --gpu H100x8 -- train", [], "H100 (stated)"),
    ],
)
def test_the_command_has_to_request_the_contracts_hardware(
    hardware: str | None, command: str, expected: list[Weight], shown: str
) -> None:
    prepared = preparation(launch_contract(hardware=hardware, command=command))

    assert weights(HARDWARE, prepared) == expected
    assert value(HARDWARE, prepared, "hardware") == shown


def test_a_local_run_needs_no_hardware() -> None:
    promised = launch_contract(hardware=None, orchestrator={"kind": "local", "directory": "jobs"}, command="train")

    assert weights(HARDWARE, preparation(promised)) == []


@pytest.mark.parametrize(
    ("bundle", "found"),
    [
        (f"train@sha256:{SHA}{SHA[:24]}", ()),
        ("train:20261129", ()),
        ("train:v1.2.3", ()),
        ("train:9F86D08", ("9f86d08",)),
        (f"gs://b/{SHA}/src.zip", (SHA,)),
        ("gs://b/feedface1.zip", ("feedface1",)),
    ],
)
def test_a_commit_is_found_in_a_bundles_name_and_a_date_or_digest_is_none(bundle: str, found: tuple[str, ...]) -> None:
    assert commits_in(bundle) == found


@pytest.mark.parametrize(
    ("changes", "expected", "named"),
    [
        (None, [], ""),
        (Known(value=("lib/logging_utils.py", "docs/x.md"), at=AT), [], ""),
        (Known(value=("src/model/attention.py",), at=AT), [BLOCKS], "new run id"),
        (Known(value=("src/train.py",), at=AT), [BLOCKS], "new run id"),
        (Known(value=("src/misc.py",), at=AT), [ASKS], "misc.py"),
        (unknown(detail="no such commit"), [ASKS], "no such commit"),
    ],
)
def test_a_change_that_affects_what_is_learned_needs_a_new_run(
    changes: Any, expected: list[Weight], named: str
) -> None:
    launch = instance().model_copy(update={"source_sha": OTHER_SHA})
    prepared = preparation(is_first=False, launch=launch, code_changes=changes)

    found = report(TRAJECTORY, prepared)

    assert [each.weight for each in found.findings] == expected
    assert named in " ".join(f"{each.message} {each.fix}" for each in found.findings)
    assert weights(TRAJECTORY, preparation(code_changes=changes)) == []  # a first launch continues nothing


def test_a_value_that_is_inferred_is_shown_as_inferred() -> None:
    promised = launch_contract(basis={"output_root": "inferred", "tracker.id": "measured"})

    assert value(IDENTITY, preparation(promised), "output_root").endswith("(inferred)")
    assert value(TRACKER, preparation(promised), "tracker.id").endswith("(measured)")


def test_an_item_that_breaks_is_unknown_and_hides_no_other() -> None:
    def broken(_prepared: Preparation) -> Told:
        msg = "no such thing"
        raise KeyError(msg)

    item = Item(id=CheckId("launch.broken"), title="x", source="x", judge=broken)

    found = judge_preparation((item, COMMAND), preparation(problems=("bad",), planned_job=None))

    assert [each.weight for each in found.findings] == [UNKNOWN, BLOCKS]
    assert not found.is_unknown


def finding(weight: Weight) -> PreflightFinding:
    return PreflightFinding(check=CheckId("launch.x"), weight=weight, message="m", fix="f")


@pytest.mark.parametrize(
    ("found", "decision", "is_unknown"),
    [
        ((), Decision.READY, False),
        ((NOTE,), Decision.READY, False),
        ((NOTE, ASKS), Decision.NEEDS_DRI, False),
        ((ASKS, UNKNOWN), Decision.BLOCKED, True),
        ((BLOCKS, UNKNOWN), Decision.BLOCKED, False),
        ((BLOCKS, ASKS), Decision.BLOCKED, False),
    ],
)
def test_the_gravest_finding_decides(found: tuple[Weight, ...], decision: Decision, is_unknown: bool) -> None:
    whole = PreflightReport(values=(), findings=tuple(finding(each) for each in found))

    assert (whole.decision, whole.is_unknown) == (decision, is_unknown)


def test_a_job_that_lives_is_not_this_runs_own_before_anything_is_on_record() -> None:
    assert weights(IDENTITY, preparation(jobs=job(), **planned(JobState.RUNNING))) == [BLOCKS]
    assert weights(IDENTITY, preparation(is_first=False, jobs=job(), **planned(JobState.RUNNING))) == []


def test_every_item_has_its_section_where_hero_checks_points_to() -> None:
    page = (Path(__file__).parents[3] / "docs" / "launching.md").read_text(encoding="utf-8")

    for item in ITEMS:
        assert f"\n### {item.id}\n" in page
        assert item_row(item)["docs"] == f"docs/launching.md#{item.id.replace('.', '')}"


def crash(crash_class: CrashClass, *, affects: bool | None = None) -> Classification:
    return Classification(
        crash_class=crash_class,
        relaunch=RelaunchAdvice.ASK,
        trajectory_affecting=affects,
        evidence=(),
        location=None,
        summary="x",
        signature="x",
    )


@pytest.mark.parametrize(
    ("ended", "changed", "run", "said"),
    [
        (None, (), "same", "no change of the code is known"),
        (crash(CrashClass.INFRA_PREEMPTION), (), "same", "infra preemption"),
        (crash(CrashClass.CODE_BUG_SMALL, affects=False), (), "same", "changes nothing that is learned"),
        (crash(CrashClass.CODE_BUG_COMPLEX, affects=True), (), "ask", "initialize_from"),
        (crash(CrashClass.OOM_DEVICE), (), "ask", "may change"),
        (crash(CrashClass.INFRA_PREEMPTION), ("src/optim/muon.py",), "new", "a NEW one is needed"),
        (crash(CrashClass.CODE_BUG_SMALL, affects=False), ("src/logging_utils.py",), "same", "logging_utils.py"),
        (None, ("src/misc.py",), "ask", "misc.py"),
    ],
)
def test_what_is_proposed_is_the_same_run_or_a_new_one_with_the_reason(
    ended: Classification | None, changed: tuple[str, ...], run: str, said: str
) -> None:
    proposal = propose(ended, changed)

    assert proposal.run == run
    assert said in say_proposal(proposal)


def test_a_value_that_two_items_tell_is_printed_once() -> None:
    def tell(_prepared: Preparation) -> Told:
        return Told(values=(PreflightValue(name="output_root", value="resolved", basis=Basis.MEASURED),))

    later = Item(id=CheckId("launch.later"), title="x", source="x", judge=tell)

    found = judge_preparation((IDENTITY, later), preparation())

    assert [each.value for each in found.values if each.name == "output_root"] == ["resolved"]


def test_a_place_that_many_runs_have_is_one_finding_which_names_the_live_ones_first() -> None:
    others = tuple(
        other_run(run_id=f"run-{number}", is_live=number == 5, places=frozenset({"gs://b/shared"}))
        for number in range(6)
    )
    prepared = preparation(launch_contract(output_root="gs://b/shared"), others=others)

    (finding,) = IDENTITY.judge(prepared).findings

    assert "run-5 (live) has gs://b/shared; run-0 (past or planned)" in finding.message
    assert finding.message.endswith("; and 3 more")
    assert finding.fix.startswith("give this run its own output_root in ")
