"""The limits that a start-up is judged by, and the independent review."""

from collections.abc import Iterator

from bot.model.conduct import Review
from bot.model.durations import say_duration
from bot.model.reading import Gap, Unknown
from bot.model.rehearsal import Rehearsal
from bot.model.value import CheckId
from checks.trial.guards.guard import Group, Guard, Word, all_of, cannot_tell, fails, passes, unseen


def _watchdog(rehearsal: Rehearsal) -> Word:
    stated, reading = rehearsal.contract.trial.startup_limit, rehearsal.limits
    agreed = f"{say_duration(stated)} by [trial] startup_limit" if stated else ""
    if isinstance(reading, Unknown):
        if agreed and reading.reason is Gap.NOT_CONFIGURED:
            return passes(f"a start-up may take {agreed}; no launched configuration is read")
        return unseen(reading, "how long a start-up and a step may take")
    limits = reading.value
    startup = f"{say_duration(limits.startup)} by {limits.startup_source}" if limits.startup else agreed
    if not startup:
        return fails(
            "how long a start-up may take is stated nowhere",
            "state [trial] startup_limit: restore, compilation and prefetch together",
        )
    step = f"{say_duration(limits.step)} by {limits.step_source}" if limits.step else "as long as Hero's own limit says"
    return passes(f"a start-up may take {startup}, a step {step}")


def _review(rehearsal: Rehearsal) -> Word:
    review = rehearsal.review
    if review is None:
        return fails(
            "nobody independent has looked at it",
            "let somebody who neither decides nor submits read this list: `/hero trial reviewed`",
        )
    return all_of(f"{review.by}, {review.at:%Y-%m-%d %H:%M %Z}", _against_review(rehearsal, review))


def _against_review(rehearsal: Rehearsal, review: Review) -> Iterator[Word]:
    if review.by not in rehearsal.people:
        yield fails(f"{review.by}, who reviewed it, is nobody of [people]", "let somebody of [people] look at it")
    if review.by == rehearsal.plan.submitter:
        yield fails(f"{review.by} submits, and is not independent", "let somebody else look at it")
    if review.by == rehearsal.contract.dri:
        yield fails(f"{review.by} decides as the DRI, and is not independent", "let somebody else look at it")
    child = rehearsal.child
    if review.covers and child is not None and child.config_digest != review.covers:
        yield fails(
            f"the contract of {child.run_id} has changed since {review.by} reviewed it",
            "let somebody look at it as it is now: `/hero trial reviewed`",
        )
    if review.at > rehearsal.at:
        yield fails("the review is of a time that is still to come", "mend the clock, and let it be reviewed again")
    if rehearsal.agreed_at is None:
        yield cannot_tell(
            "when the plan was agreed is not known, so nothing was reviewed yet", "agree on the plan first"
        )
    elif review.at < rehearsal.agreed_at:
        yield fails("it was reviewed before the plan was agreed", "let it be reviewed again, as it was agreed")


WATCHDOG = Guard(
    id=CheckId("watchdog.known"),
    title="How long a start-up and a step may take is known",
    source='deploy checklist, "Execute the trial": read startup and step watchdog limits from the launch configuration',
    group=Group.REHEARSE,
    rule=_watchdog,
)
REVIEW = Guard(
    id=CheckId("review.recorded"),
    title="Somebody independent has reviewed the agreed plan",
    source='deploy checklist, "Rehearse preflight and rollback": obtain an independent review',
    group=Group.REHEARSE,
    rule=_review,
)
