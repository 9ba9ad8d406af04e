"""Of the two runs of a trial one trains: what the launch checklist says of the other one."""

import pytest

from bot.model.preflight import PairedRun, Weight
from bot.model.reading import Known
from bot.model.value import JobId, RunId
from checks.preflight.paired import PAIRED
from tests.fakes.preparations import preparation, report
from tests.fakes.snapshots import AT, unknown

OTHER = RunId("hero-old")


def paired(*live: str) -> PairedRun:
    return PairedRun(run_id=OTHER, live=Known(value=tuple(map(JobId, live)), at=AT))


@pytest.mark.parametrize(
    ("others", "weight", "said"),
    [
        ((), [], ""),
        ((paired(),), [], ""),
        ((paired("/me/old"),), [Weight.BLOCKS], "hero-old, the other run of its trial, lives: /me/old (measured)"),
        ((paired(), paired("/me/old")), [Weight.BLOCKS], "/me/old"),
        ((PairedRun(run_id=OTHER, live=unknown()),), [Weight.UNKNOWN], unknown().detail),
    ],
)
def test_a_launch_beside_the_other_run_of_a_trial_is_refused(
    others: tuple[PairedRun, ...], weight: list[Weight], said: str
) -> None:
    found = report(PAIRED, preparation(paired=others, is_first=False)).findings

    assert [each.weight for each in found] == weight
    assert all(said in each.message for each in found)
