"""Each storage item of the launch checklist: what must be blocked, what must pass, and what must be Unknown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.addresses import cluster_prefix, is_own, is_versioned, open_mark, step_in, ttl_days
from bot.model.preflight import LaunchRules, Location, Preparation, Weight
from bot.model.reading import Gap, Known
from bot.model.snapshot import Checkpoint
from checks.preflight.datasets import DATASETS
from checks.preflight.item import Item
from checks.preflight.places import PLACES
from checks.preflight.regions import REGIONS
from checks.preflight.retention import BYTES, RETENTION
from checks.preflight.start import START
from checks.preflight.storage import OUTPUT
from tests.fakes.preparations import launch_contract, message, other_run, preparation, report, value, weights
from tests.fakes.snapshots import AT, unknown

BLOCKS, ASKS, UNKNOWN, NOTE = Weight.BLOCKS, Weight.ASKS, Weight.UNKNOWN, Weight.NOTE
ITEMS = (OUTPUT, PLACES, RETENTION, BYTES, START, DATASETS, REGIONS)
PREFIX = "gs://marin-us-east5"
MINE = f"{PREFIX}/users/ada/hero"
HOUSE = LaunchRules(prefix=PREFIX)
RESUME = f"{PREFIX}/tmp/ttl=30d/checkpoints-temp/hero"
DATA = f"{PREFIX}/tokenized/dclm-ab12cd9e"
LOCAL = {"orchestrator": {"kind": "local", "directory": "jobs"}, "command": "python train.py", "output_root": "out"}


def in_house(*, rules: LaunchRules = HOUSE, is_first: bool = True, read: Any = None, **fields: Any) -> Preparation:
    """Return a launch that is in order in a house with buckets; ``read`` is what else was read."""
    given = {
        "orchestrator": {"kind": "iris", "job_id": "/ada/hero-coord"},
        "command": "iris job run --no-wait --tpu v5p-64 --zone us-east5-a --job-name hero-coord -- python -m train",
        "output_root": MINE,
        "resume_root": RESUME,
        "export_root": f"{MINE}/hf",
        "traces_root": f"{PREFIX}/tmp/ttl=7d/hero/traces",
        "session_root": f"{PREFIX}/tmp/ttl=7d/hero/session",
        "spill": "/tmp/skyrl-ray-spill",
        "datasets": (DATA,),
        "checkpoint_bytes": 10 * 2**40,
    }
    return preparation(launch_contract(**(given | fields)), is_first=is_first, rules=rules, **(read or {}))


def toy(**fields: Any) -> Preparation:
    return preparation(launch_contract(**(LOCAL | fields)))


def lies(field: str, **fields: Any) -> dict[str, Any]:
    """Return what a store told of one address: by default that it is there and its bucket has no rule."""
    given: dict[str, Any] = {"address": "x", "exists": True, "is_told": True, "region": "us-east5"}
    return {"locations": {field: Known(value=Location.model_validate(given | fields), at=AT)}}


def hidden(field: str) -> dict[str, Any]:
    return {"locations": {field: unknown(Gap.REFUSED, "this account may not list it")}}


def step(number: int, *, root: str = "gs://marin-us-east5/users/ada/older/checkpoints", **fields: Any) -> Checkpoint:
    given: dict[str, Any] = {"step": number, "path": f"{root}/step-{number}", "is_complete": not fields.get("fault")}
    return Checkpoint.model_validate(given | fields)


OLDER = f"{PREFIX}/users/ada/older/checkpoints"
FROM: dict[str, Any] = {"initialize_from": f"{OLDER}/step-9000"}
KNOWN_RUN = (other_run(places=frozenset({f"{PREFIX}/users/ada/older"})),)


def starts(*steps: Checkpoint, **fields: Any) -> dict[str, Any]:
    return {"others": KNOWN_RUN, "start": Known(value=steps, at=AT), **fields}


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.id)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_launch_in_order_passes_in_a_house_with_buckets(item: Item, is_first: bool) -> None:
    assert weights(item, in_house(is_first=is_first)) == []
    assert weights(item, in_house(is_first=is_first, read=starts(step(9000)), **FROM)) == []


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.id)
def test_a_toy_on_one_machine_is_asked_for_nothing(item: Item) -> None:
    assert weights(item, toy()) == []
    assert weights(item, toy(datasets=("c4",), export_root="out/hf", spill="spill", params=1e6)) == []


def test_every_value_of_the_checklist_is_printed_also_when_it_is_not_stated() -> None:
    printed = {each.name: each.value for item in ITEMS for each in report(item, toy()).values}

    assert printed == {
        "resume_root": None,
        "traces_root": None,
        "session_root": None,
        "export_root": None,
        "spill": None,
        "checkpoint_roots": "out/checkpoints",
        "retention.resume": "1",
        "retention.milestones": "none",
        "checkpoint_bytes": None,
        "projected_resume_bytes": "not known",
        "initialize_from": "none: the run starts from nothing",
        "datasets": None,
        "regions": "not told",
    }


CASES: list[tuple[Item, Preparation, list[Weight], str]] = [
    # The output root.
    (OUTPUT, in_house(output_root=f"{MINE}/{{run_id}}"), [BLOCKS], "{run_id}"),
    (OUTPUT, in_house(output_root=f"{MINE}/$RUN"), [BLOCKS], "$R"),
    (OUTPUT, in_house(output_root=f"{MINE}/%Y-%m"), [BLOCKS], "a date"),
    (OUTPUT, in_house(output_root=f"{MINE}/latest"), [BLOCKS], "latest"),
    (OUTPUT, in_house(output_root="out"), [BLOCKS, BLOCKS], "relative"),
    (OUTPUT, in_house(output_root="out", rules=LaunchRules()), [BLOCKS], "relative"),
    (OUTPUT, in_house(output_root=f"{PREFIX}/hero"), [BLOCKS], "users/ada/"),
    (OUTPUT, in_house(output_root=f"{PREFIX}/users/bob/hero"), [BLOCKS], "users/ada/"),
    (OUTPUT, in_house(output_root="gs://elsewhere/users/ada/hero"), [BLOCKS], PREFIX),
    (OUTPUT, in_house(output_root=f"{PREFIX}/users/bob/hero", is_first=False), [NOTE], "users/ada/"),
    (OUTPUT, in_house(output_root=f"{PREFIX}/iris/hero"), [BLOCKS, BLOCKS], "belongs to the cluster"),
    (OUTPUT, in_house(output_root=f"{PREFIX}/iris/x", is_first=False), [BLOCKS, NOTE], "belongs to the cluster"),
    (OUTPUT, in_house(output_root="s3://b/iris/x", rules=LaunchRules()), [BLOCKS], "belongs to the cluster"),
    (OUTPUT, in_house(output_root="s3://b/elsewhere/iris/x", rules=LaunchRules()), [], ""),
    (OUTPUT, in_house(output_root="gs://b/tmp/ttl=7d/x", rules=LaunchRules()), [BLOCKS], "its path is temporary"),
    (OUTPUT, in_house(read=lies("output_root", exists=False, expires_days=14)), [BLOCKS], "after 14 days (measured)"),
    (
        OUTPUT,
        in_house(kind="diagnostic", read=lies("output_root", exists=False, expires_days=14)),
        [NOTE],
        "no durable place",
    ),
    (OUTPUT, in_house(read=lies("output_root")), [ASKS], "holds something already (measured)"),
    (OUTPUT, in_house(read=lies("output_root"), is_first=False), [], ""),
    (OUTPUT, in_house(read=lies("output_root", exists=False, has_bucket=False)), [BLOCKS], "no such bucket"),
    (OUTPUT, in_house(read=hidden("output_root")), [UNKNOWN], "cannot be verified: this account may not list it"),
    (OUTPUT, toy(output_root="../out"), [BLOCKS], "a step up"),
    (OUTPUT, toy(output_root="/data/out"), [], ""),
    (OUTPUT, toy(output_root="~/out"), [BLOCKS], "a home directory"),
    (OUTPUT, toy(command="train --output-dir elsewhere/x"), [BLOCKS], "the command says --output-dir elsewhere/x"),
    (OUTPUT, toy(command="train --trainer.output_path=./out/"), [], ""),
    # The other places.
    (PLACES, in_house(resume_root=None), [ASKS], "resume_root is not stated"),
    (PLACES, in_house(resume_root=f"{MINE}/resume"), [BLOCKS], "its path is durable (inferred)"),
    (PLACES, in_house(resume_root=f"{PREFIX}/tmp/resume"), [ASKS], "says no ttl (inferred)"),
    (PLACES, in_house(resume_root=f"{PREFIX}/tmp/ttl=14d/x"), [ASKS], "after 14 days (inferred), and 30 are demanded"),
    (PLACES, in_house(resume_root=f"{PREFIX}/tmp/ttl=14d/x", is_first=False), [NOTE], "14 days"),
    (PLACES, in_house(resume_root="/data/resume"), [ASKS], "whether it outlives them"),
    (PLACES, in_house(traces_root="/data/traces", session_root="/data/session"), [], ""),
    (PLACES, in_house(read=lies("resume_root")), [BLOCKS], "no lifecycle rule of its bucket"),
    (PLACES, in_house(read=lies("resume_root", expires_days=30)), [], ""),
    (PLACES, in_house(read=lies("resume_root", expires_days=3)), [ASKS], "after 3 days (measured)"),
    (PLACES, in_house(read=lies("resume_root", is_told=False)), [], ""),
    (PLACES, in_house(read=lies("resume_root", has_bucket=False)), [BLOCKS], "no such bucket"),
    (PLACES, in_house(read=hidden("resume_root")), [UNKNOWN], "cannot be verified"),
    (PLACES, in_house(read=hidden("traces_root")), [NOTE], "cannot be verified"),
    (PLACES, in_house(resume_root=f"{PREFIX}/iris/resume"), [BLOCKS], "durable"),
    (PLACES, in_house(session_root=f"{PREFIX}/iris/s", rules=LaunchRules()), [BLOCKS], "session_root"),
    (PLACES, in_house(traces_root=f"{MINE}/traces"), [ASKS], "traces_root"),
    (PLACES, in_house(traces_root=f"{MINE}/%Y%m%d"), [BLOCKS, ASKS], "not pinned"),
    (PLACES, in_house(checkpoint_roots=(f"{MINE}/{{step}}",)), [BLOCKS], "checkpoint_roots.0"),
    (PLACES, in_house(spill=f"{PREFIX}/spill"), [BLOCKS], "not on the node"),
    (PLACES, in_house(spill="spill"), [BLOCKS], "relative"),
    (PLACES, in_house(spill="/mnt/shared/spill"), [ASKS], "may be shared"),
    (PLACES, in_house(spill="/tmp"), [], ""),
    (PLACES, in_house(export_root=f"{PREFIX}/users/bob/hf"), [BLOCKS], "users/NAME/"),
    (PLACES, in_house(export_root=f"{PREFIX}/users/ada/exports/hero"), [ASKS], "not below output_root"),
    (PLACES, in_house(export_root="gs://b/tmp/hf", rules=LaunchRules()), [BLOCKS], "temporary path"),
    (PLACES, in_house(read=lies("export_root", expires_days=7)), [BLOCKS], "after 7 days (measured)"),
    (
        PLACES,
        in_house(command=f"iris job run --no-wait --job-name x -- train --ray_spill_dir {PREFIX}/iris/spill"),
        [BLOCKS],
        "--ray_spill_dir",
    ),
    (PLACES, in_house(environment={"RENDEZVOUS_DIR": f"{PREFIX}/iris/rdzv"}), [BLOCKS], "RENDEZVOUS_DIR"),
    (PLACES, in_house(environment={"OTHER": f"{PREFIX}/iris/x"}), [], ""),
    # What is kept, and its size.
    (RETENTION, in_house(retention={"resume": 2}), [], ""),
    (RETENTION, in_house(retention={"resume": 3}), [ASKS], "30.0 TiB (stated)"),
    (RETENTION, in_house(retention={"resume": 3}, is_first=False), [NOTE], "more than the 2"),
    (RETENTION, toy(retention={"resume": 3}), [ASKS], "more than the 2"),
    (RETENTION, toy(retention={"resume": 0}), [BLOCKS], "nothing to resume from"),
    (RETENTION, in_house(export_root=None), [ASKS], "canonical export"),
    (RETENTION, in_house(export_root=None, is_first=False), [NOTE], "canonical export"),
    (RETENTION, in_house(export_root=None, kind="diagnostic"), [], ""),
    (RETENTION, in_house(retention={"milestones": (5000, 20_000)}), [BLOCKS], "step 20000, which the run of 10000"),
    (RETENTION, in_house(retention={"milestones": range(100, 1300, 100)}), [ASKS], "sparse ones are meant"),
    (BYTES, in_house(checkpoint_bytes=None), [ASKS], "is not known"),
    (BYTES, in_house(checkpoint_bytes=None, params=1e9), [], ""),
    (BYTES, in_house(checkpoint_bytes=None, read={"checkpoint_bytes": unknown()}), [UNKNOWN], "not known"),
    (BYTES, in_house(read={"checkpoint_bytes": unknown(detail="denied")}), [NOTE], "by the contract it is 10.0 TiB"),
    (BYTES, in_house(read={"checkpoint_bytes": Known(value=2**40, at=AT)}), [NOTE], "1.0 TiB (measured)"),
    (BYTES, in_house(read={"checkpoint_bytes": Known(value=11 * 2**40, at=AT)}), [], ""),
    # The start.
    (START, in_house(**FROM, read=starts()), [BLOCKS], "does not exist (measured)"),
    (START, in_house(**FROM, read=starts(step(9000, fault="metadata.json is missing"))), [BLOCKS], "is missing"),
    (START, in_house(**FROM, read=starts(step(9000), step(10_000))), [BLOCKS], "step-10000 is complete beside it"),
    (START, in_house(initialize_from=f"{OLDER}/step-9000/", read=starts(step(9000))), [], ""),
    (
        START,
        in_house(**FROM, basis={"initialize_from": "stated"}, read=starts(step(9000), step(10_000))),
        [NOTE],
        "step-10000",
    ),
    (START, in_house(**FROM, read=starts(step(9000), step(10_000), trial_of="older")), [NOTE], "step-10000"),
    (START, in_house(**FROM, read=starts(step(9000), step(10_000, fault="cut"))), [NOTE], "newer and not complete"),
    (START, in_house(**FROM, read=starts(step(9000, is_complete=True, fault="not clean"))), [ASKS], "not clean"),
    (START, in_house(**FROM, read=starts(step(9000, is_temporary=True))), [ASKS], "is temporary (measured)"),
    (START, in_house(**FROM, read={"others": KNOWN_RUN, "start": unknown(detail="denied")}), [UNKNOWN], "denied"),
    (START, in_house(**FROM, read={"start": Known(value=(step(9000),), at=AT)}), [ASKS], "cannot be told"),
    (
        START,
        in_house(**FROM, rules=LaunchRules(), read={"start": Known(value=(step(9000),), at=AT)}),
        [NOTE],
        "cannot be told",
    ),
    (
        START,
        in_house(initialize_from=f"{MINE}/checkpoints/step-9", read={"start": Known(value=(step(9),), at=AT)}),
        [ASKS],
        "this run's own places",
    ),
    (START, in_house(initialize_from=OLDER, read=starts(step(9000))), [BLOCKS], "the newest complete one in it is"),
    (START, in_house(initialize_from=f"{OLDER}/hf", read=starts()), [BLOCKS], "an export, which holds no state"),
    (START, in_house(initialize_from=f"{OLDER}/v1.2", read=starts()), [BLOCKS], "no numeric step"),
    (START, in_house(initialize_from=f"{OLDER}/step-latest", read=starts()), [BLOCKS, BLOCKS], "not pinned"),
    (START, in_house(initialize_from="meta-llama/Llama-3.1-8B"), [ASKS], "a model of a hub"),
    (
        START,
        in_house(
            **FROM,
            read=starts(step(9000)),
            command=f"iris job run --no-wait --job-name x -- train --initialize_from {OLDER}/step-8000",
        ),
        [BLOCKS],
        "the command starts from",
    ),
    # The data.
    (DATASETS, in_house(datasets=(f"{PREFIX}/iris/data-ab12cd9e",)), [BLOCKS], "belongs to the cluster"),
    (DATASETS, in_house(datasets=("s3://b/iris/data",), rules=LaunchRules()), [BLOCKS], "datasets.0"),
    (DATASETS, in_house(datasets=(f"{PREFIX}/raw/dclm",)), [ASKS], "may change while it is read"),
    (DATASETS, in_house(datasets=(f"{PREFIX}/users/ada/dclm",)), [], ""),
    (DATASETS, in_house(datasets=(f"{PREFIX}/users/bob/dclm",)), [ASKS], "it is bob's"),
    (DATASETS, in_house(datasets=(f"{DATA}/latest",)), [BLOCKS], "the newest of something"),
    (DATASETS, in_house(datasets=("dclm-baseline",)), [], ""),
    (DATASETS, in_house(datasets=()), [NOTE], "not stated"),
    (DATASETS, in_house(datasets=("hf://datasets/a/b@main",)), [NOTE], "not looked at"),
    (DATASETS, in_house(read=lies("datasets.0", exists=False)), [BLOCKS], "does not exist (measured)"),
    (DATASETS, in_house(read=lies("datasets.0", exists=False, has_bucket=False)), [BLOCKS], "in no bucket"),
    (DATASETS, in_house(read=hidden("datasets.0")), [UNKNOWN], "cannot be verified"),
    (DATASETS, in_house(read=lies("datasets.0", expires_days=7)), [NOTE], "7 days"),
    (DATASETS, toy(datasets=("/data/c4",)), [], ""),
    # The regions.
    (REGIONS, in_house(read=lies("resume_root", region="us-central2")), [BLOCKS], "us-central2 (measured)"),
    (REGIONS, in_house(read=lies("resume_root", region="US")), [], ""),
    (REGIONS, in_house(read=lies("datasets.0", region="europe-west4")), [ASKS], "datasets.0"),
    (REGIONS, in_house(datasets=("gs://marin-eu-west4/data-ab12cd9e",)), [ASKS], "eu-west4 (inferred)"),
    (REGIONS, in_house(read=lies("output_root", region="us-west4"), is_first=False), [NOTE], "output_root"),
    (
        REGIONS,
        preparation(
            launch_contract(
                command="iris job run --zone us-east5-a,us-central1-a -- train", output_root="gs://marin-us-east5/x"
            )
        ),
        [NOTE],
        "may also get machines in us-central1",
    ),
    (
        REGIONS,
        in_house(command="iris job run -- train", datasets=("s3://data-us-west-2/c4-ab12cd9e",)),
        [ASKS],
        "us-west-2",
    ),
    (REGIONS, in_house(command="iris job run -- train"), [], ""),
]  # fmt: skip


@pytest.mark.parametrize(("item", "prepared", "expected", "named"), CASES)
def test_each_item_weighs_what_it_finds_and_names_it(
    item: Item, prepared: Preparation, expected: list[Weight], named: str
) -> None:
    found = report(item, prepared)

    assert [each.weight for each in found.findings] == expected
    assert named in " ".join(each.message for each in found.findings)
    assert all(each.fix for each in found.findings)


def test_a_house_on_a_shared_file_system_has_the_same_rules() -> None:
    rules = LaunchRules(prefix="/lustre/hero")
    mine = {"output_root": "/lustre/hero/users/ada/x", "export_root": None, "traces_root": None, "session_root": None}

    def judged(item: Item, **fields: Any) -> list[Weight]:
        return weights(item, in_house(rules=rules, **(mine | {"datasets": ()} | fields)))

    assert judged(OUTPUT) == []
    assert judged(OUTPUT, output_root="/lustre/hero/x") == [BLOCKS]
    assert judged(OUTPUT, output_root="/lustre/hero/iris/x") == [BLOCKS, BLOCKS]
    assert judged(PLACES, resume_root="/lustre/hero/tmp/ttl=30d/x") == []
    assert judged(PLACES, resume_root="/lustre/hero/tmp/ttl=7d/x") == [ASKS]
    assert judged(PLACES, resume_root="/lustre/hero/users/ada/x/resume") == [BLOCKS]


def test_a_run_that_has_states_of_its_own_is_not_held_up_by_where_it_started() -> None:
    prepared = in_house(**FROM, is_first=False, read=starts())
    own = prepared.seen.model_copy(update={"checkpoints": Known(value=(step(20, root=MINE),), at=AT)})
    none = prepared.seen.model_copy(update={"checkpoints": Known(value=(), at=AT)})

    assert weights(START, prepared.model_copy(update={"seen": own})) == []
    assert weights(START, prepared.model_copy(update={"seen": none})) == [BLOCKS]


def test_the_size_is_measured_or_stated_or_estimated_and_says_so() -> None:
    measured = in_house(read={"checkpoint_bytes": Known(value=9 * 2**40, at=AT)}, retention={"resume": 2})
    estimated = in_house(checkpoint_bytes=None, params=2**30)

    assert value(BYTES, measured, "projected_resume_bytes") == "18.0 TiB (2 x 9.0 TiB) (measured)"
    assert value(BYTES, in_house(), "checkpoint_bytes") == "10.0 TiB (by the contract) (stated)"
    assert "(4 + 4 + 4) bytes" in value(BYTES, estimated, "checkpoint_bytes")
    assert value(BYTES, estimated, "projected_resume_bytes") == "12.0 GiB (1 x 12.0 GiB) (inferred)"
    assert value(RETENTION, in_house(), "retention.resume") == "1 (inferred)"
    assert value(RETENTION, in_house(retention={"resume": 1}), "retention.resume") == "1 (stated)"


def test_the_start_is_printed_with_its_step_run_and_metadata() -> None:
    prepared = in_house(**FROM, read=starts(step(9000)))

    assert value(START, prepared, "initialize_from.step") == "9000 (inferred)"
    assert value(START, prepared, "initialize_from.run") == "hero-older (inferred)"
    assert value(START, prepared, "initialize_from.metadata") == "present, and names that step (measured)"


def test_a_lifetime_is_printed_with_how_it_is_known() -> None:
    told = in_house(read=lies("resume_root", expires_days=30))

    assert value(PLACES, told, "resume_root") == f"{RESUME}, deleted after 30 days (measured) (stated)"
    assert value(PLACES, in_house(), "resume_root") == f"{RESUME}, deleted after 30 days (inferred) (stated)"


def test_credentials_in_an_address_are_never_said_again() -> None:
    address = "s3://AKIA:hunter2secret@bucket/{x}"

    assert "hunter2secret" not in message(OUTPUT, in_house(output_root=address, rules=LaunchRules()))
    for item in ITEMS:
        found = report(
            item, in_house(output_root=address, resume_root=address, initialize_from=address, datasets=(address,))
        )
        assert "hunter2secret" not in found.model_dump_json()


@pytest.mark.parametrize(
    ("address", "mark"),
    [
        ("gs://b/users/ada/hero-20261129", ""),
        ("gs://b/tmp/ttl=30d/x", ""),
        ("gs://b/a%20b/c%2Fd", ""),
        ("gs://b/latest-news/x", ""),
        ("gs://b/hero-latest", "latest"),
        ("gs://b/${USER}/x", "a variable"),
        ("gs://b/$(date +%F)/x", "a variable"),
        ("gs://b/<run>/x", "a gap"),
        ("gs://b/a/../c", "a step up"),
        ("gs://b/step-*", "a pattern"),
        ("%(root)s/x", "a date or a format"),
    ],
)
def test_an_address_is_pinned_or_says_what_keeps_it_open(address: str, mark: str) -> None:
    assert mark in open_mark(address)
    assert bool(open_mark(address)) is bool(mark)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gs://b/tokenized/dclm-ab12cd9e", True),
        ("gs://b/tokenized/dclm-ab12cd9e/train", True),
        ("gs://b/data/v2", True),
        ("gs://b/data-v1.0.2", True),
        ("gs://b/data/2026-11-29", True),
        ("gs://b/raw/dclm", False),
        ("gs://bucket-ab12cd9e/raw/dclm", False),
    ],
)
def test_a_version_is_seen_in_a_name_but_not_in_a_buckets(name: str, expected: bool) -> None:
    assert is_versioned(name) is expected


WORD = st.text("abcxyz0123456789-_=", min_size=1, max_size=8)
PATHS = st.lists(WORD, min_size=0, max_size=4).map("/".join)


@given(path=PATHS, slash=st.sampled_from(["", "/", "//"]), prefix=st.sampled_from(["", "gs://b", "gs://b/"]))
def test_what_lies_below_the_clusters_prefix_is_told_by_whole_parts(path: str, slash: str, prefix: str) -> None:
    rules = LaunchRules(prefix=prefix)

    assert cluster_prefix(f"gs://b/iris/{path}{slash}", rules) == "iris/"
    assert cluster_prefix(f"gs://b/iris{slash}", rules) == "iris/"
    assert cluster_prefix(f"gs://b/users/iris/{path}", rules) == ""
    assert cluster_prefix(f"gs://b/iris-{path}", rules) == ""
    assert cluster_prefix(f"/iris/{path}", rules) == ""


@given(name=WORD, path=PATHS.filter(bool))
def test_only_the_callers_own_prefix_is_own(name: str, path: str) -> None:
    contract = launch_contract()  # a job of me, and ada is its DRI

    assert is_own(f"{PREFIX}/users/{name}/{path}", contract, HOUSE) is (name in {"me", "ada"})
    assert is_own(f"{PREFIX}/users/ada/{path}", contract, HOUSE)
    assert not is_own(f"{PREFIX}/x/users/ada/{path}", contract, HOUSE)
    assert not is_own(f"{PREFIX}2/users/ada/{path}", contract, HOUSE)


@given(number=st.integers(0, 10**18 - 1), slash=st.sampled_from(["", "/", "//"]), zeros=st.integers(0, 3))
def test_the_step_is_the_number_of_the_last_part(number: int, slash: str, zeros: int) -> None:
    digits = f"{'0' * zeros}{number}"[-18:]

    assert step_in(f"gs://b/step-7/step-{digits}{slash}") == int(digits)
    assert step_in(f"step-{digits}{slash}") == int(digits)
    assert step_in(f"gs://b/step-{digits}{slash}x") is None or not slash
    assert step_in(f"gs://b/step-{digits}/hf") is None


@given(days=st.integers(0, 99_999))
def test_a_ttl_is_a_whole_part_of_a_path(days: int) -> None:
    assert ttl_days(f"gs://b/tmp/ttl={days}d/x") == days
    assert ttl_days(f"gs://b/tmp/ttl={days}d") == days
    assert ttl_days(f"gs://b/tmp/xttl={days}d/x") is None


@pytest.mark.parametrize(
    ("address", "holds"),
    [
        (f"{PREFIX}//users/ada/hero", "an empty part"),
        (f"{PREFIX}/users/ada/./hero", "a dot as a part"),
        (f"{PREFIX}/users/ada/hero\u200b", "a character that is not seen"),
        (f"{PREFIX}/users/ada/he\nro", "a character that is not seen"),
        (f"{PREFIX}/users/ada/hero ", "a blank at an end"),
    ],
)
def test_an_address_that_only_looks_like_the_caller_s_own_is_refused(address: str, holds: str) -> None:
    assert weights(OUTPUT, in_house(output_root=address, export_root=None)) == [BLOCKS]
    assert open_mark(address).startswith(holds)
    assert not open_mark("/scratch//ada/./my runs/hero"), "on a disk that is one place"
