"""Hands each event to its handler and commits what it decides, in one transaction (law 4).

Events from outside wait in the store until a transaction has handled them: ``intake.py``. What Hero itself notices (a
check's verdicts, a step's outcome, the time) is handled here, at once.
"""

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime

import structlog

from bot.actions.checklist import with_checklist
from bot.actions.ports import Launcher
from bot.actions.relaunch import plan_relaunch, shape_of
from bot.channels.ports import Channel
from bot.clock import Clock
from bot.contracts import BadContract, Contracts
from bot.errors import StoreError
from bot.intake import Intake
from bot.means import Means
from bot.model.action import Action, ActionState
from bot.model.audit import AuditEntry
from bot.model.chronicle import HistoryWritten
from bot.model.conduct import STAGE_WORDS
from bot.model.contract import Contract
from bot.model.delivery import ONE_WAY, ChannelName, Delivery, Never, Target
from bot.model.errand import Errand, Found
from bot.model.event import RunChecked
from bot.model.person import Person
from bot.model.plan import RequestState
from bot.model.planned import NoPlan, RelaunchPlan
from bot.model.preflight import PreflightReport
from bot.model.record import Decision, Record, Telling
from bot.model.run import Instance, RunState
from bot.model.snapshot import Snapshot
from bot.model.update import UpdateKind
from bot.model.value import RunId
from bot.redaction import Redactor
from bot.store.leases import Lease
from bot.store.store import Store
from handlers.checked import decide_checked
from handlers.context import Rules
from handlers.errands import decide_found
from handlers.outcome import decide_outcome, voided_request
from handlers.promoted import promoted
from handlers.recorded import recorded_without_contract
from handlers.terminal import remind_at_start
from handlers.timers import decide_time_passed, is_status_due
from handlers.trial import decide_trial
from handlers.trial.look import TrialLook

log = structlog.get_logger()

_ONLY_THERE = {UpdateKind.LIVE_STATUS, UpdateKind.ANSWER}
"""What makes no sense in another channel: a picture of now, and what was answered to one person in one place."""


class Dispatcher:
    """The only caller of handlers, with its intake."""

    def __init__(
        self,
        *,
        store: Store,
        contracts: Contracts,
        launchers: Mapping[str, Launcher],
        channels: Mapping[ChannelName, Channel],
        people: tuple[Person, ...],
        rules: Rules,
        redactor: Redactor,
        clock: Clock,
        check_soon: Callable[[RunId], None],
        alarm: Callable[[StoreError], None],
        lease: Callable[[], Lease | None],
    ) -> None:
        """Take the parts.

        Args:
            store: where decisions are committed.
            contracts: read anew for every event.
            launchers: plans are made with them; nothing is launched here.
            channels: asked who an account is, and told through the store.
            people: of the settings.
            rules: settings that decisions depend on.
            redactor: for what is shown of commands.
            clock: now.
            check_soon: makes a run due.
            alarm: hears that the database refuses.
            lease: this process's right to write.
        """
        self._on = Means(
            store=store,
            contracts=contracts,
            channels=channels,
            people=people,
            rules=rules,
            redactor=redactor,
            clock=clock,
            lease=lease,
        )
        self._launchers = launchers
        self._check_soon = check_soon
        self._since = clock.now()
        self._intake = Intake(self._on, check_soon=check_soon, alarm=alarm)

    async def run(self) -> None:
        """Handle what is in the inbox, for ever; what a crash left there comes first."""
        await self._intake.run()

    async def handle_pending(self) -> int:
        """Handle every event that is due, oldest first; return how many were done."""
        return await self._intake.handle_pending()

    async def remind_console(self) -> None:
        """Show what waits for an answer at the terminal that Hero was started in."""
        at = self._on.clock.now()
        async with self._on.transaction() as tx:
            for record in await tx.all_records():
                contract = self._on.contracts.load(record.run_id)
                if isinstance(contract, BadContract):
                    continue
                reminder = remind_at_start(self._on.context(contract, record), record, at)
                if reminder is not None:
                    await tx.apply(Decision(tell=(reminder,)), record.run_id, at)

    async def run_checked(self, contract: Contract, event: RunChecked) -> bool:
        """Commit what follows from one check of one run.

        Returns:
            Whether it has to be handed on once more with the launch checklist: a question for a launch follows from it,
            which nobody foresaw when the sources were read, and nothing was committed.
        """
        async with self._on.transaction() as tx:
            record = await tx.record(event.run_id)
            if _number(record.instance) != _number(event.snapshot.instance):
                # The run was launched while its sources were read: they tell of the launch before, and not of this one.
                log.info("check_outdated", run_id=event.run_id)
                self._check_soon(event.run_id)
                return False
            context = self._on.context(contract, record)
            decision = decide_checked(
                record,
                event,
                context,
                make_plan=self._planner(contract, event.preparation),
                shape=shape_of(contract, self._on.redactor),
            )
            if event.preparation is None and any(r.state is RequestState.OPEN for r in decision.requests):
                return True
            decision = promoted(
                record,
                decision,
                context,
                event.snapshot,
                shape=shape_of(contract, self._on.redactor),
                lineage=event.lineage,
            )
            decision = self._on.recorded(record, decision, context, event.snapshot.at, event.snapshot)
            await tx.apply(decision, event.run_id, event.snapshot.at)
            return False

    async def errand_found(self, contract: Contract, errand: Errand, found: Found) -> None:
        """Commit what follows from an errand that was looked into."""
        at = self._on.clock.now()
        async with self._on.transaction() as tx:
            record = await tx.record(contract.run_id)
            context = self._on.context(contract, record)
            decision = decide_found(record, errand, found, context, at)
            await tx.apply(self._on.recorded(record, decision, context, at), contract.run_id, at)

    async def trial_looked(self, contract: Contract, look: TrialLook) -> None:
        """Commit what follows from a look at the run's trial; one that has moved on is looked at again at once."""
        at = self._on.clock.now()
        async with self._on.transaction() as tx:
            record = await tx.record(contract.run_id)
            context = self._on.context(contract, record)
            decision = decide_trial(record, look, context, at)
            if decision == Decision():
                return
            await tx.apply(self._on.recorded(record, decision, context, at), contract.run_id, at)
        before, after = record.run.trial, decision.run.trial if decision.run else None
        if before is not None and after is not None and after.stage is not before.stage:
            self._check_soon(contract.run_id)

    def _planner(
        self, contract: Contract, judged: PreflightReport | None
    ) -> Callable[[Snapshot, Record], RelaunchPlan | NoPlan]:
        launcher = self._launchers.get(contract.orchestrator.kind)

        def make(seen: Snapshot, record: Record) -> RelaunchPlan | NoPlan:
            if launcher is None:
                kind = contract.orchestrator.kind
                return NoPlan(
                    reason=f"{kind} is not configured", fix=f"configure [{kind}] in hero.toml", is_unknown=False
                )
            plan = plan_relaunch(contract, seen, record.instance, launcher, self._on.redactor)
            return with_checklist(plan, judged)

        return make

    async def contract_broke(self, bad: BadContract) -> None:
        """Note that a run cannot be watched, and tell it once for each thing that is wrong."""
        at = self._on.clock.now()
        reason = self._on.redactor.text("; ".join(bad.problems))
        async with self._on.transaction() as tx:
            record = await tx.record(bad.run_id)
            if record.run.state is RunState.BLOCKED and record.run.blocked_reason == reason:
                return
            run = record.run.model_copy(update={"state": RunState.BLOCKED, "blocked_reason": reason})
            told = self._on.notice(
                f"contract/{bad.run_id}/{_short_digest(reason)}/{at.isoformat()}",
                f"{bad.run_id} is not watched: its contract cannot be used",
                bad.problems,
                "mend the file; Hero reads it again at the next check, and the other runs are not affected"
                + _say_blind_trial(record),
                at,
            )
            await tx.apply(Decision(run=run, tell=(told,)), bad.run_id, at)

    def decide_action(self, record: Record, action: Action, at: datetime) -> Decision:
        """Return what follows from an action; called by the executor inside its own transaction."""
        contract = self._on.contracts.load(action.run_id)
        if isinstance(contract, BadContract):
            return recorded_without_contract(record, self._action_without_contract(record, action, contract, at))
        if action.state is not ActionState.GRANTED:
            self._check_soon(action.run_id)
        shape = shape_of(contract, self._on.redactor)
        context = self._on.context(contract, record)
        decision = decide_outcome(record, action, context, at, shape=shape)
        return self._on.recorded(record, decision, context, at)

    def _action_without_contract(self, record: Record, action: Action, bad: BadContract, at: datetime) -> Decision:
        """Keep the action and say its end; without the contract there is no more to be said of the run."""
        what = "action_moved" if action.state is ActionState.GRANTED else "action_ended"
        detail = f"action {action.number} {action.state}: {action.noted}"
        audit = AuditEntry(at=at, run_id=action.run_id, who="hero", what=what, detail=detail)
        if action.state is ActionState.GRANTED:
            return Decision(actions=(action,), audit=(audit,))
        told = self._on.notice(
            f"action/{action.number}/without-contract",
            f"R{action.grant.request} of {action.run_id} was approved, and stopped: its contract cannot be used",
            (*(f"done before: {r.step}" for r in action.records if r.is_done), *bad.problems),
            "mend the file; Hero then checks the run, and asks afresh if nothing was done yet",
            at,
        )
        return Decision(actions=(action,), requests=voided_request(record, action), tell=(told,), audit=(audit,))

    async def time_passed(self) -> None:
        """Let the clock alone have its effects on every run that has a contract or is on record."""
        at = self._on.clock.now()
        for run_id in dict.fromkeys(
            (*self._on.contracts.run_ids(), *(run.run_id for run in await self._on.store.runs()))
        ):
            contract = self._on.contracts.load(run_id)
            if isinstance(contract, BadContract):
                continue
            async with self._on.transaction() as tx:
                record = await tx.record(run_id)
                context = self._on.context(contract, record)
                noise = await tx.told(run_id, at) if is_status_due(record, context, at) else None
                decision = decide_time_passed(record, context, at, since=self._since, noise=noise)
                if decision != Decision():
                    await tx.apply(self._on.recorded(record, decision, context, at), run_id, at)

    async def history_written(self, run_id: RunId, written: HistoryWritten, *, is_given_up: bool) -> None:
        """Put the outcome of the owner's run-history command on record; say it when it is not tried again."""
        at = self._on.clock.now()
        told = self._on.notice(
            f"history/{run_id}/{written.command}/{written.about}",
            f"{run_id}: the [history] command `{written.command}` failed, and is not tried again",
            (written.detail,),
            "mend it and run it by hand; the run itself is not affected",
            at,
        )
        decision = Decision(happened=(written,), tell=(told,) if is_given_up else ())
        contract = self._on.contracts.load(run_id)
        async with self._on.transaction() as tx:
            if not isinstance(contract, BadContract):
                record = await tx.record(run_id)
                decision = self._on.recorded(record, decision, self._on.context(contract, record), at)
            await tx.apply(decision, run_id, at)

    async def delivery_failed(self, delivery: Delivery, outcome: Never) -> None:
        """Bring a message that a channel can't take to people through the other channels."""
        at = self._on.clock.now()
        others = tuple(name for name in self._on.conversations if name is not delivery.channel)
        if not others and ChannelName.EMAIL in self._on.channels and delivery.channel is not ChannelName.EMAIL:
            others = (ChannelName.EMAIL,)
        if not others or delivery.update.kind in _ONLY_THERE:
            return
        why = f"(not delivered to {delivery.channel}: {outcome.reason}; {outcome.fix})"
        update = delivery.update.model_copy(update={"next": f"{delivery.update.next} {why}".strip()})
        key = f"undelivered/{delivery.key}"
        audit = AuditEntry(
            at=at,
            run_id=delivery.run_id,
            who="hero",
            what="delivery_given_up",
            detail=f"{delivery.key}: {outcome.reason}",
        )
        already = delivery.key.startswith("undelivered/")
        # Ids of people and places are the platform's own; a page's slot is the pager's.
        target = Target() if delivery.channel in ONE_WAY else Target(slot=delivery.target.slot)
        told = () if already else (Telling(update=update, key=key, channels=others, target=target),)
        async with self._on.transaction() as tx:
            await tx.apply(Decision(tell=told, audit=(audit,)), delivery.run_id, at)

    async def notice(self, key: str, headline: str, lines: tuple[str, ...], next_: str) -> None:
        """Tell something about Hero itself, once for each key."""
        at = self._on.clock.now()
        async with self._on.transaction() as tx:
            await tx.apply(Decision(tell=(self._on.notice(key, headline, lines, next_, at),)), None, at)


def _number(instance: Instance | None) -> int | None:
    return instance.number if instance else None


def _say_blind_trial(record: Record) -> str:
    trial = record.run.trial
    if trial is None or trial.is_over:
        return ""
    return f"; ITS TRIAL IS NOT LOOKED AT MEANWHILE ({trial.plan.child_run_id}: {STAGE_WORDS[trial.stage]})"


def _short_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
