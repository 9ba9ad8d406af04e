"""The other run of a trial: while it lives, this one is not launched by the ordinary policy. Pure."""

from collections.abc import Iterator

from bot.model.preflight import PreflightFinding, Preparation, Weight
from bot.model.reading import Unknown
from bot.model.value import CheckId
from checks.preflight.item import Item, Told, unseen


def judge(prepared: Preparation) -> Told:
    """Refuse a launch beside the other run of a trial, and one of which nobody can say whether it lives."""
    return Told(findings=tuple(_findings(prepared)))


def _findings(prepared: Preparation) -> Iterator[PreflightFinding]:
    for other in prepared.paired:
        if isinstance(other.live, Unknown):
            yield unseen(PAIRED.id, other.live, f"whether {other.run_id}, the other run of its trial, lives")
        elif other.live.value:
            names = ", ".join(other.live.value)
            yield PAIRED.finding(
                Weight.BLOCKS,
                f"{other.run_id}, the other run of its trial, lives: {names} (measured)",
                "one of the two trains: the cut-over or the rollback of a trial under way ends the other itself; after "
                f"the trial end it first, `/hero stop {other.run_id}`",
            )


PAIRED = Item(
    id=CheckId("launch.paired"),
    title="Of the two runs of a trial one trains",
    source='deploy checklist, "Rehearse preflight and rollback": launch refuses a live parent or child coordinator',
    judge=judge,
)
