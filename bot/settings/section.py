"""What the tables of ``hero.toml`` have in common."""

from datetime import timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from bot.model.durations import Duration


class Section(BaseModel):
    """One table of ``hero.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    @field_validator("*")
    @classmethod
    def _lasts(cls, value: object, info: ValidationInfo) -> object:
        """Refuse what would check, ask or post without a pause, or give up before it has begun."""
        if isinstance(value, timedelta) and (
            value < timedelta() or (not value and info.field_name not in _MAY_BE_ZERO)
        ):
            msg = "must be longer than zero; write it as 30s, 15m or 1h30m"
            raise ValueError(msg)
        return value


def known_timezone(value: str) -> str:
    """Return the name of a time zone.

    Raises:
        ValueError: there is none of that name.
    """
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError):
        msg = f"{value!r} is no time zone; write it as America/Los_Angeles or UTC"
        raise ValueError(msg) from None
    return value


_MAY_BE_ZERO = frozenset({"jitter", "thread"})


class ServiceSection(Section):
    """A service that is asked over the network."""

    deadline: Duration = timedelta(seconds=20)
    """How long one question may take before its answer is Unknown."""

    threads: int = Field(default=4, gt=0, le=64)
    """Worker threads for this service's blocking client; its own, so that it starves nobody else."""
