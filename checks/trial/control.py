"""Whether the old run has recorded the whole matched control window. Pure."""

from bot.model.trial import Outcome
from bot.model.value import Value


class ControlSays(Value):
    """Whether the control is complete."""

    outcome: Outcome
    detail: str
    lines: tuple[str, ...] = ()
    last_step: int | None = None
