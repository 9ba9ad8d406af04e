"""The audit log's entries: append-only, one for whatever somebody may ask about later."""

from pydantic import AwareDatetime

from bot.model.value import RunId, Value


class AuditEntry(Value):
    """Who did what to what, and on what grounds."""

    at: AwareDatetime
    run_id: RunId | None
    who: str
    """A person's name, a platform account, or ``hero``."""
    what: str
    """snake_case, past tense: ``request_asked``, ``approval_refused``."""
    detail: str = ""
    """Text as it was seen, secrets scrubbed."""
    why: str = ""
    """Why it was refused, in the gate's own word (``not_the_dri``); empty for what was not."""
    digest: str = ""
    """Of the plan that it was about."""
    link: str = ""
    """Where the message stands by which it was done; empty when that is not known."""


ATTEMPTS = frozenset(
    {
        "approved",
        "approved_in_part",
        "approved_in_advance",
        "denied",
        "decision_refused",
        "decision_unclear",
        "decision_words_deleted",
        "approval_withdrawn",
        "yes_withdrawn",
        "allowed",
        "revoked",
        "handover_begun",
        "handover_declined",
        "handed_over",
        "command_refused",
    }
)
"""What is an attempt at a decision, also one that had no effect, or changes who decides: what ``hero audit`` shows."""
