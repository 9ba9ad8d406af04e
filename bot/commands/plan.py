"""``hero plan RUN.toml``: the launch checklist of a contract, and exactly what a launch would do. Changes nothing.

Works beside a Hero that runs or does not, with and without a database, for a contract that lies anywhere.
"""

import asyncio
import shlex
from contextlib import AsyncExitStack
from pathlib import Path

from bot.building_looks import build_looks
from bot.clock import Clock, SystemClock
from bot.commands.configuration import DEFAULT
from bot.commands.exits import Exit
from bot.commands.printing import say, say_json
from bot.commands.sight import open_store
from bot.contracts import BadContract
from bot.errors import ConfigurationError
from bot.logs import configure_logs
from bot.model.contract import Contract
from bot.model.preflight import Decision, PreflightReport
from bot.planning import Planned, plan_run
from bot.redaction import Redactor
from bot.render.preflight import decision_words, finding_sign, say_finding, sign_of, value_lines
from bot.render.text import clean
from bot.run_contracts import contracts_of, secrets_of
from bot.settings import Settings, load_settings
from checks.preflight import ITEMS

_LINE = 2000


def show_plan(config: Path | None, run: str, *, as_json: bool) -> Exit:
    """Print the checklist and the plan.

    Args:
        config: the configuration file, when it was named.
        run: a contract's file; or a run's id, when ``runs/RUN_ID.toml`` is meant.
        as_json: for scripts.

    Returns:
        0 ready; 3 blocked, or the DRI has to accept something; 4 when nothing but what could not be read stands in the
        way; 2 for a contract that cannot be used.

    Raises:
        ConfigurationError: the configuration is wrong.
        StoreError: there is a database, and it cannot be read.
    """
    settings, path = _find(config, run)
    configure_logs(level="error", redactor=Redactor(settings.secrets))
    contract = contracts_of(settings, knows_people=False).read(path)
    if isinstance(contract, BadContract):
        return _refuse(contract, Redactor(settings.secrets), as_json=as_json)
    planned = asyncio.run(_plan(settings, contract, SystemClock()))
    if as_json:
        say_json(_row(planned))
    else:
        _show(contract, planned)
    return _exit(planned.report)


def _find(config: Path | None, run: str) -> tuple[Settings, Path]:
    """Return the settings, and the file of the contract that is meant.

    The settings are those that are named, else ``./hero.toml``, else the ``hero.toml`` beside the contract or beside
    the directory that holds it; without any the defaults and the environment hold.
    """
    path = Path(run)
    beside = (path.parent / "hero.toml", path.absolute().parent.parent / "hero.toml")
    found = config or next((each for each in (DEFAULT, *beside) if each.is_file()), None)
    settings = load_settings(found)
    if found is None and path.parent.name == "runs":
        settings = settings.model_copy(update={"bot": settings.bot.model_copy(update={"runs": path.parent})})
    if path.suffix != ".toml" and not path.exists():
        path = settings.bot.runs / f"{run}.toml"
    return settings, path


async def _plan(settings: Settings, contract: Contract, clock: Clock) -> Planned:
    """Look at the world as a launch would; what the contract's own variables keep secret is scrubbed too."""
    redactor = Redactor((*settings.secrets, *secrets_of(contract)))
    cadence = contract.cadence.model_copy(update={"check": contract.cadence.check or settings.bot.cadence})
    contract = contract.model_copy(update={"cadence": cadence})
    async with AsyncExitStack() as stack, open_store(settings, clock) as store:
        looks = build_looks(
            settings, clock, stack, contracts=contracts_of(settings, knows_people=False), store=store, redactor=redactor
        )
        planned = await plan_run(
            contract,
            await store.record(contract.run_id) if store else None,
            reader=looks.reader,
            launchers=looks.launchers,
            checklist=looks.checklist,
            redactor=redactor,
        )
    # Once more, with what only this contract's own variables tell to be secret.
    return Planned.model_validate(redactor.value(planned.model_dump(mode="json")))


def _exit(report: PreflightReport) -> Exit:
    if report.is_unknown:
        return Exit.UNKNOWN
    return Exit.DONE if report.decision is Decision.READY else Exit.BLOCKED


def _row(planned: Planned) -> dict[str, object]:
    """Return what outsiders rely on."""
    report = planned.report
    return {
        "decision": report.decision.value,
        "findings": [
            {"check": each.check, "severity": each.severity.value, "message": say_finding(each)}
            for each in report.findings
        ],
        "values": {each.name: {"value": each.value, "basis": each.basis} for each in report.values},
        "command": shlex.join(planned.command),
        "digest": planned.digest,
    }


def _show(contract: Contract, planned: Planned) -> None:
    report = planned.report
    say(f"{contract.run_id}: {decision_words(report)}")
    say()
    known = {item.id for item in ITEMS}
    for item in ITEMS:
        mine = tuple(each for each in report.findings if each.check == item.id)
        say(f"{sign_of(mine)} {item.title}")
        for each in mine:
            say(clean(f"    {finding_sign(each)} {say_finding(each)}", _LINE))
    for each in report.findings:
        if each.check not in known:
            say(clean(f"{finding_sign(each)} {say_finding(each)}", _LINE))
    say()
    for line in value_lines(report):
        say(clean(f"  {line}", _LINE))
    say()
    say(f"digest: {planned.digest or 'none: no plan can be made as it stands'}")


def _refuse(bad: BadContract, redactor: Redactor, *, as_json: bool) -> Exit:
    problems = tuple(redactor.text(each) for each in bad.problems)
    if not as_json:
        raise ConfigurationError(problems)
    findings = [{"check": "launch.contract", "severity": "critical", "message": each} for each in problems]
    say_json({"decision": Decision.BLOCKED.value, "findings": findings, "values": {}, "command": "", "digest": None})
    return Exit.USAGE
