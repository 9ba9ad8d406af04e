"""The table about what this house demands of every launch."""

from pydantic import Field

from bot.model.preflight import LaunchRules
from bot.settings.section import Section

_OURS = LaunchRules()


class LaunchSettings(Section):
    """``[launch]``: what the launch checklist demands (manage-hero-run, "Launch")."""

    prefix: str = Field(default=_OURS.prefix, examples=["gs://marin-us-east5"])
    """Where durable outputs lie; a run writes below its ``users/NAME/``. Empty: not demanded."""

    cluster_prefixes: tuple[str, ...] = _OURS.cluster_prefixes
    """Parts of a path below the prefix that belong to a cluster and never to a run."""

    temporary_prefixes: tuple[str, ...] = _OURS.temporary_prefixes
    """Parts of a path that say: this is deleted by a lifecycle rule."""

    temporary_days: int = Field(default=_OURS.temporary_days, gt=0)
    """How many days such data lives at least, as the house's lifecycle rules say."""

    most_resume: int = Field(default=_OURS.most_resume, gt=0)
    """How many resume checkpoints may be kept without the DRI's word."""

    local_prefixes: tuple[str, ...] = _OURS.local_prefixes
    """Where data that is local to a node may lie."""

    @property
    def rules(self) -> LaunchRules:
        """The same as the checklist takes it."""
        return LaunchRules.model_validate(self.model_dump())
