"""The tables about what is read of a run: orchestrators, trackers, telemetry."""

from datetime import timedelta
from pathlib import Path

from pydantic import Field, SecretStr

from bot.model.durations import Duration
from bot.settings.section import ServiceSection


class IrisSettings(ServiceSection):
    """``[iris]``: the orchestrator, through its RPC when ``controller_url`` is given, else through its CLI."""

    controller_url: str | None = None
    """http(s) address of the controller."""

    config: Path | None = None
    """The cluster's configuration file, for ``iris --config``."""

    cluster: str | None = None
    """The cluster's name, for ``iris --cluster``."""

    cli: str = "iris"
    """How the CLI is called; may hold several words, e.g. ``uv run iris``."""

    token: SecretStr | None = None
    """Sent as a bearer token to the controller."""

    token_file: Path | None = None
    """A file that holds the token."""

    submit_deadline: Duration = timedelta(seconds=180)
    """How long a submission may take before its result counts as uncertain and the controller is asked."""

    log_lines: int = Field(default=3000, gt=0, le=20000)
    """How many of the newest log lines of the current instance are read."""

    client_age_warning: Duration = timedelta(days=10)
    """The controller refuses submissions of a client older than 14 days; Hero warns from this age on."""


class FinelogSettings(ServiceSection):
    """``[finelog]``: where trainers on Iris write their figures and signs of life."""

    url: str | None = None
    """http(s) address of a Finelog server; without it, the one behind the controller of ``[iris] controller_url``."""

    token: SecretStr | None = None
    """Sent as a bearer token; behind the controller that of ``[iris]`` is sent when this is not set."""

    token_file: Path | None = None
    """A file that holds the token."""


class WandbSettings(ServiceSection):
    """``[wandb]``: the experiment tracker, read through its public API."""

    entity: str | None = None
    """Whose projects are read when a contract does not say: a user or a team."""

    project: str | None = None
    """Which project is read when a contract does not say."""

    base_url: str = "https://api.wandb.ai"
    """Where the API is; dedicated and self-hosted servers have their own."""

    api_key: SecretStr | None = None
    """A key that may read the projects; from HERO_WANDB__API_KEY or ``api_key_file``."""

    api_key_file: Path | None = None
    """A file that holds the key and nothing else."""
