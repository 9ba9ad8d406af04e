"""What a handler is told besides the state and the event: the run's contract, its people, its channels, the rules."""

from datetime import timedelta

from bot.model.contract import Basis, Contract
from bot.model.delivery import ChannelName
from bot.model.person import Person
from bot.model.record import Record
from bot.model.run import RunState
from bot.model.update import Standing
from bot.model.value import Value


class Rules(Value):
    """The settings that decisions depend on."""

    cadence: timedelta
    request_expires: timedelta
    request_reminder: timedelta
    status_every: timedelta
    grant_lasts: timedelta = timedelta(hours=1)
    """How long a yes counts; a relaunch that could not begin within it asks again."""
    timezone: str = "UTC"


class Context(Value):
    """One run's surroundings."""

    contract: Contract
    people: tuple[Person, ...]
    channels: tuple[ChannelName, ...]
    rules: Rules

    @property
    def cadence(self) -> timedelta:
        return self.contract.cadence.check or self.rules.cadence


def standing_of(record: Record, contract: Contract) -> Standing:
    """Return where the run is, as far as is known, for an update."""
    run, progress = record.run, record.run.progress
    contract = contract.ending_at(progress.final_step)
    return Standing(
        state=run.state,
        step=progress.step,
        final_step=contract.final_step,
        final_step_is_inferred=contract.basis_of("final_step") is Basis.INFERRED,
        loss=progress.loss,
        tokens_per_second=progress.tokens_per_second,
        checkpoint_step=progress.checkpoint_step,
        eta=progress.eta(contract.final_step) if run.state is RunState.RUNNING else None,
        job_id=record.instance.job_id if record.instance else None,
        checked_at=run.last_checked_at,
        gaps=run.gaps,
    )
