"""Which incidents a check's verdicts leave, and why people are told of each, or not. Pure; the most tested decision."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.model.incident import Incident, News, Silenced, begin_incident
from bot.model.record import Record
from bot.model.value import CheckId
from bot.model.verdict import Fail, Judgement

INHIBITED_BY: Mapping[str, tuple[str, ...]] = {
    "progress.": ("job.ended", "job.pending", "job.partial"),
    "log.degraded": ("job.ended", "job.pending"),
    "checkpoint.stalled": ("job.ended", "job.pending", "progress.stalled"),
    "throughput.": ("job.ended", "job.pending", "progress.stalled"),
    "loss.": ("numerics.nonfinite",),
    "gradients.": ("numerics.nonfinite",),
    "router.": ("numerics.nonfinite",),
    "optimizer.": ("numerics.nonfinite",),
    "eval.": ("numerics.nonfinite",),
    "monitor.stale": ("monitor.unchecked",),
}
"""By the beginning of a check's id: the checks whose open incident explains it, so that one cause is told once."""


@dataclass(frozen=True)
class Change:
    """One incident after a check, and what is new about it."""

    incident: Incident
    news: News


@dataclass(frozen=True)
class Changes:
    """All incidents after a check, and what is new about those that were touched."""

    incidents: tuple[Incident, ...]
    changes: tuple[Change, ...]

    def of(self, check: CheckId) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.incident.check == check)


def changes_after(record: Record, judgements: tuple[Judgement, ...], at: datetime) -> Changes:
    """Return the incidents after the verdicts of one check of the run."""
    left = {incident.number: incident for incident in record.incidents}
    news: dict[int, News] = {}
    number = record.next_incident
    for judgement in judgements:
        for incident in [i for i in left.values() if i.check == judgement.check]:
            left[incident.number], news[incident.number] = incident.after(judgement.verdict, at, judgement.patience)
        if isinstance(judgement.verdict, Fail) and not _is_known(left, judgement.verdict):
            finding = judgement.verdict.finding
            left[number], news[number] = begin_incident(number, record.run_id, finding, at, judgement.patience)
            number += 1
    told = [_told(left[n], what, left, at) for n, what in news.items()]
    left.update({change.incident.number: change.incident for change in told})
    return Changes(tuple(left.values()), tuple(told))


def _is_known(left: Mapping[int, Incident], verdict: Fail) -> bool:
    finding = verdict.finding
    return any(i.check == finding.check and i.key == finding.key and not i.is_resolved for i in left.values())


def _told(incident: Incident, what: News, left: Mapping[int, Incident], at: datetime) -> Change:
    """Settle whether this is told now: what another explains or what is silenced waits, and is told after that."""
    if isinstance(incident.state, Silenced) and at < incident.state.until and what is not News.RESOLVED:
        return Change(incident, News.SILENCED)
    if not incident.is_open:
        return Change(incident, what)
    if inhibitor(incident, left) is not None:
        return Change(incident, News.INHIBITED)
    if not incident.is_told:
        return Change(incident.model_copy(update={"is_told": True}), News.OPENED)
    return Change(incident, what)


def inhibitor(incident: Incident, left: Mapping[int, Incident]) -> Incident | None:
    """Return the open incident that explains this one; None when it stands by itself."""
    causes = next((ids for prefix, ids in INHIBITED_BY.items() if incident.check.startswith(prefix)), ())
    return next((i for i in left.values() if i.check in causes and i.is_open), None)
