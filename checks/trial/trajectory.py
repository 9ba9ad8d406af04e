"""Whether a rolled-back run follows its own old trajectory. Pure."""

from bot.model.trial import Outcome
from bot.model.value import Value


class TrajectorySays(Value):
    """Whether the first replayed steps are consistent with those that were logged before."""

    outcome: Outcome
    detail: str
    pairs: int = 0
    mean_delta: float | None = None
    max_delta: float | None = None
    first_step: int | None = None
    last_step: int | None = None
