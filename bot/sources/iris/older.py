"""A job's state from a CLI without ``rpc``: the old generation's JSON where it has it, else SQL."""

from bot.clock import Clock
from bot.errors import ServiceError
from bot.model.job import Job
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.value import JobId
from bot.sources.gaps import unknown_of
from bot.sources.iris.cli import IrisCli
from bot.sources.iris.failure import NotFoundError, NoVerbError, says_no_such_job
from bot.sources.iris.parse import parse_descendants, parse_listed_job, parse_tasks
from bot.sources.iris.tables import COLUMNS_SQL, parse_columns, parse_tree, tree_sql


async def jobs_without_rpc(cli: IrisCli, job_id: JobId, clock: Clock) -> Reading[tuple[Job, ...]]:
    """Ask for a job and everything below it, the job first; Known(()) only when the controller knows none such."""
    try:
        return await _from_lists(cli, job_id, clock)
    except NoVerbError:
        pass
    except NotFoundError as error:
        at = clock.now()
        return Known(value=(), at=at) if says_no_such_job(error, job_id) else unknown_of(error, at)
    except ServiceError as error:
        return unknown_of(error, clock.now())
    try:
        return await _from_query(cli, job_id, clock)
    except ServiceError as error:
        return unknown_of(error, clock.now())


async def _from_lists(cli: IrisCli, job_id: JobId, clock: Clock) -> Reading[tuple[Job, ...]]:
    """The summary is asked first: it alone fails for an unknown id, while an empty list proves nothing."""
    summary = await cli.summary(job_id)
    listed = await cli.listed(job_id)
    at = clock.now()
    tasks = parse_tasks(summary, at, job_id)
    root, below = parse_listed_job(listed, at, job_id), parse_descendants(listed, at, job_id)
    if isinstance(root, Unknown):
        return root
    if isinstance(below, Unknown):
        return below
    if root.value is None:
        return Unknown(reason=Gap.UNRECOGNISED, detail=f"{job_id} has a summary and is not in the list", at=at)
    children: list[Job] = []
    for child in sorted(below.value[0], key=lambda job: job.job_id):
        theirs = parse_tasks(await cli.summary(child.job_id), clock.now(), child.job_id)
        children.append(child.model_copy(update={"tasks": theirs}))
    return Known(value=(root.value.model_copy(update={"tasks": tasks}), *children), at=at)


async def _from_query(cli: IrisCli, job_id: JobId, clock: Clock) -> Reading[tuple[Job, ...]]:
    columns = parse_columns(await cli.query(COLUMNS_SQL), clock.now())
    if isinstance(columns, Unknown):
        return columns
    rows = await cli.query(tree_sql(job_id, columns.value))
    at = clock.now()
    return parse_tree(rows, at, job_id, at)
