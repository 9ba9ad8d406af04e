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
