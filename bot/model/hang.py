"""What tells one silent hang from another: who uses the processor, where the threads stand, which rank is behind.

Gathered from what the orchestrator and the trainer record anyway; nothing is asked of the tasks themselves. On which
nodes the tasks run and ran is in ``bot.model.job``.
"""

from pydantic import AwareDatetime

from bot.model.reading import Reading
from bot.model.value import Value


class TaskUse(Value):
    """What one task's newest attempt used, over the last minutes."""

    task_id: str
    cores: float
    """The median of its samples."""
    memory_bytes: int
    """The most of its samples."""
    accelerator_fraction: float | None = None
    """The median; None where nobody records it."""
    samples: int
    last_at: AwareDatetime


class ThreadStack(Value):
    """Where one thread stood."""

    name: str
    is_idle: bool | None
    """By the profiler's word: it waits, and does not run. None when it did not say."""
    frames: tuple[str, ...]
    """The innermost first, as ``function (file:line)``; only the top of the stack."""


class TaskStack(Value):
    """The newest thread dump of one task's newest attempt that is on record."""

    task_id: str
    at: AwareDatetime
    threads: tuple[ThreadStack, ...]

    @property
    def main(self) -> ThreadStack | None:
        """The main thread of the first process; the first thread where none is called so."""
        named = (thread for thread in self.threads if thread.name == "MainThread")
        return next(named, self.threads[0] if self.threads else None)


class Counted(Value):
    """How often the ranks of one communicator have called one collective, where they differ."""

    communicator: str
    collective: str
    fewest: int
    most: int


class OddRank(Value):
    """A rank that is missing, in error, or alone with its count."""

    communicator: str
    rank: str
    host: str
    says: tuple[str, ...]


class RankStatistics(Value):
    """What NCCL's own service for reliability (RAS) told of all ranks, in its newest answer that is on record.

    One answer alone is no verdict: ranks may be apart for a moment while collectives run.
    """

    at: AwareDatetime
    failed: str = ""
    """Why the trainer's question got no answer; then nothing below is known."""
    trigger: str = ""
    """``periodic``, or ``stall`` when the trainer's watchdog asked."""
    communicators: int | None = None
    disagreeing: int = 0
    """Communicators whose ranks differ in how far they are."""
    missing: int = 0
    unresponsive: int = 0
    considered_dead: int = 0
    counted: tuple[Counted, ...] = ()
    """The farthest apart first."""
    odd: tuple[OddRank, ...] = ()
    is_whole: bool = True
    """Whether all of the answer arrived; if not, what is absent here may only be lost."""


class HangEvidence(Value):
    """What was on record of a run that stands still. Each part is known, or unknown, by itself."""

    window_began_at: AwareDatetime
    """``use`` is of the time since then."""
    use: Reading[tuple[TaskUse, ...]]
    """Known(()) when the tasks were asked for and nothing is recorded of them in that time."""
    stacks: Reading[tuple[TaskStack, ...]]
    """Known(()) when no thread dump of these attempts is on record."""
    ranks: Reading[RankStatistics | None]
    """Known(None) when the trainer has recorded no statistics of ranks lately."""
