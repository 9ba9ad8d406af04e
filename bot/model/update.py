"""What people are told: one content, rendered for each channel (law 7)."""

from datetime import timedelta
from enum import StrEnum

from pydantic import AwareDatetime

from bot.model.chart import Chart
from bot.model.ladder import Page
from bot.model.run import RunState
from bot.model.value import PersonName, RunId, Value
from bot.model.verdict import Severity


class UpdateKind(StrEnum):
    """What kind of news it is; channels may show kinds differently but never drop one."""

    WATCHING = "watching"
    """Hero begins to look after a run: the first message of its thread."""
    LAUNCHED = "launched"
    FAILED = "failed"
    RELAUNCHED = "relaunched"
    MILESTONE = "milestone"
    COMPLETED = "completed"
    ROUTINE_STATUS = "routine_status"
    LIVE_STATUS = "live_status"
    """The one message that is edited in place and makes nobody's phone ring."""
    INCIDENT_OPENED = "incident_opened"
    INCIDENT_RESOLVED = "incident_resolved"
    REQUEST_ASKED = "request_asked"
    REQUEST_REMINDER = "request_reminder"
    REQUEST_ANSWERED = "request_answered"
    ACTION_PROGRESS = "action_progress"
    ESCALATION = "escalation"
    """Something has waited for a sign of a person, and is brought to them once more or in another way."""
    ANSWER = "answer"
    """The answer to a command or a reply."""
    NOTICE = "notice"
    """About Hero itself: a channel lost, a disk full."""


class Standing(Value):
    """Where the run is, as far as is known, when the update was made. None is shown as unknown."""

    state: RunState
    step: int | None = None
    final_step: int | None = None
    final_step_is_inferred: bool = False
    loss: float | None = None
    tokens_per_second: float | None = None
    usual_tokens_per_second: float | None = None
    """What the throughput is held against; None is not shown."""
    step_at: AwareDatetime | None = None
    """When the step was logged; the time left counts from then."""
    checkpoint_step: int | None = None
    checkpoint_at: AwareDatetime | None = None
    eta: timedelta | None = None
    job_id: str | None = None
    checked_at: AwareDatetime | None = None
    links: tuple[tuple[str, str], ...] = ()
    """What to open for more, as label and address: the tracker, the run's issue."""
    gaps: tuple[str, ...] = ()
    """What could not be read, each with its reason; always shown when there is any."""


class Choice(Value):
    """A request's buttons and how to answer in words."""

    request: str
    """``R7``."""
    is_open: bool
    """False once it is decided, expired or void: buttons disappear."""
    outcome: str = ""
    """Who decided what and when, once it is."""


class Update(Value):
    """One thing to tell.

    Every update names the run, the step, what happened, on what evidence, what comes next, and who is asked; rendering
    cuts evidence first and never the other parts.
    """

    kind: UpdateKind
    run_id: RunId | None
    """None only for notices and answers about Hero itself."""
    at: AwareDatetime
    severity: Severity = Severity.INFO
    headline: str
    """What happened, in one sentence."""
    standing: Standing | None = None
    evidence: tuple[str, ...] = ()
    """Facts and log lines, most telling first; plain text from outside, escaped by each channel."""
    plan: tuple[str, ...] = ()
    """A plan's lines, ``label: value``, never cut."""
    next: str = ""
    """What happens next, and by whom."""
    asked: PersonName | None = None
    """Who has to do something; mentioned by the channel."""
    also_asked: tuple[PersonName, ...] = ()
    """Who is asked beside them; mentioned too."""
    choice: Choice | None = None
    chart: Chart | None = None
    """A picture of the run, attached where a channel can."""
    page: Page | None = None
    """For a pager alone."""
