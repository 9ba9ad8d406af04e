"""What Hero remembers of a run, and what a handler decides about it. Handlers are functions from one to the other."""

from bot.model.action import Action
from bot.model.audit import AuditEntry
from bot.model.chronicle import Happening
from bot.model.conduct import Ending, Stage
from bot.model.delivery import ChannelName, Posted, Target
from bot.model.history import VerdictChange
from bot.model.incident import Incident
from bot.model.plan import Request
from bot.model.run import Instance, Run
from bot.model.update import Update
from bot.model.value import CheckId, JobId, RunId, Value


class Record(Value):
    """Everything that is remembered of one run, as one transaction saw it."""

    run: Run
    instances: tuple[Instance, ...] = ()
    """Oldest first, the newest 50."""
    incidents: tuple[Incident, ...] = ()
    """Those not resolved."""
    requests: tuple[Request, ...] = ()
    """Every open one, the newest 20 others, and every one since a trial under way was agreed; oldest first."""
    actions: tuple[Action, ...] = ()
    """Every granted (unfinished) one, the newest 20 others, and every one of a trial under way; oldest first."""
    memories: dict[CheckId, str] = {}
    verdicts: dict[CheckId, VerdictChange] = {}
    """Each check's last verdict on record."""
    posted: tuple[Posted, ...] = ()
    trial_of: RunId | None = None
    """The run of whose trial this one is or was the child; None for every other run."""
    trial_stage: Stage | None = None
    """How far that trial is."""
    trial_ending: Ending | None = None
    """How it ended."""
    rollbacks: tuple[Action, ...] = ()
    """The rollbacks of that trial, which are on the old run's record and stop this one's job; oldest first."""
    next_incident: int = 1
    """Numbers that are free in this transaction; counted over all runs, since people say ``R7`` without a run."""
    next_request: int = 1
    next_action: int = 1

    @property
    def run_id(self) -> RunId:
        return self.run.run_id

    @property
    def instance(self) -> Instance | None:
        return self.instances[-1] if self.instances else None

    @property
    def jobs(self) -> tuple[JobId, ...]:
        """The jobs of all launches on record, oldest first, each once."""
        return tuple(dict.fromkeys(each.job_id for each in self.instances))

    @property
    def active_action(self) -> Action | None:
        """The action that is being carried out; there is never a second one of the same run."""
        return next((a for a in self.actions if a.state == "granted"), None)

    @property
    def is_on_trial(self) -> bool:
        """Whether a trial of this run, or one in which it is the child, is not closed yet."""
        trial = self.run.trial
        mine = trial is not None and not trial.is_over
        return mine or (self.trial_of is not None and self.trial_stage is not Stage.CLOSED)

    @property
    def held_by_trial(self) -> str:
        """Why the run is not launched by the ordinary policy now, whatever happens to it; empty when it may be.

        Source: deploy checklist, "Decide": the trial's gate overrides the ordinary retry policy.
        """
        trial = self.run.trial
        if trial is not None and trial.stage.is_cut_over:
            return f"its trial as {trial.plan.child_run_id} is under way: only a rollback launches it again"
        if self.trial_of is not None and self.trial_stage not in {Stage.GO, Stage.CLOSED}:
            return f"it is on trial in the place of {self.trial_of}: only the cut-over launches it"
        return ""

    @property
    def open_request(self) -> Request | None:
        """The newest request that waits for an answer."""
        return next((r for r in reversed(self.requests) if r.state == "open"), None)

    @property
    def open_relaunch(self) -> Request | None:
        """The request for a launch or relaunch that waits for an answer; there is never a second one of the run."""
        return next((r for r in reversed(self.requests) if r.state == "open" and r.plan.kind == "relaunch"), None)

    def posted_at(self, channel: ChannelName, slot: str) -> Posted | None:
        return next((p for p in self.posted if p.channel is channel and p.slot == slot), None)

    def roots(self, channel: ChannelName) -> frozenset[str]:
        """Return where the run is talked about in a channel: its conversation, and former ones."""
        return frozenset(
            p.message_id
            for p in self.posted
            if p.channel is channel and (p.slot == "thread" or p.slot.startswith("thread:"))
        )


class Telling(Value):
    """One update to be told; the store makes one delivery of it for each channel."""

    update: Update
    key: str
    """Unique for this piece of news, so that deciding the same thing twice tells it once."""
    channels: tuple[ChannelName, ...]
    target: Target = Target()
    replaces: tuple[str, ...] = ()
    """Keys of news that this makes untrue: what was not begun to be sent of them is dropped, since grave news goes
    first and an older doubt would arrive after its end."""


class Decision(Value):
    """What one event changes, committed in one transaction. Empty when nothing is new."""

    run: Run | None = None
    instances: tuple[Instance, ...] = ()
    """New or changed ones, by number."""
    incidents: tuple[Incident, ...] = ()
    requests: tuple[Request, ...] = ()
    actions: tuple[Action, ...] = ()
    memories: dict[CheckId, str] = {}
    verdicts: tuple[VerdictChange, ...] = ()
    tell: tuple[Telling, ...] = ()
    audit: tuple[AuditEntry, ...] = ()
    happened: tuple[Happening, ...] = ()
    """What is added to the run's record."""
    beside: dict[RunId, tuple[Happening, ...]] = {}
    """What is added to the records of other runs that this is about too."""
