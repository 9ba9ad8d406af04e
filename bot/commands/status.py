"""``hero status`` and ``hero runs``: how the runs stand, as far as the bot remembers, and how old that is."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

from bot.clock import SystemClock
from bot.commands.configuration import load
from bot.commands.printing import say, say_json, say_table
from bot.commands.sight import Holder, RunSeen, Sight, look
from bot.contracts import BadContract
from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.incident import Acknowledged, Incident
from bot.model.plan import Request, RequestState
from bot.model.record import Record
from bot.model.roles import with_roles
from bot.model.run import Progress, RunState
from bot.render.text import clean
from bot.render.words import STATE_WORDS, standing_facts
from bot.settings import Settings
from handlers.context import standing_of

_LINE = 600


def show_status(config: Path | None, run: str | None, *, as_json: bool) -> None:
    """Show every run, or one.

    Raises:
        HeroError: the configuration, or a database that cannot be read.
    """
    settings = load(config)
    sight = asyncio.run(look(settings, SystemClock(), run))
    if as_json:
        say_json([status_row(seen, sight, settings.bot.cadence) for seen in sight.runs])
        return
    for seen in sight.runs:
        for line in _lines(seen, sight, settings):
            say(clean(line, _LINE))
        say()
    say(_about_the_bot(sight, settings))


def show_runs(config: Path | None, *, as_json: bool) -> None:
    """List the runs, one line each.

    Raises:
        HeroError: as ``show_status``.
    """
    settings = load(config)
    sight = asyncio.run(look(settings, SystemClock()))
    rows = [run_row(seen) for seen in sight.runs]
    if as_json:
        say_json(rows)
        return
    if rows:
        cells = [["" if row[name] is None else str(row[name]) for name in _COLUMNS] for row in rows]
        say_table([name.upper().replace("_", " ") for name in _COLUMNS], cells)
    say(_about_the_bot(sight, settings))


_COLUMNS = ("run_id", "state", "step", "final_step", "dri", "job_id")


def run_row(seen: RunSeen) -> dict[str, object]:
    """Return a run's line of ``hero runs --json``."""
    contract = seen.contract if isinstance(seen.contract, Contract) else None
    instance = seen.record.instance if seen.record else None
    return {
        "run_id": seen.run_id,
        "state": _state(seen).value,
        "step": _progress(seen).step,
        "final_step": contract.ending_at(_progress(seen).final_step).final_step if contract else None,
        "dri": with_roles(contract, seen.record.run.roles if seen.record else ()).dri if contract else None,
        "kind": contract.effective_kind.value if contract else None,
        "orchestrator": contract.orchestrator.kind if contract else None,
        "job_id": instance.job_id if instance else contract.orchestrator.job_id if contract else None,
        "problems": list(_problems(seen)),
    }


def status_row(seen: RunSeen, sight: Sight, cadence: timedelta) -> dict[str, object]:
    """Return a run's object of ``hero status --json``; a figure that is not known is null."""
    progress, contract = _progress(seen), seen.contract if isinstance(seen.contract, Contract) else None
    contract = contract.ending_at(progress.final_step) if contract else None
    final_step = contract.final_step if contract else None
    left = progress.eta(final_step)
    arrives = progress.step_at + left if left is not None and progress.step_at is not None else None
    record = seen.record
    return {
        "run_id": seen.run_id,
        "state": _state(seen).value,
        "step": progress.step,
        "step_at": _moment(progress.step_at),
        "final_step": final_step,
        "final_step_basis": contract.basis_of("final_step").value if contract and final_step is not None else None,
        "eta": _moment(arrives),
        "loss": progress.loss,
        "throughput": progress.tokens_per_second,
        "last_checkpoint": progress.checkpoint_step,
        "job_id": run_row(seen)["job_id"],
        "monitor": _monitor(seen, sight, cadence),
        "incidents": [_incident_row(each) for each in record.incidents] if record else [],
        "requests": [_request_row(each) for each in _open_requests(record)],
        "problems": list(_problems(seen)),
    }


def _monitor(seen: RunSeen, sight: Sight, cadence: timedelta) -> dict[str, object]:
    """How much can be said for the rest: apart from the run's own health, and with the age of the facts."""
    run = seen.record.run if seen.record else None
    checked_at = run.last_checked_at if run else None
    age = sight.at - checked_at if checked_at else None
    return {
        "state": _monitor_state(seen, sight, cadence),
        "bot": sight.holder.value,
        "checked_at": _moment(checked_at),
        "age_s": round(age.total_seconds()) if age is not None else None,
        "unknown": list(run.gaps) if run else [],
    }


def _monitor_state(seen: RunSeen, sight: Sight, cadence: timedelta) -> str:
    run = seen.record.run if seen.record else None
    if not isinstance(seen.contract, Contract):
        return "blocked"
    if run is not None and run.is_paused:
        return "paused"
    if sight.holder is Holder.FREE:
        return "not_running"
    if run is None or run.last_checked_at is None:
        return "never_checked"
    if sight.at - run.last_checked_at > 2 * (seen.contract.cadence.check or cadence):
        return "stale"
    return "partial" if run.gaps else "ok"


def _lines(seen: RunSeen, sight: Sight, settings: Settings) -> list[str]:
    lines = [f"{seen.run_id}: {STATE_WORDS[_state(seen)]}"]
    if isinstance(seen.contract, Contract) and seen.record is not None:
        standing = standing_of(seen.record, seen.contract)
        facts = standing_facts(standing, settings.bot.timezone)
        lines += [f"    {name}: {value}" for name, value in facts if name not in {"state", "checked"}]
    lines += [f"    {problem}" for problem in _problems(seen)]
    lines.append(f"    monitor: {_say_monitor(seen, sight, settings.bot.cadence)}")
    if seen.record is not None:
        lines += [f"    {_say_incident(each)}" for each in seen.record.incidents]
        lines += [
            f"    {each.name} waits for {each.dri} for {say_duration(sight.at - each.asked_at)}: {each.reason}"
            for each in _open_requests(seen.record)
        ]
    return lines


def _say_monitor(seen: RunSeen, sight: Sight, cadence: timedelta) -> str:
    state = _monitor_state(seen, sight, cadence).replace("_", " ")
    checked_at = seen.record.run.last_checked_at if seen.record else None
    if checked_at is None:
        return f"{state}, never checked"
    return f"{state}, checked {say_duration(sight.at - checked_at)} ago"


def _about_the_bot(sight: Sight, settings: Settings) -> str:
    runs = f"{len(sight.runs)} run{'' if len(sight.runs) == 1 else 's'} in {settings.bot.runs}"
    if not sight.has_database:
        return f"{runs}; the bot has never run here: there is no {settings.bot.database}. `hero run` starts it"
    match sight.holder:
        case Holder.HELD:
            return f"{runs}; the bot is at work"
        case Holder.FREE:
            return f"{runs}; no bot is at work (nobody holds the lease): what stands above is not kept up to date"


def _state(seen: RunSeen) -> RunState:
    if isinstance(seen.contract, BadContract):
        return RunState.BLOCKED
    return seen.record.run.state if seen.record else RunState.UNKNOWN


def _progress(seen: RunSeen) -> Progress:
    return seen.record.run.progress if seen.record else Progress()


def _problems(seen: RunSeen) -> tuple[str, ...]:
    match seen.contract:
        case BadContract(problems=problems):
            return problems
        case None:
            return (f"the contract of {seen.run_id} is gone: it is not watched any more",)
        case _:
            return ()


def _open_requests(record: Record | None) -> tuple[Request, ...]:
    return tuple(each for each in record.requests if each.state is RequestState.OPEN) if record else ()


def _incident_row(incident: Incident) -> dict[str, object]:
    return {
        "name": f"I{incident.number}",
        "check": incident.check,
        "severity": incident.finding.severity.value,
        "summary": incident.finding.summary,
        "opened_at": _moment(incident.opened_at),
        "state": incident.state.kind,
    }


def _request_row(request: Request) -> dict[str, object]:
    return {
        "name": request.name,
        "plan": request.plan.kind,
        "reason": request.reason,
        "dri": request.dri,
        "asked_at": _moment(request.asked_at),
        "expires_at": _moment(request.expires_at),
    }


def _say_incident(incident: Incident) -> str:
    by = f", looked after by {incident.state.by}" if isinstance(incident.state, Acknowledged) else ""
    return f"I{incident.number} {incident.check} ({incident.finding.severity}{by}): {incident.finding.summary}"


def _moment(at: datetime | None) -> str | None:
    return at.isoformat(timespec="seconds") if at is not None else None
