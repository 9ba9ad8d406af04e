"""When the owner's run-history command is due: once for the first address, once for each other launch, then never."""

from datetime import timedelta
from typing import Literal

from bot.model.bookkeeping import HistoryJob, next_history_job
from bot.model.chronicle import Happening, HistoryWritten, Launched, MilestoneReached, StateImported, TrackerSeen
from bot.model.value import JobId, RunId
from tests.fakes.chronicles import entries_of
from tests.fakes.clock import START

RUN = RunId("hero-12d8b6f0")


def launched(number: int) -> Launched:
    return Launched(instance=number, job_id=JobId(f"/ann/job-{number}"), is_by_hero=False, facts=())


def seen(id_: str = "w1") -> TrackerSeen:
    return TrackerSeen(url=f"https://wandb.ai/a/h/runs/{id_}", id=id_, name="hero")


def written(command: Literal["new", "add"], about: int, *, is_done: bool = True) -> HistoryWritten:
    return HistoryWritten(command=command, about=about, is_done=is_done, detail="")


def due(*happened: Happening, makes_new: bool = True, adds: bool = True, hours: float = 1) -> HistoryJob | None:
    at = START + timedelta(hours=hours)
    return next_history_job(entries_of(RUN, happened), at, makes_new=makes_new, adds=adds)


def brief(job: HistoryJob | None) -> tuple[str, int, str] | None:
    return (job.command, job.about, job.job_id) if job else None


def test_nothing_is_due_before_an_address_was_seen() -> None:
    assert due() is None
    assert due(launched(0), MilestoneReached(step=1), launched(1)) is None


def test_the_file_is_made_once_and_each_further_launch_is_added_once() -> None:
    life = (launched(0), seen(), launched(1), launched(2))
    made = written("new", 2)

    assert brief(due(*life)) == ("new", 2, "/ann/job-0")
    assert brief(due(*life, made)) == ("add", 3, "/ann/job-1")
    assert brief(due(*life, made, written("add", 3))) == ("add", 4, "/ann/job-2")
    assert due(*life, made, written("add", 3), written("add", 4)) is None
    assert due(*life, made, written("add", 3), written("add", 4), seen("w2")) is None, "another address is no new run"


def test_launches_from_before_the_first_address_are_added_too() -> None:
    life = (launched(0), launched(1), seen(), written("new", 3))

    assert brief(due(*life)) == ("add", 1, "/ann/job-0")
    assert due(*life, written("add", 1)) is None


def test_one_command_alone_may_be_set_up() -> None:
    life = (launched(0), seen(), launched(1))

    assert brief(due(*life, makes_new=False)) == ("add", 3, "/ann/job-1")
    assert due(*life, written("new", 2), adds=False) is None


def test_a_run_that_came_with_its_history_file_needs_no_new_one() -> None:
    imported = StateImported(job_id=JobId("/ann/job-0"), restart_count=0, history_file="history/runs/x.md")
    life = (imported, launched(0), seen(), launched(1))

    assert brief(due(*life)) == ("add", 2, "/ann/job-0")


def test_a_failure_is_tried_again_after_a_while_and_given_up_after_the_third() -> None:
    failed = written("new", 2, is_done=False)
    life = (launched(0), seen(), failed)

    assert due(*life, hours=2.5 / 60) is None, "a minute has not passed"
    again = due(*life, hours=3.5 / 60)
    last = due(*life, failed, hours=19 / 60)

    assert again is not None
    assert not again.is_last_try
    assert last is not None
    assert last.is_last_try
    assert due(*life, failed, hours=17 / 60) is None
    assert due(*life, failed, failed) is None
    assert due(*life, failed, failed, launched(1)) is None, "nothing is added to a file that could not be made"


def test_an_addition_that_was_given_up_does_not_keep_the_next_from_its_turn() -> None:
    failed = written("add", 3, is_done=False)
    life = (launched(0), seen(), launched(1), launched(2), written("new", 2), failed, failed, failed)

    assert brief(due(*life)) == ("add", 4, "/ann/job-2")
