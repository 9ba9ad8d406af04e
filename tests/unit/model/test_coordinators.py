"""Which names are further coordinators of a run, and which merely begin alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.coordinators import Sought
from bot.model.value import JobId, RunId

COORD = JobId("/me/hero-1-coord")


def sought(current: str = COORD, *past: str, run_id: str = "hero-1") -> Sought:
    return Sought(run_id=RunId(run_id), current=JobId(current), past=tuple(JobId(each) for each in past))


@pytest.mark.parametrize(
    "name",
    [
        "hero-1",
        "hero-1-coord-2",
        "hero-1-coord-r2",
        "hero-1-coord-retry3",
        "hero-1-r0",
        "hero-1-retry",
        "hero-1-retry-2",
    ],
)
def test_the_run_id_with_a_coordinators_or_a_retrys_ending_is_another_of_the_run(name: str) -> None:
    assert sought().has(f"/me/{name}")


@pytest.mark.parametrize(
    "job_id",
    [
        COORD,
        "/me/hero-12",
        "/me/hero-12-coord",
        "/me/hero-1-2",
        "/me/hero",
        "/me/hero-1-rack",
        "/me/hero-1-coordinated",
        "/me/hero-1-coord-debug",
        "/me/hero-1-coord-2/train",
        "/me/hero-1-retry-",
        "/you/hero-1-coord-2",
        "/me/my-hero-1-coord",
    ],
)
def test_a_name_that_merely_begins_alike_is_none_of_the_run(job_id: str) -> None:
    assert not sought().has(job_id)


def test_a_job_that_is_not_called_after_its_run_is_looked_for_by_its_own_name_too() -> None:
    other = sought("/me/big-coord-3", run_id="hero-12d8b6f0")

    assert other.prefixes == ("/me/hero-12d8b6f0", "/me/big")
    assert other.has("/me/big-coord")
    assert other.has("/me/big-coord-4")
    assert other.has("/me/hero-12d8b6f0-coord")
    assert not other.has("/me/big")
    assert not other.has("/me/big-r2")


def test_jobs_of_past_launches_count_whatever_they_are_called_and_are_asked_for_by_id() -> None:
    known = sought(COORD, "/ada/experiment", "/me/hero-1-coord-0", COORD, "/ada/experiment")

    assert known.has("/ada/experiment")
    assert known.prefixes == ("/me/hero-1",)
    assert known.others == ("/ada/experiment",)


@given(
    run_id=st.from_regex(r"[a-z][a-z0-9-]{0,8}(-coord)?(-[0-9])?", fullmatch=True),
    name=st.from_regex(r"[a-z][a-z0-9-]{0,8}(-coord)?(-[0-9])?", fullmatch=True),
    ending=st.sampled_from(["", "-coord", "-coord-7", "-coord-r7", "-r7", "-retry", "-retry-7", "-7", "x"]),
    is_by_run=st.booleans(),
)
def test_every_name_that_counts_begins_with_a_prefix_that_is_asked_for(
    run_id: str, name: str, ending: str, *, is_by_run: bool
) -> None:
    asked = sought(f"/me/{name}", run_id=run_id)
    job_id = f"/me/{run_id if is_by_run else name}{ending}"

    assert not asked.has(job_id) or job_id.startswith(asked.prefixes)
