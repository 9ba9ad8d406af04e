"""The whole tree of settings, and which of its keys are secrets."""

from collections.abc import Mapping

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from bot.model.person import Person
from bot.model.value import PersonName
from bot.settings.alerts import EmailSettings, EscalationSettings, PagerSettings
from bot.settings.history import HistorySettings
from bot.settings.launching import LaunchSettings
from bot.settings.own import BotSettings, HeartbeatSettings
from bot.settings.people import DiscordSettings, GitHubSettings, PersonSettings, SlackSettings
from bot.settings.services import FinelogSettings, GitSettings, IrisSettings, KubernetesSettings, WandbSettings

SECRETS: Mapping[str, tuple[str, ...]] = {
    "slack": ("bot_token", "app_token", "signing_secret"),
    "discord": ("token",),
    "github": ("token", "app_private_key", "webhook_secret"),
    "iris": ("token",),
    "finelog": ("token",),
    "wandb": ("api_key",),
    "kubernetes": ("token",),
    "email": ("password",),
    "pager": ("routing_key", "url", "authorization"),
}
"""Which keys of which tables are secrets: never in the TOML, always in the redactor."""


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
    discord: DiscordSettings = DiscordSettings()
    github: GitHubSettings = GitHubSettings()
    iris: IrisSettings = IrisSettings()
    finelog: FinelogSettings = FinelogSettings()
    wandb: WandbSettings = WandbSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    git: GitSettings = GitSettings()
    launch: LaunchSettings = LaunchSettings()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    history: HistorySettings = HistorySettings()
    email: EmailSettings = EmailSettings()
    pager: PagerSettings = PagerSettings()
    escalation: EscalationSettings | None = None
    console: bool = False
    """Whether the conversation is also held in the terminal that Hero runs in; it is in any case when neither Slack,
    Discord nor GitHub is set up."""
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
        return self.console or not (self.slack.bot_token or self.discord.token or self.github.is_set)

    @property
    def escalation_in_use(self) -> EscalationSettings | None:
        """``[escalation]``, which whoever sets up e-mail or a pager wants as well; None leaves it at reminders."""
        is_wanted = self.email.host is not None or self.pager.address is not None
        return self.escalation or (EscalationSettings() if is_wanted else None)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret value, for the redactor."""
        found = (getattr(getattr(self, section), key) for section, keys in SECRETS.items() for key in keys)
        return tuple(secret.get_secret_value() for secret in found if secret is not None)


TABLES = frozenset(Settings.model_fields) - {"console"}
"""The names of the tables of ``hero.toml``."""
