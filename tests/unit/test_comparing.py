"""Whose rows are whose: a job's own are told from everybody else's, whoever keeps them."""

from datetime import datetime, timedelta

import numpy as np
import pytest

from bot.comparing import of_jobs, own_executions
from bot.model.job import Job
from bot.model.reading import Known, Reading
from bot.model.series import Figure, History, RunRows
from tests.fakes.clock import START
from tests.fakes.snapshots import AT, attempt, job, task, unknown

_BEFORE, _AFTER = START - timedelta(hours=1), START + timedelta(minutes=5)


def jobs() -> Reading[tuple[Job, ...]]:
    """Submitted at START, two attempts."""
    tried = (attempt(0, uid="one"), attempt(1, uid="two"))
    return Known(value=(job(tasks=(task(attempts=tried),)),), at=AT)


def rows(*executions: tuple[str, datetime | None]) -> RunRows:
    """Execution n logged step n."""
    steps = np.arange(len(executions))
    figure = Figure(steps, steps.copy(), steps.astype(np.float64))
    names, began = zip(*executions, strict=True)
    return RunRows(History({"loss": figure}), names, len(executions) - 1, began_at=began)


@pytest.mark.parametrize(
    ("name", "began", "is_own"),
    [
        ("iris:one", _BEFORE, True),
        ("iris:two", _AFTER, True),
        ("iris:rival", _AFTER, False),
        ("", _AFTER, False),
        ("attempt 3", _AFTER, True),
        ("attempt 3", _BEFORE, False),
        ("attempt 3", None, False),
    ],
)
def test_an_execution_is_the_jobs_by_its_uid_or_where_a_file_names_nobody_by_when_it_began(
    name: str, began: datetime | None, is_own: bool
) -> None:
    found = rows(("iris:one", _BEFORE), (name, began), ("iris:other", _AFTER))

    own = own_executions(found, jobs())
    kept = of_jobs(found, jobs())

    assert isinstance(kept, RunRows)
    assert own == frozenset({0, 1} if is_own else {0})
    assert kept.history.figures["loss"].steps.tolist() == ([0, 1] if is_own else [0])
    assert kept.newest_step == (1 if is_own else 0)


def test_while_the_orchestrator_does_not_say_nobody_knows_and_no_row_is_the_childs() -> None:
    found = rows(("iris:one", _BEFORE), ("iris:rival", _AFTER))
    nameless: Reading[tuple[Job, ...]] = Known(value=(job(tasks=()),), at=AT)
    unread: Reading[tuple[Job, ...]] = Known(value=(job(tasks=unknown()),), at=AT)

    for unseen, why in ((unknown(), unknown().detail), (nameless, "every attempt"), (unread, unknown().detail)):
        assert own_executions(found, unseen) is None
        said = of_jobs(found, unseen)
        assert isinstance(said, str)
        assert said.startswith("which rows are the child's is not known: ")
        assert why in said
