"""From the gauges of NCCL's RAS that Levanter records to which ranks are behind. Pure.

Process 0 asks NCCL for a view of the whole job every ten minutes, and once more when its watchdog fires. An answer that
finds nothing odd names no rank; names and meaning are from marin's docs/ops/training-stall-alert-contract.md and
``rigging.telemetry.probes.nccl`` (marin-rigging 0.2.227, source).
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from bot.errors import UnrecognisedError
from bot.model.hang import Counted, OddRank, RankStatistics
from bot.model.value import Value
from bot.sources.finelog.executions import Executions
from bot.sources.finelog.failure import SERVICE
from bot.sources.finelog.rows import execution_of, moment_of
from bot.sources.metric_rows import parse_figure

_AVAILABLE = "ras_available"
RAS_NAMES = (
    _AVAILABLE,
    "communicators",
    "communicator_state",
    "communicator_ranks",
    "communicator_rank_status",
    "collective_operations",
    "ras_reduction_records",
    "ras_metric_records",
)
_ONE_ANSWER = timedelta(seconds=30)
"""The rows of one answer follow its ``ras_available`` within so long; the next answer comes after minutes."""
_MOST_ODD = 32
_MOST_COUNTED = 8
_LOST = {("ras_reduction_records", "communicators_invalid"), ("ras_reduction_records", "communicators_omitted")}
_TEXT_CHARS = 120


class _Gauge(Value):
    name: str
    value: float
    at: datetime
    says: dict[str, str]

    def told(self, name: str) -> str:
        return self.says.get(name, "")

    @property
    def communicator(self) -> str:
        return self.told("communicator_hash")


def parse_ranks(rows: Iterable[Mapping[str, Any]], executions: Executions) -> RankStatistics | None:
    """Return the newest answer on record; None when there is none of the attempts that run.

    Raises:
        UnrecognisedError: a row has no time, or attributes that cannot be read.
    """
    own = (raw for raw in rows if executions.is_current(execution_of(raw)) is not False)
    gauges = [gauge for raw in own if (gauge := _gauge(raw)) is not None]
    asked = max((each for each in gauges if each.name == _AVAILABLE), key=lambda each: each.at, default=None)
    if asked is None:
        return None
    if not asked.value:
        return RankStatistics(
            at=asked.at, failed=asked.told("outcome") or "no reason told", trigger=asked.told("trigger")
        )
    answer = [each for each in gauges if asked.at <= each.at <= asked.at + _ONE_ANSWER]
    return _statistics(asked, answer)


def _statistics(asked: _Gauge, answer: list[_Gauge]) -> RankStatistics:
    counts = _counted(answer)
    told = {each.communicator for each in answer if each.told("collective_mismatch") == "true"}
    total = next((each.value for each in answer if each.name == "communicators"), None)
    return RankStatistics(
        at=asked.at,
        trigger=asked.told("trigger"),
        communicators=None if total is None else int(total),
        disagreeing=len(told | {each.communicator for each in counts}),
        missing=_ranks_in(answer, "missing"),
        unresponsive=_ranks_in(answer, "unresponsive"),
        considered_dead=_ranks_in(answer, "considered_dead"),
        counted=counts[:_MOST_COUNTED],
        odd=_odd(answer)[:_MOST_ODD],
        is_whole=total is not None and not any(_is_loss(each) for each in answer),
    )


def _counted(answer: list[_Gauge]) -> tuple[Counted, ...]:
    """Return the collectives of which the ranks of a communicator have made different numbers of calls."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(list)
    for each in answer:
        if each.name == "collective_operations":
            counts[each.communicator, each.told("collective")].append(int(each.value))
    apart = [
        Counted(communicator=communicator, collective=collective, fewest=min(calls), most=max(calls))
        for (communicator, collective), calls in counts.items()
        if min(calls) != max(calls)
    ]
    return tuple(sorted(apart, key=lambda each: (each.fewest - each.most, each.communicator, each.collective)))


def _ranks_in(answer: list[_Gauge], state: str) -> int:
    return sum(
        int(each.value) for each in answer if each.name == "communicator_ranks" and each.told("rank_state") == state
    )


def _odd(answer: list[_Gauge]) -> tuple[OddRank, ...]:
    found = [
        OddRank(communicator=each.communicator, rank=each.told("rank"), host=each.told("rank_host"), says=_says(each))
        for each in answer
        if each.name == "communicator_rank_status"
    ]
    return tuple(each for each in found if each.says)


def _says(each: _Gauge) -> tuple[str, ...]:
    """Return what is odd of one rank; rows of an older form name healthy ranks too, and give no reasons."""
    reasons = tuple(reason for reason in each.told("reasons").split(",") if reason)
    flags = tuple(name for name in ("unresponsive", "considered_dead", "abort_flag") if each.told(name) == "true")
    error = () if each.told("async_error") in {"", "0"} else (f"async_error {each.told('async_error')}",)
    absent = ("missing",) if each.told("rank_state") == "missing" else ()
    return tuple(dict.fromkeys((*reasons, *absent, *flags, *error)))


def _is_loss(each: _Gauge) -> bool:
    lost = (each.name, each.told("record_state")) in {*_LOST, ("ras_metric_records", "telemetry_lost")}
    return lost and each.value > 0


def _gauge(raw: Mapping[str, Any]) -> _Gauge | None:
    name, value, at = raw.get("name"), parse_figure(raw.get("value")), moment_of(raw.get("timestamp_ms"))
    if not isinstance(name, str) or at is None:
        raise UnrecognisedError(SERVICE, "a row of NCCL's statistics has no name or no time")
    if value is None or not math.isfinite(value):
        return None
    written = raw.get("attributes_json")
    try:
        says = json.loads(written) if isinstance(written, str) and written else {}
    except (ValueError, RecursionError) as error:
        raise UnrecognisedError(SERVICE, "the attributes of NCCL's statistics cannot be read") from error
    if not isinstance(says, dict):
        raise UnrecognisedError(SERVICE, "the attributes of NCCL's statistics are no object")
    return _Gauge(name=name, value=value, at=at, says={str(k): _short(v) for k, v in says.items()})


def _short(value: object) -> str:
    return " ".join(str(value).split())[:_TEXT_CHARS]
