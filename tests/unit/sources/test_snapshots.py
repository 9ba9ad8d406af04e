"""A snapshot's readings are made of one another: what the orchestrator says tells whose figures are the run's."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

from bot.model.contract import Contract
from bot.model.hang import HangEvidence
from bot.model.job import Job, JobState
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.snapshot import Checkpoint, LogTail, Metrics, Source
from bot.model.value import JobId
from bot.sources.snapshots import SnapshotReader
from tests.fakes.clock import FakeClock
from tests.fakes.snapshots import AT, JOB, contract, instance, job, unknown


class Services:
    """Every source in one; keeps what the metrics were asked with."""

    def __init__(self) -> None:
        self.jobs_said: Reading[tuple[Job, ...]] = Known(value=(job(),), at=AT)
        self.metrics_heard: Reading[tuple[Job, ...]] | None = None

    async def jobs(self, contract: Contract, job_id: JobId) -> Reading[tuple[Job, ...]]:
        assert (contract.orchestrator.kind, job_id) == ("iris", JOB)
        return self.jobs_said

    async def neighbours(
        self, contract: Contract, job_id: JobId | None, past: tuple[JobId, ...]
    ) -> Reading[tuple[Job, ...]]:
        assert (contract.orchestrator.kind, job_id) == ("iris", JOB)
        if past:
            raise ValueError(past)
        return Known(value=(job(job_id=f"{JOB}-2"),), at=AT)

    async def log(self, contract: Contract, job_id: JobId, since: datetime | None) -> Reading[LogTail]:
        assert (contract.orchestrator.kind, job_id, since) == ("iris", JOB, job().submitted_at)
        return Known(value=LogTail(lines=(), is_cut=False), at=AT)

    async def checkpoints(self, contract: Contract) -> Reading[tuple[Checkpoint, ...]]:
        assert contract.orchestrator.kind == "iris"
        return Known(value=(), at=AT)

    async def metrics(
        self,
        contract: Contract,
        *,
        since: datetime | None,
        cursor: str,
        log: Reading[LogTail],
        jobs: Reading[tuple[Job, ...]],
    ) -> Reading[Metrics]:
        assert (contract.orchestrator.kind, since, cursor) == ("iris", job().submitted_at, "here")
        assert isinstance(log, Known)
        self.metrics_heard = jobs
        return Known(value=Metrics(rows=(), cursor="there"), at=AT)


async def test_the_figures_are_asked_for_with_what_the_orchestrator_says_now() -> None:
    services = Services()
    reader = SnapshotReader(
        orchestrators={"iris": services},
        metrics=services,
        checkpoints=services,
        clock=FakeClock(AT),
        deadline=timedelta(seconds=30),
    )

    seen = await reader.read(contract(), None, "here")

    assert seen.jobs == services.jobs_said
    assert services.metrics_heard == services.jobs_said
    assert isinstance(seen.metrics, Known)
    assert seen.metrics.value.cursor == "there"


class Exports:
    """An export root, and how often it was looked at."""

    def __init__(self) -> None:
        self.looks = 0

    async def exported_bytes(self, _contract: Contract) -> Reading[int | None]:
        self.looks += 1
        return Known(value=4096, at=AT)


async def test_an_export_root_is_looked_at_only_once_the_job_has_succeeded() -> None:
    services, exports = Services(), Exports()
    reader = SnapshotReader(
        orchestrators={"iris": services},
        metrics=services,
        checkpoints=services,
        clock=FakeClock(AT),
        deadline=timedelta(seconds=30),
        exports=exports,
    )
    exporting = contract(export_root="gs://bucket/export")

    running = (await reader.read(exporting, None, "here")).export
    services.jobs_said = unknown(Gap.TIMEOUT)
    dark = (await reader.read(exporting, instance(), "here")).export
    assert exports.looks == 0
    services.jobs_said = Known(value=(job(JobState.SUCCEEDED, finished_at=AT),), at=AT)
    promised_none = (await reader.read(contract(), None, "here")).export
    assert exports.looks == 0
    done = (await reader.read(exporting, None, "here")).export

    assert [each.reason for each in (running, dark, promised_none) if isinstance(each, Unknown)] == [
        Gap.NOT_YET,
        Gap.NOT_YET,
        Gap.NOT_CONFIGURED,
    ]
    assert done == Known(value=4096, at=AT)
    assert exports.looks == 1


async def test_neighbours_that_cannot_be_read_leave_the_jobs_known() -> None:
    services = Services()
    reader = SnapshotReader(
        orchestrators={"iris": services},
        metrics=services,
        checkpoints=services,
        clock=FakeClock(AT),
        deadline=timedelta(seconds=30),
    )

    seen = await reader.read(contract(), None, "here")
    broken = await reader.read(contract(), None, "here", (JobId("/me/old"),))

    assert seen.neighbours == Known(value=(job(job_id=f"{JOB}-2"),), at=AT)
    assert isinstance(broken.neighbours, Unknown)
    assert broken.neighbours.reason is Gap.BROKEN
    assert broken.jobs == services.jobs_said


class Records:
    """What is on record of a hang, or a service that does not answer."""

    def __init__(self) -> None:
        self.heard: list[Reading[tuple[Job, ...]]] = []
        self.is_silent = False

    async def hang(self, _contract: Contract, jobs: Reading[tuple[Job, ...]]) -> Reading[HangEvidence]:
        self.heard.append(jobs)
        if self.is_silent:
            await asyncio.Event().wait()
        dark = unknown(at=AT)
        return Known(value=HangEvidence(window_began_at=AT, use=dark, stacks=dark, ranks=dark), at=AT)


def reading_hangs(records: Records | None, **fields: Any) -> SnapshotReader:
    services = Services()
    given: dict[str, Any] = {"deadline": timedelta(seconds=30), "hang": records} | fields
    return SnapshotReader(
        orchestrators={"iris": services}, metrics=services, checkpoints=services, clock=FakeClock(AT), **given
    )


async def test_what_is_on_record_of_a_hang_is_read_when_it_is_asked_for_and_not_at_every_look() -> None:
    records = Records()
    reader = reading_hangs(records)

    seen = await reader.read(contract(), None, "here")
    assert records.heard == []
    hung = await reader.with_hang(contract(), seen)

    assert isinstance(seen.hang, Unknown)
    assert seen.hang.reason is Gap.NOT_YET
    assert Source.HANG not in dict(seen.gaps())
    assert isinstance(hung.hang, Known)
    assert records.heard == [seen.jobs]
    assert hung.model_copy(update={"hang": seen.hang}) == seen


async def test_where_nothing_keeps_it_the_look_stays_as_it_is() -> None:
    reader = reading_hangs(None)
    seen = await reader.read(contract(), None, "here")

    assert await reader.with_hang(contract(), seen) is seen
    assert isinstance(seen.hang, Unknown)
    assert seen.hang.reason is Gap.NOT_CONFIGURED


async def test_a_record_that_does_not_answer_delays_a_look_by_its_deadline_and_is_unknown() -> None:
    records = Records()
    records.is_silent = True
    reader = reading_hangs(records, deadline=timedelta(milliseconds=20))
    seen = await reader.read(contract(), None, "here")

    hung = await reader.with_hang(contract(), seen)

    assert isinstance(hung.hang, Unknown)
    assert hung.hang.reason is Gap.TIMEOUT
