"""The tables about where people are: channels, and the accounts of persons."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from bot.model.durations import Duration
from bot.model.hours import HOURS_PATTERN, WORKING_WEEK, Weekday, WorkingHours
from bot.settings.alerts import Address
from bot.settings.section import Section, ServiceSection, known_timezone

_PEM = re.compile(r"-----BEGIN (?:RSA )?PRIVATE KEY-----")
_SECRET_LEAST = 16
_SWEEP_MOST = timedelta(minutes=2, seconds=30)

SNOWFLAKE = r"^[1-9][0-9]{14,19}$"
"""An id of Discord's; in quotes, as it has more digits than many readers of numbers keep."""


class SlackSettings(ServiceSection):
    """``[slack]``: a workspace in which Hero tells people and is answered."""

    bot_token: SecretStr | None = None
    """``xoxb-…``; from HERO_SLACK__BOT_TOKEN or ``bot_token_file``."""

    bot_token_file: Path | None = None
    """A file that holds the bot token and nothing else."""

    app_token: SecretStr | None = None
    """``xapp-…`` with connections:write, for Socket Mode."""

    app_token_file: Path | None = None
    """A file that holds the app token."""

    signing_secret: SecretStr | None = None
    """For HTTP mode: what Slack signs its requests with."""

    signing_secret_file: Path | None = None
    """A file that holds the signing secret."""

    mode: Literal["socket", "http"] = "socket"
    """How Slack reaches Hero: a socket that Hero opens, or requests to ``/slack/events``."""

    channel: str | None = Field(default=None, pattern=r"^[CG][A-Z0-9]+$", examples=["C0123456789"])
    """Id of the channel where each run gets its thread, ``C…`` or ``G…`` and not its name: in Slack, channel name,
    *About*, at the bottom."""

    base_url: str = "https://slack.com/api/"
    """Where the Web API is; GovSlack and proxies need another."""

    quiet_limit: Duration = timedelta(minutes=5)
    """A socket without any sign of life for so long counts as deaf and is replaced."""

    catch_up: Duration = timedelta(seconds=60)
    """How often watched threads are read from the stored cursor, so that a reply that no event told of still counts."""

    @model_validator(mode="after")
    def _has_what_its_mode_needs(self) -> Self:
        if self.bot_token is None:
            return self
        missing: list[str] = []
        if self.channel is None:
            missing.append("channel is missing; give the id of the channel for runs, C…")
        if self.mode == "socket" and self.app_token is None:
            missing.append('app_token is missing for mode = "socket"; set HERO_SLACK__APP_TOKEN or app_token_file')
        if self.mode == "http" and self.signing_secret is None:
            missing.append(
                'signing_secret is missing for mode = "http"; set HERO_SLACK__SIGNING_SECRET or signing_secret_file'
            )
        if missing:
            raise ValueError("\n".join(missing))
        return self


class DiscordSettings(ServiceSection):
    """``[discord]``: a server with a channel in which each run gets its thread."""

    token: SecretStr | None = None
    """The bot's token; from HERO_DISCORD__TOKEN or ``token_file``."""

    token_file: Path | None = None
    """A file that holds the token."""

    guild: str | None = Field(default=None, pattern=SNOWFLAKE, examples=["112233445566778899"])
    """Id of the server, whose full members alone can answer: *Copy Server ID* in Discord's developer mode."""

    channel: str | None = Field(default=None, pattern=SNOWFLAKE, examples=["112233445566778899"])
    """Id of the text channel where each run gets its thread: *Copy Channel ID* in Discord's developer mode."""

    api_base: str = Field(default="https://discord.com/api/v10", pattern=r"^https?://\S+[^/\s]$")
    """Where the REST API is, without a slash at the end; it says where the gateway is."""

    quiet_limit: Duration = timedelta(seconds=90)
    """A gateway connection without any sign of life for so long counts as dead; longer than its heartbeat of 41 s."""

    catch_up: Duration = timedelta(seconds=60)
    """How often watched threads are read from the stored cursor, so that a reply that no event told of still counts."""

    @model_validator(mode="after")
    def _has_a_place(self) -> Self:
        missing = [key for key in ("guild", "channel") if self.token is not None and getattr(self, key) is None]
        if missing:
            msg = "\n".join(f"{key} is missing; give its numeric id (developer mode, Copy ID)" for key in missing)
            raise ValueError(msg)
        return self


class GitHubSettings(ServiceSection):
    """``[github]``: a repository whose issues tell of the runs, one issue a run."""

    token: SecretStr | None = None
    """A token that may write issues of the repository; from HERO_GITHUB__TOKEN or ``token_file``."""

    token_file: Path | None = None
    """A file that holds the token."""

    app_id: int | str | None = Field(default=None, examples=[123456])
    """Instead of a token: the App ID or client id of a GitHub App, as its settings page shows it. Hero then speaks as
    ``NAME[bot]`` and renews its hour-long tokens by itself."""

    app_private_key: SecretStr | None = None
    """The app's private key, PEM; from HERO_GITHUB__APP_PRIVATE_KEY or ``app_private_key_file``."""

    app_private_key_file: Path | None = None
    """The ``.pem`` file that GitHub made for the app."""

    app_installation: int | None = Field(default=None, gt=0)
    """Number of the app's installation; found by the repository when it is not given."""

    webhook_secret: SecretStr | None = None
    """What GitHub signs its deliveries to ``/github/webhook`` with; without one there is no such address. From
    HERO_GITHUB__WEBHOOK_SECRET or ``webhook_secret_file``."""

    webhook_secret_file: Path | None = None
    """A file that holds the webhook's secret."""

    repository: str | None = Field(default=None, pattern=r"^[^/\s]+/[^/\s]+$", examples=["OWNER/NAME"])
    """``owner/name`` of the repository that holds the runs' issues."""

    source_repository: str | None = Field(default=None, pattern=r"^[^/\s]+/[^/\s]+$", examples=["OWNER/NAME"])
    """``owner/name`` of the repository that holds the runs' source, where finished runs are sealed with a tag; the one
    of the issues when it is not given. The token needs ``contents: write`` there."""

    base_url: str = "https://api.github.com"
    """Where the REST API is; GitHub Enterprise: https://HOST/api/v3."""

    poll: Duration = timedelta(seconds=60)
    """How often issue comments are read for answers."""

    sweep: Duration = timedelta(minutes=2)
    """How often they are read while the webhook delivers, in case a delivery was lost; shorter than the three minutes
    that a request's answer may take to be read after its end."""

    comments_per_day: int = Field(default=40, gt=0)
    """The most new comments on one issue in a day; past it, news goes into the live status alone and that is said."""

    label: str = Field(default="hero", pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,29})?$")
    """The label of runs' issues, and what the others begin with (``hero:needs-dri``, ``hero:failed``); no other label
    is ever touched. Empty: no labels at all."""

    issue_template: Path | None = None
    """A Markdown file for the issues that Hero opens, with {run_id} and the like; a first line ``# …`` is the title.
    Hero's own text when it is not given."""

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        missing: list[str] = []
        if self.is_set and self.repository is None:
            missing.append("repository is missing; write it as OWNER/NAME")
        if self.token is not None and self.app_id is not None:
            missing.append("token and app_id exclude each other; give one of them")
        if self.app_id is not None and self.app_private_key is None:
            missing.append("app_private_key is missing; set app_private_key_file or HERO_GITHUB__APP_PRIVATE_KEY")
        if self.app_private_key is not None and not _PEM.search(self.app_private_key.get_secret_value()):
            missing.append("app_private_key is no private key in PEM; give the .pem file that GitHub made")
        if self.webhook_secret is not None and not self.is_set:
            missing.append("webhook_secret needs a token or an app beside it; set HERO_GITHUB__TOKEN")
        if self.webhook_secret is not None and len(self.webhook_secret.get_secret_value().strip()) < _SECRET_LEAST:
            missing.append(
                f"webhook_secret is shorter than {_SECRET_LEAST} characters; `openssl rand -hex 32` makes one"
            )
        if self.sweep > _SWEEP_MOST:
            missing.append("sweep is longer than 2m30s; a request's answer must be read within three minutes")
        if missing:
            raise ValueError("\n".join(missing))
        return self

    @property
    def is_set(self) -> bool:
        """Whether Hero is to speak on GitHub, with a token or as an app."""
        return self.token is not None or self.app_id is not None


class PersonSettings(Section):
    """``[people.NAME]``: the accounts of one person."""

    slack: str | None = Field(default=None, pattern=r"^[UW][A-Z0-9]+$", examples=["U0123456789"])
    """Slack user id, ``U…``, never a name: in Slack, profile, *More*, *Copy member ID*."""

    discord: str | None = Field(default=None, pattern=SNOWFLAKE, examples=["112233445566778899"])
    """Discord's numeric user id in quotes, never a name: *Copy User ID* in Discord's developer mode."""

    github: str | None = None
    """GitHub login."""

    github_id: int | None = None
    """GitHub's numeric user id; decides instead of the login when given."""

    email: Address | None = Field(default=None, examples=["ada@example.org"])
    """Mail address; Hero writes there and reads nothing."""

    console: bool = False
    """Whether whoever sits at Hero's own terminal is this person; for a box of one's own and the demo."""

    timezone: str | None = Field(default=None, examples=["Europe/Zurich"])
    """Where they work; without it `[bot] timezone`."""

    working_hours: str | None = Field(default=None, pattern=HOURS_PATTERN, examples=["09:00-18:00"])
    """Outside of them only what is critical is escalated to them; an end before the start is on the next day. Without
    it they may be asked at any time."""

    working_days: tuple[Weekday, ...] = Field(default=WORKING_WEEK, min_length=1)
    """The days of the week on which those hours begin."""

    @field_validator("timezone")
    @classmethod
    def _exists(cls, value: str | None) -> str | None:
        return value if value is None else known_timezone(value)

    @model_validator(mode="after")
    def _has_hours(self) -> Self:
        if self.working_hours is not None:
            WorkingHours(hours=self.working_hours, days=self.working_days, timezone=self.timezone or "UTC")
        return self
