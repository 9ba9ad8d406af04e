"""What every stage of a trial decides from, and what their decisions have in common. Pure."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.actions.trial_changes import say_changes
from bot.model.audit import AuditEntry
from bot.model.chart import Chart
from bot.model.conduct import Stage, Told, Trial
from bot.model.plan import Plan, Request, RequestState
from bot.model.record import Decision, Record, Telling
from bot.model.rehearsal import GuardSays
from bot.model.run import Run
from bot.model.trial import Outcome
from bot.model.trialplan import CutOverPlan, RollbackPlan
from bot.model.update import UpdateKind
from bot.model.verdict import Severity
from handlers import tellings
from handlers.context import Context
from handlers.trial.look import TrialLook

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_AGAIN = timedelta(minutes=30)
_MOOT = frozenset({RequestState.VOID, RequestState.WITHDRAWN})
"""What nobody has decided: what was asked held no more, or the yes to it was taken back. It is asked again."""


@dataclass(frozen=True)
class Scene:
    """One look at one trial, and the run as the transaction read it."""

    record: Record
    trial: Trial
    look: TrialLook
    context: Context
    at: datetime

    @property
    def child(self) -> str:
        return self.trial.plan.child_run_id

    def run(self, trial: Trial, *, told: bool = False) -> Run:
        """Return the run with the trial as it is now."""
        update: dict[str, object] = {"trial": trial}
        if told:
            update["last_told_at"] = self.at
        return self.record.run.model_copy(update=update)

    def keep(self, trial: Trial) -> Decision:
        """Return the decision that remembers the trial and tells nothing."""
        return Decision() if trial == self.trial else Decision(run=self.run(trial))

    def move(
        self,
        stage: Stage,
        headline: str,
        lines: tuple[str, ...] = (),
        next_: str = "",
        *,
        severity: Severity = Severity.INFO,
        chart: Chart | None = None,
        asks_dri: bool = False,
        **changes: object,
    ) -> Decision:
        """Return the decision that brings the trial to a stage and tells it."""
        trial = self.trial.reached(stage, self.at, told={}, **changes)
        run = self.run(trial, told=True)
        told = self.tell(f"{stage}", headline, lines, next_, severity=severity, chart=chart, asks_dri=asks_dri, run=run)
        why = f": {trial.why}" if trial.why else ""
        audit = self.note(f"trial_{stage}", f"trial of {self.child}{why}")
        return Decision(run=run, tell=(told,), audit=(audit,))

    def say(
        self,
        key: str,
        headline: str,
        lines: tuple[str, ...] = (),
        next_: str = "",
        *,
        about: tuple[str, ...],
        severity: Severity = Severity.INFO,
        chart: Chart | None = None,
        asks_dri: bool = False,
        trial: Trial | None = None,
    ) -> Decision:
        """Return the decision that tells something, once as long as ``about`` stays the same (law 7)."""
        trial = trial or self.trial
        # Counts move at each look, and are no news.
        digest = hashlib.sha256(_NUMBER.sub("#", "\n".join(about)).encode()).hexdigest()[:16]
        if not self._is_news(trial, key, digest):
            return self.keep(trial)
        after = trial.model_copy(update={"told": {**trial.told, key: Told(digest=digest, at=self.at)}})
        run = self.run(after, told=True)
        told = self.tell(
            f"{key}/{digest}/{self.at.isoformat()}",
            headline,
            lines,
            next_,
            severity=severity,
            chart=chart,
            asks_dri=asks_dri,
            run=run,
        )
        return Decision(run=run, tell=(told,))

    def _is_news(self, trial: Trial, key: str, digest: str) -> bool:
        """Whether it is told: what is said by turns, as while a service comes and goes, is told once in a while."""
        last = trial.told.get(key)
        if last is None or last.digest != digest:
            return True
        is_newest = all(other.at <= last.at for other in trial.told.values())
        return not is_newest and self.at - last.at >= _AGAIN

    def tell(
        self,
        key: str,
        headline: str,
        lines: tuple[str, ...],
        next_: str,
        *,
        severity: Severity,
        chart: Chart | None,
        asks_dri: bool,
        run: Run,
    ) -> Telling:
        return tellings.tell(
            self.context,
            self.record.model_copy(update={"run": run}),
            self.at,
            kind=UpdateKind.ACTION_PROGRESS,
            key=f"trial/{self.trial.request}/{key}",
            headline=f"trial of {self.child}: {headline}",
            severity=severity,
            evidence=lines,
            next_=next_,
            chart=chart,
            asks_dri=asks_dri,
        )

    def note(self, what: str, detail: str) -> AuditEntry:
        return AuditEntry(at=self.at, run_id=self.record.run_id, who="hero", what=what, detail=detail)

    def asked(self, kind: str) -> Request | None:
        """Return the newest request of a kind that this trial has put."""
        mine = (r for r in reversed(self.record.requests) if r.plan.kind == kind and r.number > self.trial.request)
        return next(mine, None)

    def put(self, plan: Plan, reason: str, extra: tuple[str, ...], *, anew: bool = False) -> Decision:
        """Put a plan to the DRI, unless that very plan waits for an answer, or has got one.

        A question whose plan has changed is voided and put anew. One that was answered with no, or has expired, is put
        again only when somebody asked for that.

        Args:
            plan: what would be done.
            reason: why it is asked.
            extra: what helps to decide and is no part of the plan.
            anew: whether an answer that was given does not end it, since what was granted has failed.
        """
        before = self.asked(plan.kind)
        voided: tuple[Request, ...] = ()
        closed: tuple[Telling, ...] = ()
        if before is not None and before.state is RequestState.OPEN:
            if before.digest == plan.digest and before.dri == self.context.contract.dri:
                return self.keep(self.trial)
            note = f"what would be done has changed since it was asked: {_difference(before, plan)}"[:500]
            void = before.model_copy(update={"state": RequestState.VOID, "decided_at": self.at, "note": note})
            voided, closed = (void,), (tellings.request_closed(self.context, self.record, void, self.at),)
        elif before is not None and before.state not in _MOOT and not (anew or self.trial.question_wanted_by):
            return self.keep(self.trial)
        request = self.request(plan, reason)
        run = self.run(self.trial.model_copy(update={"question_wanted_by": None}), told=True)
        told = tellings.request_asked(self.context, self.record, request, self.at, extra)
        audit = self.note("request_asked", f"{request.name} to {request.dri}, plan {request.digest}: {reason}")
        return Decision(run=run, requests=(*voided, request), tell=(*closed, told), audit=(audit,))

    def request(self, plan: Plan, reason: str) -> Request:
        return Request(
            number=self.record.next_request,
            run_id=self.record.run_id,
            plan=plan,
            reason=reason,
            incident=None,
            dri=self.context.contract.dri,
            asked_at=self.at,
            expires_at=self.at + self.context.rules.request_expires,
        )

    def withdraw(self, kind: str, why: str) -> tuple[tuple[Request, ...], tuple[Telling, ...]]:
        """Return what takes an open question of a kind back; nothing when none is open."""
        open_ = self.asked(kind)
        if open_ is None or open_.state is not RequestState.OPEN:
            return (), ()
        gone = open_.model_copy(update={"state": RequestState.WITHDRAWN, "decided_at": self.at, "note": why[:500]})
        return (gone,), (tellings.request_closed(self.context, self.record, gone, self.at),)


def _difference(before: Request, plan: Plan) -> str:
    """Say what has changed of a plan, field by field."""
    if before.digest == plan.digest:
        return "another DRI decides"
    if isinstance(before.plan, CutOverPlan | RollbackPlan) and isinstance(plan, CutOverPlan | RollbackPlan):
        return say_changes(before.plan, plan)
    return "the gates say something else now"


def not_passing(guards: tuple[GuardSays, ...]) -> tuple[str, ...]:
    """Return the lines of the guards that do not pass, those that fail first."""
    rank = {Outcome.FAIL: 0, Outcome.CANNOT_TELL: 1}
    left = [each for each in guards if each.outcome is not Outcome.PASS]
    return tuple(each.line for each in sorted(left, key=lambda each: rank[each.outcome]))
