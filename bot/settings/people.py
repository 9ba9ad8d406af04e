"""The tables about where people are: channels, and the accounts of persons."""

from datetime import timedelta
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from bot.model.durations import Duration
from bot.settings.section import Section, ServiceSection

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

    repository: str | None = Field(default=None, pattern=r"^[^/\s]+/[^/\s]+$", examples=["OWNER/NAME"])
    """``owner/name`` of the repository that holds the runs' issues."""

    source_repository: str | None = Field(default=None, pattern=r"^[^/\s]+/[^/\s]+$", examples=["OWNER/NAME"])
    """``owner/name`` of the repository that holds the runs' source, where finished runs are sealed with a tag; the one
    of the issues when it is not given. The token needs ``contents: write`` there."""

    base_url: str = "https://api.github.com"
    """Where the REST API is; GitHub Enterprise: https://HOST/api/v3."""

    poll: Duration = timedelta(seconds=60)
    """How often issue comments are read for answers."""

    comments_per_day: int = Field(default=40, gt=0)
    """The most new comments on one issue in a day; past it, news goes into the live status alone and that is said."""

    @model_validator(mode="after")
    def _has_repository(self) -> Self:
        if self.token is not None and self.repository is None:
            msg = "repository is missing; write it as OWNER/NAME"
            raise ValueError(msg)
        return self


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

    email: str | None = None
    """Mail address."""

    console: bool = False
    """Whether whoever sits at Hero's own terminal is this person; for a box of one's own and the demo."""
