"""``hero doctor``: is everything that the configuration names in order, and if not, what exactly is to be done?"""

import asyncio
from datetime import timedelta
from pathlib import Path

import httpx
from pydantic import BaseModel

from bot.clock import Clock, SystemClock
from bot.commands.alert_probes import probe_email, probe_pager
from bot.commands.code_probe import probe_git
from bot.commands.configuration import load
from bot.commands.exits import Exit
from bot.commands.own_probes import (
    probe_checkpoints,
    probe_contracts,
    probe_database,
    probe_heartbeat,
    probe_http,
)
from bot.commands.pods_probe import probe_kubernetes
from bot.commands.printing import say, say_json, say_table
from bot.commands.probing import Probe, Question, ask_all, bad_problem, good
from bot.commands.service_probes import (
    probe_discord,
    probe_finelog,
    probe_github,
    probe_iris,
    probe_people,
    probe_slack,
    probe_wandb,
)
from bot.errors import ConfigurationError
from bot.model.contract import Contract
from bot.model.durations import write_duration
from bot.redaction import Redactor
from bot.run_contracts import contracts_of
from bot.settings import Settings

_HEARTBEAT_S = 20.0


def show_diagnosis(config: Path | None, *, as_json: bool) -> Exit:
    """Ask everything and show it; 0 when all is well, 1 when not, 2 when the configuration itself is wrong."""
    try:
        settings = load(config)
    except ConfigurationError as error:
        _show(tuple(bad_problem("configuration", problem) for problem in error.problems), as_json=as_json)
        return Exit.USAGE
    probes = asyncio.run(diagnose(settings, SystemClock()))
    scrub = Redactor(settings.secrets).text
    probes = tuple(each._replace(detail=scrub(each.detail), fix=scrub(each.fix)) for each in probes)
    _show(probes, as_json=as_json)
    if not as_json:
        _show_settings(settings)
    return Exit.DONE if all(each.ok for each in probes) else Exit.FAILED


async def diagnose(settings: Settings, clock: Clock) -> tuple[Probe, ...]:
    """Ask everything side by side, each with a deadline."""
    contracts = contracts_of(settings)
    usable = tuple(each for name in contracts.run_ids() if isinstance(each := contracts.load(name), Contract))
    async with httpx.AsyncClient(timeout=_HEARTBEAT_S) as client:
        questions: dict[str, Question] = {
            "database": lambda: probe_database(settings, clock),
            "http": lambda: probe_http(settings, clock),
            "contracts": lambda: probe_contracts(contracts),
            "people": lambda: probe_people(settings, usable, clock),
            "slack": lambda: probe_slack(settings.slack),
            "discord": lambda: probe_discord(settings.discord),
            "github": lambda: probe_github(settings, clock),
            "iris": lambda: probe_iris(settings.iris, usable, clock),
            "finelog": lambda: probe_finelog(settings.finelog_in_use, usable, clock),
            "kubernetes": lambda: probe_kubernetes(settings.kubernetes, clock),
            "wandb": lambda: probe_wandb(settings.wandb, usable, clock),
            "git": lambda: probe_git(settings.git, usable, clock),
            "checkpoints": lambda: probe_checkpoints(usable, clock),
            "email": lambda: probe_email(settings.email, settings.persons),
            "pager": lambda: probe_pager(settings.pager),
            "heartbeat": lambda: probe_heartbeat(settings.heartbeat, client),
        }
        found = await ask_all(questions, _deadline(settings))
    return (good("configuration", "can be read"), *found)


def _deadline(settings: Settings) -> timedelta:
    """A probe asks a few questions in a row, each with its section's deadline."""
    asked = (
        settings.slack,
        settings.discord,
        settings.github,
        settings.iris,
        settings.finelog,
        settings.kubernetes,
        settings.wandb,
        settings.git,
        settings.email,
        settings.pager,
    )
    return 4 * max(each.deadline for each in asked)


def _show(probes: tuple[Probe, ...], *, as_json: bool) -> None:
    if as_json:
        say_json([each._asdict() for each in probes])
        return
    rows = [(_sign(each), each.connection, each.detail, each.fix) for each in probes]
    say_table(("", "CONNECTION", "SEEN", "FIX"), rows)


def _sign(probe: Probe) -> str:
    if not probe.ok:
        return "BAD"
    return "note" if probe.fix else "ok"


def _show_settings(settings: Settings) -> None:
    """Print what differs from the defaults; secrets are masked by their type, and by value wherever else they stand."""
    scrub = Redactor(settings.secrets).text
    say()
    used = settings_in_use(settings)
    say("Settings other than the defaults:" if used else "All settings are the defaults.")
    for key, value in used:
        say(f"  {key} = {scrub(write_duration(value) if isinstance(value, timedelta) else str(value))}")


def settings_in_use(settings: BaseModel, above: str = "") -> list[tuple[str, object]]:
    """Return every setting that differs from its default, by its path."""
    found: list[tuple[str, object]] = []
    for key, field in type(settings).model_fields.items():
        value, path = getattr(settings, key), f"{above}.{key}".strip(".")
        if isinstance(value, BaseModel):
            found += settings_in_use(value, path)
        elif isinstance(value, dict):
            tables = {name: inside for name, inside in value.items() if isinstance(inside, BaseModel)}
            found += [each for name, inside in tables.items() for each in settings_in_use(inside, f"{path}.{name}")]
            found += [(f"{path}.{name}", inside) for name, inside in value.items() if name not in tables]
        elif value != field.default:
            found.append((path, value))
    return found
