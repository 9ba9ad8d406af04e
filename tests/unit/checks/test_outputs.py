"""output.path: where the launched configuration writes, against where the contract promises it."""

from typing import Any

import pytest

from bot.model.contract import Contract
from bot.model.reading import Gap
from bot.model.verdict import Fail, NotApplicable, Pass, Severity, UnknownVerdict, Verdict
from checks.outputs import OUTPUT
from tests.fakes.launched import config, with_config
from tests.fakes.snapshots import RUN, contract, snapshot, unknown
from tests.unit.checks.story import finding, verdict

ROOT = "gs://bucket/users/ada/hero-12d8b6f0"


def judged(tree: dict[str, Any], **fields: Any) -> Verdict:
    promised = contract(**fields)
    return verdict(OUTPUT, with_config(snapshot(), config(tree, promised=promised)), promised=promised)


def saving(base: object, *, appends: bool | None = None) -> dict[str, Any]:
    flag = {} if appends is None else {"append_run_id_to_base_path": appends}
    return {"trainer": {"checkpointer": {"base_path": base, **flag}}}


def local(**fields: Any) -> dict[str, Any]:
    return {"orchestrator": {"kind": "local", "directory": "jobs"}, "checkout": "/home/ada/hero", **fields}


@pytest.mark.parametrize(
    ("tree", "fields"),
    [
        ({"output_path": ROOT}, {}),
        ({"output_path": f"{ROOT}/"}, {}),
        ({"output_path": "gcs://bucket/users/ada/hero-12d8b6f0"}, {}),
        ({"output_path": f"{ROOT}/deeper"}, {}),
        ({"output_path": "gs://bucket/users/ada"}, {}),  # the run's id is appended to it
        (saving(f"{ROOT}/checkpoints", appends=False), {}),
        (saving("gs://bucket/ckpt", appends=True), {"checkpoint_roots": [f"gs://bucket/ckpt/{RUN}"]}),
        (saving("gs://bucket/ckpt"), {"checkpoint_roots": [f"gs://bucket/ckpt/{RUN}"]}),
        ({"output_path": "out"}, local(output_root="out")),
        ({"output_path": "./out/../out"}, local(output_root="/home/ada/hero/out/")),
        ({"output_path": "file:///home/ada/hero/out"}, local(output_root="out")),
    ],
)
def test_one_place_in_another_spelling_is_the_same_place(tree: dict[str, Any], fields: dict[str, Any]) -> None:
    assert judged(tree, **fields) == Pass()


@pytest.mark.parametrize(
    ("tree", "fields"),
    [
        ({"output_path": "gs://bucket/users/bob/hero-12d8b6f0"}, {}),
        ({"output_path": "gs://bucket/users/ada/hero-12d8b6f0-v2"}, {}),
        ({"output_path": "gs://bucket/users/Ada/hero-12d8b6f0"}, {}),
        ({"output_path": "gs://bucket//users/ada/hero-12d8b6f0"}, {}),
        ({"output_path": "s3://bucket/users/ada/hero-12d8b6f0"}, {}),
        (saving("gs://other/checkpoints", appends=False), {}),
        (saving("checkpoints/", appends=True), {}),  # Levanter's default: the host's own disk
        ({"output_path": "other"}, local(output_root="out")),
    ],
)
def test_another_place_wakes_the_dri(tree: dict[str, Any], fields: dict[str, Any]) -> None:
    found = judged(tree, **fields)

    assert isinstance(found, Fail)
    assert found.finding.severity is Severity.CRITICAL
    assert not found.finding.is_recoverable


@pytest.mark.parametrize(
    "tree",
    [
        saving(f"{ROOT}/checkpoints", appends=True),  # …/checkpoints/RUN is no root
        saving(f"{ROOT}/saved", appends=False),
        {"trainer": {"checkpointer": {"temporary_base_path": "gs://bucket/tmp/ttl=7d"}}},
    ],
)
def test_checkpoints_where_hero_does_not_look_are_a_warning(tree: dict[str, Any]) -> None:
    found = judged(tree)

    assert isinstance(found, Fail)
    assert found.finding.severity is Severity.WARNING
    assert "Hero does not look for them" in found.finding.summary


def test_a_path_on_another_machine_may_be_a_mount_and_wakes_nobody() -> None:
    found = judged({"output_path": "/mnt/other"}, output_root="/mnt/out")

    assert isinstance(found, Fail)
    assert found.finding.severity is Severity.WARNING


def test_the_finding_names_key_path_promise_and_origin() -> None:
    promised = contract()
    seen = with_config(snapshot(), config({"output_path": "gs://bucket/users/bob/x"}))

    found = finding(OUTPUT, seen, promised=promised)

    assert found.summary == (
        "wrong output path: output goes to gs://bucket/users/bob/x, and the contract promises another place"
    )
    assert found.evidence == (
        f"output_path: gs://bucket/users/bob/x; output_root is {ROOT}",
        f"read from {ROOT}/config.yaml",
    )


@pytest.mark.parametrize(
    ("tree", "kind"),
    [
        ({"output_path": "${oc.env:HOME}/out"}, UnknownVerdict),
        ({"output_path": "/mnt/bucket/out"}, NotApplicable),
        ({"output_path": None}, NotApplicable),
        ({"output_path": 7}, NotApplicable),
        ({"model": {}}, NotApplicable),
    ],
)
def test_what_cannot_be_compared_is_no_pass(tree: dict[str, Any], kind: type[Verdict]) -> None:
    assert isinstance(judged(tree), kind)


def test_what_is_not_read_is_no_pass() -> None:
    def look(reading: Any, promised: Contract | None = None) -> Verdict:
        return verdict(OUTPUT, with_config(snapshot(), reading), promised=promised)

    assert isinstance(look(unknown()), UnknownVerdict)
    assert isinstance(look(unknown(Gap.NOT_YET)), UnknownVerdict)
    assert isinstance(look(unknown(Gap.NOT_CONFIGURED)), NotApplicable)
    assert isinstance(verdict(OUTPUT, with_config(snapshot(jobs=unknown()), config())), UnknownVerdict)
