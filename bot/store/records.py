"""What is remembered of a run: load it as a Record, save what a handler decided."""

import json
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, case, delete, func, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.errors import StoreError
from bot.model.action import Action, ActionState
from bot.model.audit import AuditEntry
from bot.model.delivery import Awaited
from bot.model.history import VerdictChange
from bot.model.incident import Incident
from bot.model.plan import Request, RequestState
from bot.model.record import Decision, Record
from bot.model.run import Instance, Run, RunState
from bot.model.value import RunId, Value
from bot.redaction import Redactor
from bot.store import ledger
from bot.store.rows import from_json, incident_to_json, insert_once, to_json, upsert, verdict_to_json
from bot.store.tables import actions, audit, counters, incidents, instances, memories, requests, runs, verdicts

_ENDED = frozenset({RunState.COMPLETED, RunState.STOPPED, RunState.ENDED_SHORT, RunState.FAILED, RunState.BLOCKED})
_INSTANCES = 50
_DECIDED = 20


async def find(connection: AsyncConnection, run_id: RunId) -> Record | None:
    """Return everything remembered of a run, None when it was never stored."""
    stored = (await connection.execute(select(runs.c.value).where(runs.c.run_id == run_id))).scalar()
    return None if stored is None else await _record(connection, from_json(Run, stored))


async def verdicts_at(connection: AsyncConnection, run_id: RunId, at: datetime | None) -> tuple[VerdictChange, ...]:
    """Return each check's verdict as it stood at a moment, None for now: the last change until then."""
    where = [verdicts.c.run_id == run_id]
    if at is not None:
        where.append(verdicts.c.at <= at)
    newest = select(func.max(verdicts.c.number)).where(*where).group_by(verdicts.c.check_id)
    wanted = select(verdicts.c.value).where(verdicts.c.number.in_(newest)).order_by(verdicts.c.check_id)
    return await _values(connection, VerdictChange, wanted)


async def prune_verdicts(connection: AsyncConnection, before: datetime) -> int:
    """Forget changes of verdicts before then, but for each check's last one."""
    newest = select(func.max(verdicts.c.number)).group_by(verdicts.c.run_id, verdicts.c.check_id)
    old = delete(verdicts).where(verdicts.c.at < before, verdicts.c.number.not_in(newest))
    return (await connection.execute(old)).rowcount


async def get(connection: AsyncConnection, run_id: RunId) -> Record:
    """As ``find``, with a fresh run when nothing is stored yet."""
    return await find(connection, run_id) or await _record(connection, Run(run_id=run_id))


async def find_all(connection: AsyncConnection) -> tuple[Record, ...]:
    return tuple([await _record(connection, run) for run in await all_runs(connection)])


async def all_runs(connection: AsyncConnection) -> tuple[Run, ...]:
    return await _values(connection, Run, select(runs.c.value).order_by(runs.c.run_id))


async def _record(connection: AsyncConnection, run: Run) -> Record:
    run_id = run.run_id
    newest = select(instances.c.value).where(instances.c.run_id == run_id).order_by(instances.c.number.desc())
    unresolved = incidents.c.run_id == run_id, ~incidents.c.is_resolved
    remembered = select(memories.c.check_id, memories.c.memory).where(memories.c.run_id == run_id)
    trial = await _trial_of(connection, run_id)
    # The guards of a trial under way look at every cut-over and every answer of it, however many there are.
    since = run.trial.request if run.trial is not None and not run.trial.is_over else None
    free = {name: number for name, number in await connection.execute(select(counters.c.name, counters.c.next))}  # noqa: C416 - dict() of a Row's sequence confuses mypy
    return Record(
        run=run,
        instances=tuple(reversed(await _values(connection, Instance, newest.limit(_INSTANCES)))),
        incidents=await _values(
            connection, Incident, select(incidents.c.value).where(*unresolved).order_by(incidents.c.number)
        ),
        requests=await _live_and_newest(
            connection,
            Request,
            requests,
            run_id,
            RequestState.OPEN,
            kept=None if since is None else requests.c.number >= since,
        ),
        actions=await _live_and_newest(
            connection,
            Action,
            actions,
            run_id,
            ActionState.GRANTED,
            kept=None if since is None else actions.c.request >= since,
        ),
        memories={check: memory for check, memory in await connection.execute(remembered)},  # noqa: C416 - as above
        verdicts={change.check: change for change in await verdicts_at(connection, run_id, None)},
        posted=await ledger.of_run(connection, run_id),
        trial_of=trial.run_id if trial else None,
        trial_stage=trial.trial.stage if trial and trial.trial else None,
        trial_ending=trial.trial.ending if trial and trial.trial else None,
        rollbacks=await _rollbacks(connection, trial) if trial else (),
        next_incident=free.get("incident", 1),
        next_request=free.get("request", 1),
        next_action=free.get("action", 1),
    )


async def _trial_of(connection: AsyncConnection, run_id: RunId) -> Run | None:
    """Return the run of whose trial this one is the child; None for every other run.

    Of several the one whose trial is under way counts, whichever was agreed to first; then the latest.
    """
    child = runs.c.value["trial"]["plan"]["child_run_id"].as_string()
    found = await _values(connection, Run, select(runs.c.value).where(child == run_id))
    return max(found, key=_newest_trial, default=None)


async def _rollbacks(connection: AsyncConnection, old: Run) -> tuple[Action, ...]:
    """Return the rollbacks of the old run's newest trial, oldest first."""
    kind = actions.c.value["plan"]["kind"].as_string()
    since = old.trial.request if old.trial else 0
    of_trial = actions.c.run_id == old.run_id, actions.c.request > since, kind == "rollback"
    return await _values(connection, Action, select(actions.c.value).where(*of_trial).order_by(actions.c.number))


def _newest_trial(run: Run) -> tuple[bool, int]:
    trial = run.trial
    return (False, 0) if trial is None else (not trial.is_over, trial.request)


async def _live_and_newest[V: Value](
    connection: AsyncConnection,
    kind: type[V],
    table: Table,
    run_id: RunId,
    live: str,
    *,
    kept: ColumnElement[bool] | None,
) -> tuple[V, ...]:
    """Return what is live, the newest of the rest, and whatever else is kept, oldest first."""
    others = (
        select(table.c.number)
        .where(table.c.run_id == run_id, table.c.state != live)
        .order_by(table.c.number.desc())
        .limit(_DECIDED)
    )
    counted = [table.c.state == live, table.c.number.in_(others), *([] if kept is None else [kept])]
    wanted = and_(table.c.run_id == run_id, or_(*counted))
    return await _values(connection, kind, select(table.c.value).where(wanted).order_by(table.c.number))


async def _values[V: Value](connection: AsyncConnection, kind: type[V], statement: Select[Any]) -> tuple[V, ...]:
    return tuple(from_json(kind, stored) for (stored,) in await connection.execute(statement))


async def save(connection: AsyncConnection, decision: Decision, run_id: RunId | None, redactor: Redactor) -> bool:
    """Store all of a decision but what is to be told.

    Returns:
        Whether an action was granted that was not there before.

    Raises:
        StoreError: a number is another run's, or a decided request or a finished action would become open again: the
            record was not read in this transaction.
    """
    if decision.run is not None:
        await upsert(connection, runs, {"run_id": decision.run.run_id, "value": to_json(decision.run, redactor)})
    parts: tuple[Instance | Incident | Request | Action, ...] = (
        *decision.instances,
        *decision.incidents,
        *decision.requests,
        *decision.actions,
    )
    for touched in {part.run_id for part in parts} | (
        {run_id} if run_id and (decision.memories or decision.happened) else set()
    ):
        await _know_run(connection, touched, redactor)
    for instance in decision.instances:
        row = {"run_id": instance.run_id, "number": instance.number, "value": to_json(instance, redactor)}
        await upsert(connection, instances, row)
    for incident in decision.incidents:
        await _save_incident(connection, incident, redactor)
    for request in decision.requests:
        await save_request(connection, request, redactor)
    is_granted = False
    for action in sorted(decision.actions, key=lambda each: each.state is ActionState.GRANTED):
        is_granted |= await save_action(connection, action, redactor)
    for check_id, memory in decision.memories.items():
        row = {"run_id": run_id, "check_id": check_id, "memory": _clean_memory(memory, redactor)}
        await upsert(connection, memories, row)
    for change in decision.verdicts:
        row = {"run_id": change.run_id, "check_id": change.check, "at": change.at}
        await connection.execute(insert(verdicts), row | {"value": verdict_to_json(change, redactor)})
    for entry in decision.audit:
        await _write_audit(connection, entry, redactor)
    return is_granted


async def _know_run(connection: AsyncConnection, run_id: RunId, redactor: Redactor) -> None:
    row = {"run_id": run_id, "value": to_json(Run(run_id=run_id), redactor)}
    await connection.execute(insert_once(runs, row, "run_id"))


async def _save_incident(connection: AsyncConnection, incident: Incident, redactor: Redactor) -> None:
    row = {
        "number": incident.number,
        "run_id": incident.run_id,
        "is_resolved": incident.is_resolved,
        "value": incident_to_json(incident, redactor),
    }
    if not await upsert(connection, incidents, row, incidents.c.run_id == incident.run_id):
        raise _stale(f"incident I{incident.number}", incident.run_id)
    await _use_number(connection, "incident", incident.number)


async def incidents_since(connection: AsyncConnection, run_id: RunId, since: datetime) -> tuple[Incident, ...]:
    """Return the run's incidents that were opened since a moment, resolved ones too, oldest first."""
    mine = select(incidents.c.value).where(incidents.c.run_id == run_id).order_by(incidents.c.number)
    found = await _values(connection, Incident, mine)
    return tuple(each for each in found if each.opened_at >= since)


async def save_request(connection: AsyncConnection, request: Request, redactor: Redactor) -> None:
    """Insert or change a request; one that was decided never becomes open again."""
    row = _request_row(request, redactor)
    may_change = requests.c.run_id == request.run_id
    if request.state is RequestState.OPEN:
        may_change &= requests.c.state == RequestState.OPEN
    if not await upsert(connection, requests, row, may_change):
        raise _stale(f"request {request.name}", request.run_id)
    await _use_number(connection, "request", request.number)


async def redeem(connection: AsyncConnection, number: int, decided: Request, redactor: Redactor) -> bool:
    """Turn the open request into the decided one; False when it is not open any more, or is for another plan."""
    row = _request_row(decided, redactor)
    still_open = (
        requests.c.number == number,
        requests.c.run_id == decided.run_id,
        requests.c.digest == decided.digest,
        requests.c.state == RequestState.OPEN,
    )
    statement = requests.update().where(*still_open).values(state=row["state"], value=row["value"])
    return (await connection.execute(statement)).rowcount == 1


def _request_row(request: Request, redactor: Redactor) -> dict[str, Any]:
    return {
        "number": request.number,
        "run_id": request.run_id,
        "state": request.state,
        "digest": request.digest,
        "value": to_json(request, redactor),
    }


async def find_request(connection: AsyncConnection, number: int) -> Request | None:
    found = await _values(connection, Request, select(requests.c.value).where(requests.c.number == number))
    return found[0] if found else None


async def open_requests(connection: AsyncConnection) -> tuple[Request, ...]:
    """Return every open request of every run, oldest first."""
    statement = select(requests.c.value).where(requests.c.state == RequestState.OPEN).order_by(requests.c.number)
    return await _values(connection, Request, statement)


async def save_action(connection: AsyncConnection, action: Action, redactor: Redactor) -> bool:
    """Insert or change an action; a finished one stays finished. Returns whether it is newly granted."""
    is_new = (
        await connection.execute(select(actions.c.number).where(actions.c.number == action.number))
    ).scalar() is None
    row = {
        "number": action.number,
        "run_id": action.run_id,
        "request": action.grant.request,
        "state": action.state,
        "value": to_json(action, redactor),
    }
    may_change = and_(actions.c.run_id == action.run_id, actions.c.request == action.grant.request)
    if action.state is ActionState.GRANTED:
        may_change &= actions.c.state == ActionState.GRANTED
    if not await upsert(connection, actions, row, may_change):
        raise _stale(f"action {action.number}", action.run_id)
    await _use_number(connection, "action", action.number)
    return is_new and action.state is ActionState.GRANTED


async def awaited(connection: AsyncConnection, before: datetime) -> Awaited:
    """Return whose conversations await an answer, and whose are over: ended, and without news since ``before``."""
    open_ = select(requests.c.run_id).where(requests.c.state == RequestState.OPEN)
    granted = select(actions.c.run_id).where(actions.c.state == ActionState.GRANTED)
    asked = frozenset((await connection.execute(open_.union(granted))).scalars())
    over = {
        run.run_id
        for run in await all_runs(connection)
        if run.state in _ENDED and run.last_told_at is not None and run.last_told_at < before
    }
    return Awaited(asked=asked, over=frozenset(over) - asked)


async def unfinished_actions(connection: AsyncConnection) -> tuple[Action, ...]:
    """Return every granted action of every run, oldest first."""
    statement = select(actions.c.value).where(actions.c.state == ActionState.GRANTED).order_by(actions.c.number)
    return await _values(connection, Action, statement)


async def _use_number(connection: AsyncConnection, name: str, number: int) -> None:
    counter = insert_once(counters, {"name": name, "next": number + 1}, "name")
    await connection.execute(counter)
    higher = case((counters.c.next > number, counters.c.next), else_=number + 1)
    await connection.execute(counters.update().where(counters.c.name == name).values(next=higher))


def _stale(thing: str, run_id: RunId) -> StoreError:
    return StoreError(
        f"{thing} of {run_id} was changed or taken by somebody else meanwhile; nothing was stored, and the "
        "record has to be read again in the transaction that writes"
    )


def _clean_memory(memory: str, redactor: Redactor) -> str:
    """Cut secrets from inside a check's JSON, so that it stays JSON."""
    try:
        inside = json.loads(memory)
    except ValueError:
        return redactor.text(memory)
    clean = redactor.value(inside)
    return memory if clean == inside else json.dumps(clean)


async def _write_audit(connection: AsyncConnection, entry: AuditEntry, redactor: Redactor) -> None:
    row = entry.model_dump(exclude={"who", "detail"})
    row |= {"who": redactor.text(entry.who), "detail": redactor.text(entry.detail)}
    await connection.execute(audit.insert().values(row))


async def read_audit(
    connection: AsyncConnection, run_id: RunId | None, limit: int, kinds: frozenset[str] | None = None
) -> tuple[AuditEntry, ...]:
    """Return the newest entries, of one run or of all, of some kinds or of all, oldest of them first."""
    columns = [audit.c[name] for name in AuditEntry.model_fields]
    statement = select(*columns).order_by(audit.c.number.desc()).limit(limit)
    if run_id is not None:
        statement = statement.where(audit.c.run_id == run_id)
    if kinds is not None:
        statement = statement.where(audit.c.what.in_(kinds))
    rows = (await connection.execute(statement)).mappings().all()
    return tuple(AuditEntry(**row) for row in reversed(rows))
