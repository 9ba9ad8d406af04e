"""Plays a file to the checks: the same checks, the same memories and the same incidents as live. Pure."""

import time
from collections.abc import Iterable, Iterator
from typing import Any

from bot.model.contract import Contract
from bot.model.incident import Incident, News, open_incident
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Judgement, Severity
from bot.replay.looks import CONTRACT, RUN, Look, looks
from bot.replay.reading import Logged
from checks.check import Check, judge_all
from checks.progress import STALLED, STARTUP
from checks.series import REPLAY_CHECKS

CHECKS: tuple[Check[Any, Any], ...] = (STARTUP, STALLED, *REPLAY_CHECKS)


class Told(Value):
    """One incident of a replayed file."""

    check: CheckId
    severity: Severity
    """The worst that it had."""
    first_step: int
    """Where the trouble began, as the check says; where the incident opened when it does not."""
    opened_step: int
    """The newest step that was logged when the incident opened."""
    opened_row: int
    resolved_step: int | None
    message: str
    """Its newest summary."""


class Replay(Value):
    """What came of one file."""

    rows: int
    looks: int
    incidents: tuple[Told, ...]
    broken: tuple[str, ...]
    """The tracebacks of checks that raised: our bugs."""
    seconds: float


def replay(rows: Iterable[Logged], every: int, contract: Contract = CONTRACT) -> Replay:
    """Return the incidents of a file.

    Args:
        rows: of the file, in its order; they may be endless in number, few are held.
        every: a look is due after so many rows, or earlier by the rows' times.
        contract: whose thresholds count.
    """
    began = time.monotonic()
    desk = _Desk()
    counted = _Counted(rows)
    seen = 0
    memories: dict[CheckId, str] = {}
    broken: list[str] = []
    for look in looks(counted, every):
        seen += 1
        judged = judge_all(CHECKS, look.snapshot, contract, memories)
        memories = judged.memories
        broken.extend(each.trace for each in judged.broken)
        desk.take(look, judged.judgements, counted.rows)
    return Replay(
        rows=counted.rows,
        looks=seen,
        incidents=tuple(desk.told[number] for number in sorted(desk.told)),
        broken=tuple(dict.fromkeys(broken)),
        seconds=time.monotonic() - began,
    )


class _Counted:
    """Rows that are counted as they go by."""

    def __init__(self, rows: Iterable[Logged]) -> None:
        self._rows = rows
        self.rows = 0

    def __iter__(self) -> Iterator[Logged]:
        for row in self._rows:
            self.rows += 1
            yield row


class _Desk:
    """Keeps the incidents, as the handler of a check's verdicts does."""

    def __init__(self) -> None:
        self.told: dict[int, Told] = {}
        self._open: dict[int, Incident] = {}

    def take(self, look: Look, judgements: tuple[Judgement, ...], row: int) -> None:
        for judgement in judgements:
            for number, incident in list(self._open.items()):
                if incident.check == judgement.check:
                    self._move(number, incident, judgement, look)
            if not isinstance(judgement.verdict, Fail):
                continue
            finding = judgement.verdict.finding
            if any(each.check == finding.check and each.key == finding.key for each in self._open.values()):
                continue
            number = len(self.told) + 1
            self._open[number] = open_incident(number, RUN, finding, look.snapshot.at)
            self.told[number] = Told(
                check=finding.check,
                severity=finding.severity,
                first_step=look.step if finding.since_step is None else finding.since_step,
                opened_step=look.step,
                opened_row=row,
                resolved_step=None,
                message=finding.summary,
            )

    def _move(self, number: int, incident: Incident, judgement: Judgement, look: Look) -> None:
        after, news = incident.after(judgement.verdict, look.snapshot.at)
        told = self.told[number]
        if news is News.RESOLVED:
            del self._open[number]
            self.told[number] = told.model_copy(update={"resolved_step": look.step})
            return
        self._open[number] = after
        finding = after.finding
        worse = finding.severity.rank >= told.severity.rank
        self.told[number] = told.model_copy(
            update={"severity": finding.severity, "message": finding.summary} if worse else {}
        )
