"""What it costs to judge one snapshot of a run that is ten times as old, relative to a young one."""

import time
from collections.abc import Mapping
from datetime import timedelta

from benchmarks.ratios import compare
from bot.model.snapshot import Snapshot
from bot.model.value import CheckId
from checks import CHECKS
from checks.check import judge_all
from tests.fakes.snapshots import AT, checkpoint, contract, job, rows, snapshot

_YOUNG_LOOKS = 100
_ROWS_A_LOOK = 90  # one every ten seconds, looked at every quarter of an hour
_CADENCE = timedelta(minutes=15)
_REPEATS = 100


def look(number: int) -> Snapshot:
    """Return the snapshot of the n-th check of a healthy run: new rows, a newer checkpoint, a log of some length."""
    at = AT + number * _CADENCE
    first = number * _ROWS_A_LOOK
    last = first + _ROWS_A_LOOK - 1
    return snapshot(
        at,
        jobs=job(),
        log="\n".join(f"step {step} loss 2.0" for step in range(first, last + 1)),
        metrics=rows(first, last, until=at),
        checkpoints=[checkpoint(first, saved_at=at - timedelta(minutes=5))],
    )


def grown(looks: int) -> Mapping[CheckId, str]:
    """Return what the checks remember after so many looks."""
    memories: Mapping[CheckId, str] = {}
    for number in range(looks):
        memories = judge_all(CHECKS, look(number), promised, memories).memories
    return memories


def cost(seen: Snapshot, memories: Mapping[CheckId, str]) -> float:
    """Return the seconds that judging the snapshot again and again takes."""
    began = time.perf_counter()
    for _ in range(_REPEATS):
        judge_all(CHECKS, seen, promised, memories)
    return time.perf_counter() - began


promised = contract(final_step=10_000_000)

if __name__ == "__main__":
    young, old = grown(_YOUNG_LOOKS), grown(10 * _YOUNG_LOOKS)
    next_young, next_old = look(_YOUNG_LOOKS), look(10 * _YOUNG_LOOKS)
    compare(
        f"cost of judging a snapshot, {10 * _YOUNG_LOOKS} looks behind it relative to {_YOUNG_LOOKS}",
        lambda: cost(next_young, young),
        lambda: cost(next_old, old),
        rounds=7,
    )
    kept = sum(map(len, old.values())) / sum(map(len, young.values()))
    print(f"size of what the checks remember, the same: {kept:.2f}")
