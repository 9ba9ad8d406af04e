"""The tables about Hero itself."""

from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from bot.model.durations import Duration
from bot.settings.section import Section, known_timezone


class BotSettings(Section):
    """``[bot]``: Hero itself."""

    database: str = "sqlite:///hero.db"
    """Where everything is remembered: ``sqlite:///PATH``, relative to the configuration file."""

    runs: Path = Path("runs")
    """The directory of contracts, one ``RUN_ID.toml`` a run; relative to the configuration file."""

    cadence: Duration = timedelta(minutes=15)
    """How often a run is checked whose contract does not say (manage-hero-run, "Operating Model")."""

    http: str = Field(default="127.0.0.1:8080", pattern=r"^\S+:\d{1,5}$", examples=["127.0.0.1:8080"])
    """``HOST:PORT`` where health, status and Slack's HTTP mode are served; port 0 lets the system choose."""

    public_url: str | None = Field(
        default=None, pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$", examples=["https://hero.example"]
    )
    """Under which people reach ``http`` from outside, e.g. through a proxy: links to the reports of trials begin with
    it. Without it such a report is told by the path of its file. Hero asks nobody who they are; the proxy has to."""

    timezone: str = "UTC"
    """In which people read times; inside, all is UTC."""

    check_deadline: Duration = timedelta(seconds=120)
    """Hard limit of one check of one run; a check that hangs is cut off here and the next one is due as usual."""

    jitter: Duration = timedelta(seconds=15)
    """Checks are spread by up to this much, at most a tenth of the cadence, so that runs do not ask in step."""

    request_expires: Duration = timedelta(hours=24)
    """How long a request waits for its answer."""

    request_reminder: Duration = timedelta(hours=4)
    """How often an unanswered request is brought up again."""

    status_every: Duration = timedelta(hours=24)
    """A routine status goes out when nothing else was told for so long (manage-hero-run, "Run Record")."""

    step_deadline: Duration = timedelta(minutes=10)
    """How long one step of an action may take, e.g. for a stopped job to be seen terminal."""

    restore_deadline: Duration = timedelta(minutes=60)
    """How long a relaunched job may take until it has loaded its checkpoint and trains."""

    posts_per_minute: int = Field(default=20, gt=0)
    """Loop guard: the most new messages in one thread in a minute, whatever the trigger."""

    poll: Duration = timedelta(seconds=5)
    """How often an action that waits for the world looks again."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """What is written to the log."""

    @field_validator("timezone")
    @classmethod
    def _exists(cls, value: str) -> str:
        return known_timezone(value)


class HeartbeatSettings(Section):
    """``[heartbeat]``: something outside that notices when Hero is dead."""

    url: str | None = None
    """Asked with GET every ``every``; healthchecks and Grafana OnCall have such."""

    every: Duration = timedelta(seconds=60)
    """How often."""
