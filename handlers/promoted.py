"""A bounded diagnostic outgrows the light path: from then on its record is kept where others find it. Pure."""

from collections.abc import Mapping

from bot.model.promotion import why_promoted
from bot.model.record import Decision, Record
from bot.model.snapshot import Snapshot
from handlers import tellings
from handlers.context import Context, everywhere
from handlers.promises import promise_of


def promoted(
    before: Record, decision: Decision, context: Context, seen: Snapshot, *, shape: Mapping[str, str], lineage: str
) -> Decision:
    """Return what a check decided with the promotion that follows from it, told once, everywhere and with its reason.

    Args:
        before: the run as this transaction read it.
        decision: of the check.
        context: the run's contract and channels.
        seen: what was read.
        shape: the contract's launch-shaping fields, secrets scrubbed.
        lineage: how the run changes the lineage of another; empty when it does not.
    """
    run = decision.run or before.run
    changed = {each.number: each for each in (*before.instances, *decision.instances)}
    after = before.model_copy(update={"run": run, "instances": tuple(changed[number] for number in sorted(changed))})
    reason = why_promoted(context.contract, after, seen, promised=promise_of(context.contract, shape), lineage=lineage)
    if not reason:
        return decision
    run = run.model_copy(update={"promoted": reason, "last_told_at": seen.at})
    after = after.model_copy(update={"run": run})
    telling = tellings.promoted(everywhere(context), after, reason, seen.at)
    return decision.model_copy(update={"run": run, "tell": (*decision.tell, telling)})
