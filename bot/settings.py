"""Typed configuration: one frozen tree from ``hero.toml`` and the environment, loaded once and handed down in pieces.

Every value can be overridden by an environment variable ``HERO_<SECTION>__<KEY>``. Secrets come from the environment or
from files named by ``<key>_file``, never from the TOML itself.
"""

import os
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from bot.errors import ConfigurationError
from bot.model.durations import Duration
from bot.model.person import Person
from bot.model.value import PersonName
from bot.model.wording import Wrong, wrongs
from bot.toml_lines import TomlFile


class Section(BaseModel):
    """One table of ``hero.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    @field_validator("*")
    @classmethod
    def _lasts(cls, value: object, info: ValidationInfo) -> object:
        """Refuse what would check, ask or post without a pause, or give up before it has begun."""
        if isinstance(value, timedelta) and (
            value < timedelta() or (not value and info.field_name not in _MAY_BE_ZERO)
        ):
            msg = "must be longer than zero; write it as 30s, 15m or 1h30m"
            raise ValueError(msg)
        return value


_MAY_BE_ZERO = frozenset({"jitter"})


class ServiceSection(Section):
    """A service that is asked over the network."""

    deadline: Duration = timedelta(seconds=20)
    """How long one question may take before its answer is Unknown."""

    threads: int = Field(default=4, gt=0, le=64)
    """Worker threads for this service's blocking client; its own, so that it starves nobody else."""


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
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError):
            msg = f"{value!r} is no time zone; write it as America/Los_Angeles or UTC"
            raise ValueError(msg) from None
        return value


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


class GitHubSettings(ServiceSection):
    """``[github]``: a repository whose issues tell of the runs, one issue a run."""

    token: SecretStr | None = None
    """A token that may write issues of the repository; from HERO_GITHUB__TOKEN or ``token_file``."""

    token_file: Path | None = None
    """A file that holds the token."""

    repository: str | None = Field(default=None, pattern=r"^[^/\s]+/[^/\s]+$", examples=["OWNER/NAME"])
    """``owner/name`` of the repository that holds the runs' issues."""

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


class HeartbeatSettings(Section):
    """``[heartbeat]``: something outside that notices when Hero is dead."""

    url: str | None = None
    """Asked with GET every ``every``; healthchecks and Grafana OnCall have such."""

    every: Duration = timedelta(seconds=60)
    """How often."""


class PersonSettings(Section):
    """``[people.NAME]``: the accounts of one person."""

    slack: str | None = Field(default=None, pattern=r"^[UW][A-Z0-9]+$", examples=["U0123456789"])
    """Slack user id, ``U…``, never a name: in Slack, profile, *More*, *Copy member ID*."""

    discord: str | None = None
    """Discord user id."""

    github: str | None = None
    """GitHub login."""

    github_id: int | None = None
    """GitHub's numeric user id; decides instead of the login when given."""

    email: str | None = None
    """Mail address."""

    console: bool = False
    """Whether whoever sits at Hero's own terminal is this person; for a box of one's own and the demo."""


_SECRETS: Mapping[str, tuple[str, ...]] = {
    "slack": ("bot_token", "app_token", "signing_secret"),
    "github": ("token",),
    "iris": ("token",),
    "finelog": ("token",),
    "wandb": ("api_key",),
}


class Settings(BaseSettings):
    """The whole tree."""

    model_config = SettingsConfigDict(
        env_prefix="HERO_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )

    bot: BotSettings = BotSettings()
    slack: SlackSettings = SlackSettings()
    github: GitHubSettings = GitHubSettings()
    iris: IrisSettings = IrisSettings()
    finelog: FinelogSettings = FinelogSettings()
    wandb: WandbSettings = WandbSettings()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    console: bool = False
    """Whether the conversation is also held in the terminal that Hero runs in; it is in any case when neither Slack nor
    GitHub is set up."""
    people: dict[PersonName, PersonSettings] = {}
    """Who may be named as DRI, deputy or owner in contracts."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is pydantic's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let the environment win over the file, which arrives as init values."""
        return env_settings, init_settings

    @property
    def finelog_in_use(self) -> FinelogSettings:
        """``[finelog]`` with what follows from ``[iris]``; the controller's token goes to its own address alone."""
        finelog, controller = self.finelog, self.iris.controller_url
        if controller is None:
            return finelog
        behind = controller.rstrip("/")
        url = finelog.url or f"{behind}/proxy/system.log-server"
        is_behind = url == behind or url.startswith(f"{behind}/")
        return finelog.model_copy(
            update={"url": url, "token": finelog.token or (self.iris.token if is_behind else None)}
        )

    @property
    def persons(self) -> tuple[Person, ...]:
        return tuple(Person(name=name, **person.model_dump()) for name, person in self.people.items())

    @property
    def speaks_in_terminal(self) -> bool:
        """Whether the conversation is held in Hero's own terminal: when that is wanted, and when there is no other."""
        return self.console or (self.slack.bot_token is None and self.github.token is None)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret value, for the redactor."""
        found = (getattr(getattr(self, section), key) for section, keys in _SECRETS.items() for key in keys)
        return tuple(secret.get_secret_value() for secret in found if secret is not None)


_TABLES = frozenset(Settings.model_fields) - {"console"}


def load_settings(path: Path | None) -> Settings:
    """Read ``hero.toml`` (None: environment and defaults alone) and the environment.

    Raises:
        ConfigurationError: the file cannot be read, or a key is wrong; all problems at once, each with its fix.
    """
    file, table = _read(path) if path is not None else (None, {})
    base = path.parent if path is not None else Path()
    problems: list[str] = []
    # What one step refuses it leaves out, so that the next ones say what else is wrong.
    for step in (_without_values_for_tables, _without_plain_secrets):
        table, found = step(file, table)
        problems += found
    table, found = _with_secret_files(file, table, base)
    problems += found
    settings: Settings | None = None
    try:
        settings = Settings(**table)
    except ValidationError as error:
        said = wrongs(Settings, error, what="setting", page="docs/settings.md")
        problems += [_problem(file, each) for each in said]
    except SettingsError:
        problems += [
            f"environment variable {name}: a whole table cannot be set at once; set its keys, {name}__KEY"
            for name in sorted(f"HERO_{table.upper()}" for table in _TABLES)
            if name in os.environ
        ]
    if settings is None or problems:
        raise ConfigurationError(tuple(problems))
    placed = {"runs": base / settings.bot.runs, "database": _placed(settings.bot.database, base)}
    return settings.model_copy(update={"bot": settings.bot.model_copy(update=placed)})


def _placed(database: str, base: Path) -> str:
    """Return the database's address with its path below ``base``, unless it is absolute or names no file."""
    scheme, found, name = database.partition(":///")
    return f"{scheme}:///{base / name}" if found and name and name != ":memory:" else database


def _read(path: Path) -> tuple[TomlFile, dict[str, Any]]:
    try:
        file = TomlFile(path, path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        problem = f"{path}: no such file; `hero init` writes one, or name yours with --config or HERO_CONFIG"
        raise ConfigurationError((problem,)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError((f"{path}: cannot be read ({error})",)) from None
    try:
        return file, tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as error:
        problem = file.broken(error)
    except RecursionError:
        problem = f"{path}: is no TOML: it is nested too deeply"
    raise ConfigurationError((problem,))


def _without_values_for_tables(file: TomlFile | None, table: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Refuse ``slack = 5``, which the environment's own part of the table would silently cover."""
    wrong = sorted(name for name in _TABLES & table.keys() if not isinstance(table[name], dict))
    problems = [
        f"{_where(file, (name,))}: [{name}]: is a table; write [{name}] on a line of its own and its keys below"
        for name in wrong
    ]
    return {name: value for name, value in table.items() if name not in wrong}, problems


def _without_plain_secrets(file: TomlFile | None, table: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    problems: list[str] = []
    left = dict(table)
    for section, keys in _SECRETS.items():
        inside = table.get(section, {})
        problems += [
            f"{_where(file, (section, key))}: [{section}] {key} is a secret and must not stand in this file; "
            f"set HERO_{section.upper()}__{key.upper()} or {key}_file"
            for key in keys
            if key in inside
        ]
        if section in table:
            left[section] = {key: value for key, value in inside.items() if key not in keys}
    return left, problems


def _with_secret_files(file: TomlFile | None, table: dict[str, Any], base: Path) -> tuple[dict[str, Any], list[str]]:
    problems: list[str] = []
    merged = dict(table)
    for section, keys in _SECRETS.items():
        for key in keys:
            inside = table.get(section, {})
            name = os.environ.get(f"HERO_{section.upper()}__{key.upper()}_FILE") or inside.get(f"{key}_file")
            if not isinstance(name, str):
                continue
            where = f"{_where(file, (section, f'{key}_file'))}: [{section}] {key}_file {name}"
            try:
                secret = (base / name).read_text(encoding="utf-8").strip()
            except (OSError, ValueError) as error:
                problems.append(f"{where}: cannot be read ({error})")
                continue
            if not secret:
                problems.append(f"{where}: is empty; it must hold the secret and nothing else")
                continue
            merged[section] = {**merged.get(section, {}), key: secret, f"{key}_file": str((base / name).absolute())}
    return merged, problems


def _problem(file: TomlFile | None, wrong: Wrong) -> str:
    named = f"[{wrong.name}]" if wrong.location[0] in _TABLES and len(wrong.location) == 1 else wrong.named
    variable = "HERO_" + "__".join(part.upper() for part in wrong.location)
    where = f"environment variable {variable}" if variable in os.environ else _where(file, wrong.location)
    return f"{where}: {named}: {wrong.message}"


def _where(file: TomlFile | None, location: tuple[str, ...]) -> str:
    return file.where(location) if file is not None else "settings"
