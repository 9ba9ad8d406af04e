"""``hero trial show``, ``plan`` and ``rehearse``: the trial of a live run, looked at from a shell. Changes nothing.

They work beside a Hero that runs or does not; agreeing, cutting over and rolling back are for chat, where the DRI is.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from bot.building_looks import build_looks
from bot.building_trial import build_planner, build_rehearser
from bot.clock import SystemClock
from bot.commands.configuration import load
from bot.commands.exits import Exit
from bot.commands.printing import say, say_json, say_table
from bot.commands.sight import open_store
from bot.contracts import BadContract
from bot.errors import ConfigurationError
from bot.logs import configure_logs
from bot.model.conduct import Trial
from bot.model.contract import Contract
from bot.model.planned import NoPlan
from bot.model.record import Record
from bot.model.rehearsal import GuardSays
from bot.model.run import Run
from bot.model.trial import Outcome, read_comparison
from bot.model.trialplan import TrialPlan
from bot.model.value import RunId
from bot.redaction import Redactor
from bot.rehearsing import Rehearser
from bot.render.text import clean
from bot.render.trial import comparison_lines
from bot.run_contracts import contracts_of, secrets_of
from bot.settings import Settings
from bot.store.store import Store
from bot.trial_errands import TrialPlanner, rehearse
from checks.trial.guards.guard import Group
from checks.trial.guards.judging import judge_guards, outcome_of
from handlers.trialplans import trial_lines

_LINE = 1000
_GATES = 40
_EXITS = {Outcome.PASS: Exit.DONE, Outcome.FAIL: Exit.BLOCKED, Outcome.CANNOT_TELL: Exit.UNKNOWN}
_MARKS = {Outcome.PASS: "✓", Outcome.FAIL: "✗", Outcome.CANNOT_TELL: "?"}


def show_trial(config: Path | None, run: str, *, as_json: bool) -> Exit:
    """Print how far the trial of a run is, as it is on record.

    Raises:
        ConfigurationError: the configuration is wrong, or nothing is on record of such a run.
        StoreError: the database cannot be read.
    """
    settings = load(config)
    trial = asyncio.run(_trial_of(settings, RunId(run)))
    if as_json:
        say_json(trial.model_dump(mode="json", exclude={"told"}) if trial else None)
        return Exit.DONE
    if trial is None:
        say(f"{run} has had no trial; `hero trial plan {run}` says what its contract describes")
        return Exit.DONE
    say(clean(f"{run}: the trial of {trial.plan.child_run_id} is at {trial.stage.replace('_', ' ')}", _LINE))
    if trial.why:
        say(clean(f"why: {trial.why}", _LINE))
    say_table(("stage", "since"), [(step.stage.value, f"{step.at:%Y-%m-%d %H:%M:%S} UTC") for step in trial.steps])
    for line in trial_lines(trial.plan):
        say(clean(line, _LINE))
    found = read_comparison(trial.compared)
    for line in comparison_lines(found, limit=_GATES) if found else ():
        say(clean(line, _LINE))
    for url in filter(None, (trial.report_url, trial.tracker_report_url)):
        say(clean(f"report: {url}", _LINE))
    return Exit.DONE


async def _trial_of(settings: Settings, run_id: RunId) -> Trial | None:
    """Return the newest trial of a run, also when it is the child that was named."""
    async with open_store(settings, SystemClock()) as store:
        record = await store.record(run_id) if store else None
        if record is None or store is None:
            raise ConfigurationError((f"nothing is on record of {run_id}; `hero runs` lists the runs",))
        if record.run.trial is None and record.trial_of is not None:
            record = await store.record(record.trial_of)
    return record.run.trial if record else None


def plan_trial_of(config: Path | None, run: str, *, as_json: bool) -> Exit:
    """Print the plan that the contract's ``[trial]`` comes to, and what its guards say; nobody is asked.

    Returns:
        0 it could be put to the DRI; 3 something speaks against it; 4 something needed is unknown.

    Raises:
        ConfigurationError: the configuration or the contract is wrong.
    """

    async def look(at: "_Sight") -> tuple[TrialPlan | NoPlan, tuple[GuardSays, ...]]:
        plan = await at.planner.plan(at.contract, at.record)
        if isinstance(plan, NoPlan):
            return plan, ()
        return plan, judge_guards(await at.rehearser.rehearse(at.contract, at.record, plan), (Group.PLAN,))

    plan, says = asyncio.run(_with_sight(config, run, look))
    if isinstance(plan, NoPlan):
        return _no_plan(plan, as_json=as_json)
    if as_json:
        say_json({"plan": plan.model_dump(mode="json"), "digest": plan.digest, "guards": [_row(each) for each in says]})
    else:
        for line in (*trial_lines(plan), f"digest: {plan.digest[:12]}"):
            say(clean(line, _LINE))
        say()
        _say_guards(says)
        say()
        is_ready = outcome_of(says) is Outcome.PASS
        asks = f"`/hero trial plan {run}` puts it to the DRI"
        say(f"{asks if is_ready else 'mend what is marked with ✗ or ? first'}; nothing was changed")
    return _EXITS[outcome_of(says)]


def rehearse_trial(config: Path | None, run: str, *, as_json: bool) -> Exit:
    """Run every guard dry, by the agreed plan or by the one that the contract describes.

    Returns:
        0 all pass; 3 one fails; 4 one cannot tell.

    Raises:
        ConfigurationError: the configuration or the contract is wrong.
    """

    async def look(at: "_Sight") -> tuple[GuardSays, ...] | NoPlan:
        return await rehearse(at.contract, at.record, at.planner, at.rehearser)

    says = asyncio.run(_with_sight(config, run, look))
    if isinstance(says, NoPlan):
        return _no_plan(says, as_json=as_json)
    if as_json:
        say_json([_row(each) for each in says])
    else:
        _say_guards(says)
        say()
        counts = {outcome: sum(each.outcome is outcome for each in says) for outcome in Outcome}
        passed, failed, unclear = (counts[each] for each in (Outcome.PASS, Outcome.FAIL, Outcome.CANNOT_TELL))
        say(f"{passed} guards pass, {failed} fail, {unclear} cannot tell; nothing was changed")
    return _EXITS[outcome_of(says)]


@dataclass(frozen=True)
class _Sight:
    """What a look from a shell has at hand."""

    contract: Contract
    record: Record
    planner: TrialPlanner
    rehearser: Rehearser


async def _with_sight[T](config: Path | None, run: str, look: Callable[[_Sight], Awaitable[T]]) -> T:
    settings, clock = load(config), SystemClock()
    configure_logs(level="error", redactor=Redactor(settings.secrets))
    contracts = contracts_of(settings, knows_people=False)
    contract = contracts.load(RunId(run))
    if isinstance(contract, BadContract):
        raise ConfigurationError(contract.problems)
    redactor = Redactor((*settings.secrets, *secrets_of(contract)))
    cadence = contract.cadence.model_copy(update={"check": contract.cadence.check or settings.bot.cadence})
    contract = contract.model_copy(update={"cadence": cadence})
    async with AsyncExitStack() as stack, open_store(settings, clock) as there:
        store = there
        if store is None:
            store = await Store.open("sqlite://", clock, redactor)
            stack.push_async_callback(store.close)
        looks = build_looks(settings, clock, stack, contracts=contracts, store=store, redactor=redactor)
        rehearser = build_rehearser(
            settings, clock, stack, looks=looks, contracts=contracts, store=store, redactor=redactor
        )
        record = await store.record(contract.run_id) or Record(run=Run(run_id=contract.run_id))
        planner = build_planner(settings, clock, looks=looks, contracts=contracts, redactor=redactor)
        return await look(_Sight(contract, record, planner, rehearser))


def _row(said: GuardSays) -> dict[str, object]:
    """Return what outsiders rely on."""
    return said.model_dump(mode="json")


def _say_guards(says: tuple[GuardSays, ...]) -> None:
    rows = [(_MARKS[each.outcome], each.guard, clean(each.detail, _LINE), clean(each.fix, _LINE)) for each in says]
    say_table(("", "guard", "says", "fix"), rows)


def _no_plan(plan: NoPlan, *, as_json: bool) -> Exit:
    if as_json:
        say_json({"plan": None, "reason": plan.reason, "fix": plan.fix, "is_unknown": plan.is_unknown})
    else:
        say(clean(f"no trial can be planned: {plan.reason}", _LINE))
        say(clean(plan.fix, _LINE))
    return Exit.UNKNOWN if plan.is_unknown else Exit.BLOCKED
