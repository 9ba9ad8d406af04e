"""Whether further coordinators of a run live: a few narrow questions, by name and by the ids of past launches.

Only the roots whose ids begin like the run's names are listed, and of what past launches left elsewhere only the
states are asked. What has ended is left out.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from bot.clock import Clock
from bot.model.coordinators import Sought
from bot.model.job import Job, JobState
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.value import JobId
from bot.sources.iris.cli import IrisCli
from bot.sources.iris.failure import NotFoundError, NoVerbError, says_no_such_job
from bot.sources.iris.parse import parse_job_status, parse_named, parse_states
from bot.sources.iris.tables import COLUMNS_SQL, named_sql, parse_columns, parse_named_rows

type Ask = Callable[[str, Mapping[str, object]], Awaitable[Any]]

_PAGE = 500
_MOST_ROOTS = 5000
"""The controller lists no further (marin-iris 0.2.227, source)."""


async def find_neighbours(ask: Ask, sought: Sought, clock: Clock) -> Reading[tuple[Job, ...]]:
    """Return the live jobs that are the run's beside its current one, through the controller's RPC.

    Raises:
        NoVerbError: this CLI cannot ask that way.
        ServiceError: any other way in which there is no answer.
    """
    found: dict[JobId, Job] = {}
    for prefix in sought.prefixes:
        listed = await _roots(ask, sought, prefix, clock)
        if isinstance(listed, Unknown):
            return listed
        found.update((job.job_id, job) for job in listed.value)
    others = await _others(ask, sought, clock)
    if isinstance(others, Unknown):
        return others
    found.update((job.job_id, job) for job in others.value)
    return _live(found, clock)


async def neighbours_without_rpc(cli: IrisCli, sought: Sought, clock: Clock) -> Reading[tuple[Job, ...]]:
    """Return the same from a CLI without ``rpc``: the old generation's list where it has it, else SQL.

    Raises:
        ServiceError: there is no answer.
    """
    found: dict[JobId, Job] = {}
    try:
        for prefix in (*sought.prefixes, *sought.others):
            listed = parse_named(await cli.listed(prefix), clock.now(), sought.has)
            if isinstance(listed, Unknown):
                return listed
            found.update((job.job_id, job) for job in listed.value[0])
        return _live(found, clock)
    except NoVerbError:
        pass
    columns = parse_columns(await cli.query(COLUMNS_SQL), clock.now())
    if isinstance(columns, Unknown):
        return columns
    rows = await cli.query(named_sql(sought.prefixes, sought.others, columns.value))
    named = parse_named_rows(rows, clock.now(), sought.has)
    return named if isinstance(named, Unknown) else _live({job.job_id: job for job in named.value}, clock)


async def _roots(ask: Ask, sought: Sought, prefix: JobId, clock: Clock) -> Reading[tuple[Job, ...]]:
    found: list[Job] = []
    for offset in range(0, _MOST_ROOTS, _PAGE):
        query = {"job_id_prefix": prefix, "scope": "JOB_QUERY_SCOPE_ROOTS", "limit": _PAGE, "offset": offset}
        page = parse_named(await ask("ListJobs", {"query": query}), clock.now(), sought.has)
        if isinstance(page, Unknown):
            return page
        jobs, has_more = page.value
        found.extend(jobs)
        if not has_more:
            return Known(value=tuple(found), at=page.at)
    detail = f"more than {_MOST_ROOTS} jobs begin with {prefix}; the controller lists no further"
    return Unknown(reason=Gap.UNRECOGNISED, detail=detail, at=clock.now())


async def _others(ask: Ask, sought: Sought, clock: Clock) -> Reading[tuple[Job, ...]]:
    """Ask for past jobs by their ids; the controller leaves out of its answer those that it knows no more."""
    if not sought.others:
        return Known(value=(), at=clock.now())
    states = parse_states(await ask("GetJobState", {"job_ids": list(sought.others)}), clock.now())
    if isinstance(states, Unknown):
        return states
    found: list[Job] = []
    for job_id in sought.others:
        if states.value.get(job_id, JobState.KILLED).is_terminal:
            continue
        try:
            answer = await ask("GetJobStatus", {"job_id": job_id})
        except NotFoundError as error:
            if not says_no_such_job(error, job_id):
                raise
            continue
        status = parse_job_status(answer, clock.now(), job_id)
        if isinstance(status, Unknown):
            return status
        found.append(status.value[0])
    return Known(value=tuple(found), at=states.at)


def _live(found: Mapping[JobId, Job], clock: Clock) -> Known[tuple[Job, ...]]:
    live = (found[job_id] for job_id in sorted(found) if not found[job_id].state.is_terminal)
    return Known(value=tuple(live), at=clock.now())
