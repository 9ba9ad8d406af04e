"""From the rows of a file to the snapshots that Hero would have seen, had it looked at the run while it trained.

A look is due after so many rows, and where rows have times also after the run's cadence, whichever comes first. What a
file does not tell is made up as a healthy run has it: a job that runs, a log without lines, no checkpoints. The column
``attempt`` plays the launches: another value is another job.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from bot.model.contract import Contract
from bot.model.job import Job, JobState
from bot.model.reading import Known
from bot.model.run import Instance
from bot.model.snapshot import LogTail, MetricRow, Metrics, Snapshot
from bot.model.value import JobId, RunId
from bot.replay.reading import Logged

CADENCE = timedelta(minutes=15)
"""The procedure's own."""
RUN = RunId("replay")
_JOB = JobId("/replay/run")
_BEGAN = datetime(2000, 1, 1, tzinfo=UTC)
_BEFORE = timedelta(seconds=1)
_QUIET_LOOKS = 8
"""In a long pause of the file so many looks see nothing new; it takes no more to tell a stall."""

CONTRACT = Contract.model_validate(
    {
        "run_id": RUN,
        "dri": "nobody",
        "command": ["true"],
        "output_root": "replay",
        "orchestrator": {"kind": "iris", "job_id": _JOB},
        "cadence": {"check": CADENCE},
    }
)


class Look(NamedTuple):
    """One check that was due."""

    step: int
    """The newest step that it could see."""
    snapshot: Snapshot


def looks(rows: Iterable[Logged], every: int) -> Iterator[Look]:
    """Yield the looks at a run, in order; only the rows of one look are held at a time."""
    watch = _Watch()
    for logged in rows:
        if logged.attempt != watch.attempt:
            yield from watch.look()
            watch.begin(logged)
        row = watch.timed(logged.row)
        if row.at is not None and row.at - watch.now >= CADENCE:
            yield from watch.look()
            yield from watch.wait_for(row.at)
        watch.held.append(row)
        watch.step = row.step
        if len(watch.held) >= every:
            yield from watch.look()
    yield from watch.look()


class _Watch:
    """What stands between two looks."""

    def __init__(self) -> None:
        self.held: list[MetricRow] = []
        self.step = 0
        self.attempt: int | None = None
        self.now = _BEGAN
        self._submitted = _BEGAN
        self._shift = timedelta()

    def begin(self, logged: Logged) -> None:
        """Turn to another attempt: a later launch, also when its rows count their seconds from 0 again."""
        at = logged.row.at
        if self.attempt is None:
            self.now = at or _BEGAN
            self._submitted = self.now - _BEFORE
        else:
            self._shift = timedelta() if at is None else max(timedelta(), self.now - at)
            # Between two launches there is no job that could stall.
            self.now = self.now if at is None else at + self._shift
            self._submitted = max(self._submitted + _BEFORE, self.now)
        self.attempt = logged.attempt

    def timed(self, row: MetricRow) -> MetricRow:
        """Return the row at its place in the time of the whole file."""
        if not self._shift or row.at is None:
            return row
        return row.model_copy(update={"at": row.at + self._shift})

    def look(self) -> Iterator[Look]:
        """Yield the look at the rows that are held, if there are any."""
        if not self.held:
            return
        moments = [row.at for row in self.held if row.at is not None]
        self.now = max(self.now, *moments) if moments else self.now + CADENCE
        picture = self._picture()
        self.held.clear()
        yield picture

    def wait_for(self, at: datetime) -> Iterator[Look]:
        """Yield the looks that see nothing new until then."""
        looks = max(0, (at - self.now) // CADENCE)
        for number in range(1, looks + 1):
            if number > _QUIET_LOOKS:
                self.now += CADENCE * (looks - _QUIET_LOOKS)
                return
            self.now += CADENCE
            yield self._picture()

    def _picture(self) -> Look:
        job = Job(
            job_id=_JOB,
            state=JobState.RUNNING,
            submitted_at=self._submitted,
            started_at=self._submitted,
            finished_at=None,
            pending_reason="",
            error="",
            parent=None,
            tasks=Known(value=(), at=self.now),
        )
        launch = Instance(
            run_id=RUN,
            number=self.attempt or 0,
            job_id=_JOB,
            submitted_at=self._submitted,
            launched_at=self._submitted,
        )
        snapshot = Snapshot(
            run_id=RUN,
            at=self.now,
            instance=launch,
            jobs=Known(value=(job,), at=self.now),
            log=Known(value=LogTail(lines=(), is_cut=False), at=self.now),
            metrics=Known(value=Metrics(rows=tuple(self.held)), at=self.now),
            checkpoints=Known(value=(), at=self.now),
        )
        return Look(self.step, snapshot)
