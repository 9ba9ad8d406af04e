"""What a handler is told besides the state and the event: the run's contract, its people, its channels, the rules."""

from datetime import timedelta

from bot.model.contract import Basis, Contract
from bot.model.delivery import ChannelName
from bot.model.ladder import Ladders
from bot.model.person import Person
from bot.model.promotion import is_on_record
from bot.model.record import Record
from bot.model.run import RunState
from bot.model.update import Standing, UpdateKind
from bot.model.value import Value

STANDS_STILL = ("progress.",)
"""How the checks begin whose open incident says that no step is made."""


class Rules(Value):
    """The settings that decisions depend on."""

    cadence: timedelta
    request_expires: timedelta
    request_reminder: timedelta
    status_every: timedelta
    grant_lasts: timedelta = timedelta(hours=1)
    """How long a yes counts; a relaunch that could not begin within it asks again."""
    timezone: str = "UTC"
    ladders: Ladders | None = None
    """How people are reached who give no sign; None leaves it at bringing a request up now and then."""
    mailed: frozenset[UpdateKind] = frozenset()
    """The kinds of news that are mailed too."""
    can_seal: bool = True
    """Whether the tag that seals a finished run can be created: GitHub is set up."""


class Context(Value):
    """One run's surroundings."""

    contract: Contract
    people: tuple[Person, ...]
    channels: tuple[ChannelName, ...]
    kept_out: tuple[ChannelName, ...] = ()
    """Channels that this run is not told on, as a bounded diagnostic is not on GitHub."""
    rules: Rules
    alerts: tuple[ChannelName, ...] = ()
    """Those in which nobody answers, for what is brought to people there on purpose."""

    def channels_for(self, kind: UpdateKind) -> tuple[ChannelName, ...]:
        """Return where news of a kind goes."""
        is_mailed = kind in self.rules.mailed and ChannelName.EMAIL in self.alerts
        return (*self.channels, ChannelName.EMAIL) if is_mailed else self.channels

    @property
    def cadence(self) -> timedelta:
        return self.contract.cadence.check or self.rules.cadence


def channels_of(
    contract: Contract, record: Record | None, channels: tuple[ChannelName, ...]
) -> tuple[ChannelName, ...]:
    """Return where a run is told of: a bounded diagnostic gets no issue of its own while people talk elsewhere.

    Args:
        contract: of the run.
        record: the run, which may have been promoted, or have an issue already; None when nothing is on record.
        channels: all that there are.
    """
    talk = tuple(name for name in channels if name is not ChannelName.GITHUB)
    has_issue = record is not None and record.posted_at(ChannelName.GITHUB, "thread") is not None
    if not talk or has_issue or is_on_record(contract, record.run if record else None):
        return channels
    return talk


def everywhere(context: Context) -> Context:
    """Return the surroundings of a run that is told of on all channels from now on."""
    return context.model_copy(update={"channels": (*context.channels, *context.kept_out), "kept_out": ()})


def standing_of(record: Record, contract: Contract) -> Standing:
    """Return where the run is, as far as is known, for an update."""
    run, progress = record.run, record.run.progress
    is_still = any(i.is_open and i.check.startswith(STANDS_STILL) for i in record.incidents)
    contract = contract.ending_at(progress.final_step)
    return Standing(
        state=run.state,
        step=progress.step,
        final_step=contract.final_step,
        final_step_is_inferred=contract.basis_of("final_step") is Basis.INFERRED,
        loss=progress.loss,
        tokens_per_second=progress.tokens_per_second,
        usual_tokens_per_second=progress.usual_tokens_per_second,
        step_at=progress.step_at,
        checkpoint_step=progress.checkpoint_step,
        checkpoint_at=progress.checkpoint_at,
        eta=progress.eta(contract.final_step) if run.state is RunState.RUNNING and not is_still else None,
        job_id=record.instance.job_id if record.instance else None,
        checked_at=run.last_checked_at,
        links=_links(record),
        gaps=run.gaps,
    )


def _links(record: Record) -> tuple[tuple[str, str], ...]:
    issue = record.posted_at(ChannelName.GITHUB, "thread")
    known = (("W&B", record.run.tracker_url), ("issue", issue.link if issue else ""))
    return tuple((label, address) for label, address in known if address.startswith(("https://", "http://")))
