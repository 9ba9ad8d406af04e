"""What is said of an address that cannot be read here for want of a package."""

import pytest

from bot.model.contract import Contract
from bot.model.preflight import Weight
from bot.model.reading import Gap, Unknown, install_of
from bot.sources.gaps import refused_by_store, unknown_of
from checks.preflight.datasets import DATASETS
from tests.fakes.clock import START
from tests.fakes.preparations import launch_contract, preparation

MISSING = ImportError("Please install gcsfs to access Google Storage")


@pytest.mark.parametrize(
    ("address", "fix"),
    [
        ("gs://bucket/run", "install it: pip install 'hero-bot[gcs]'"),
        ("s3://bucket/run", "install it: pip install 'hero-bot[s3]'"),
        ("abfs://bucket/run", "install it: the package for fsspec that reads abfs://"),
    ],
)
def test_a_store_whose_package_is_missing_names_the_extra_that_brings_it(address: str, fix: str) -> None:
    detail = refused_by_store("checkpoints", address, MISSING).detail

    assert install_of(detail) == (f"{address} cannot be read here: its package is missing", fix)


def test_the_checklist_says_to_install_it_and_not_to_give_a_permission() -> None:
    told: Unknown = unknown_of(refused_by_store("storage", "gs://bucket/data", MISSING), START)
    promised: Contract = launch_contract(datasets=("gs://bucket/data",))

    findings = DATASETS.judge(preparation(promised, locations={"datasets.0": told})).findings

    (finding,) = (each for each in findings if each.weight is Weight.UNKNOWN)
    assert finding.message.endswith("cannot be verified: gs://bucket/data cannot be read here: its package is missing")
    assert finding.fix == "install it: pip install 'hero-bot[gcs]'; nothing is launched on a guess"


def test_what_has_no_fix_of_its_own_keeps_its_whole_detail() -> None:
    assert install_of("no answer in 10s; asked twice") == ("no answer in 10s; asked twice", "")


@pytest.mark.parametrize(
    ("reason", "fix"),
    [
        (Gap.TIMEOUT, "see that it can be reached from here, or correct the address"),
        (Gap.UNREACHABLE, "see that it can be reached from here, or correct the address"),
        (Gap.REFUSED, "let Hero's account list it, or correct the address"),
    ],
)
def test_no_answer_is_not_taken_for_a_missing_permission(reason: Gap, fix: str) -> None:
    told = Unknown(reason=reason, detail="no answer in 20 s", at=START)
    promised = launch_contract(datasets=("gs://bucket/data",))

    findings = DATASETS.judge(preparation(promised, locations={"datasets.0": told})).findings

    assert [each.fix for each in findings if each.weight is Weight.UNKNOWN] == [
        f"{fix}; nothing is launched on a guess"
    ]
