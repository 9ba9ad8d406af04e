"""A checkout, looked at."""

from dataclasses import dataclass

from bot.model.harmless import is_harmless
from bot.sources.git.parsing import Entry, Status, say_path
from bot.sources.git.program import Place


@dataclass(frozen=True)
class Checkout:
    """A checkout, looked at: what the reading and the patch are both made from."""

    place: Place
    status: Status
    harmless: tuple[str, ...]

    @property
    def entries_that_count(self) -> tuple[Entry, ...]:
        """The entries whose paths could change what is trained."""
        return tuple(each for each in self.status.entries if not is_harmless(say_path(each.path), self.harmless))
