"""Which ``hero.toml`` a command uses, and what it reads from it."""

from pathlib import Path

from bot.errors import ConfigurationError
from bot.logs import configure_logs
from bot.redaction import Redactor
from bot.settings import Settings, load_settings
from handlers.context import Rules

DEFAULT = Path("hero.toml")


def find_configuration(named: Path | None) -> Path:
    """Return the configuration file: the one that was named, else ``./hero.toml``.

    Raises:
        ConfigurationError: none was named and there is none here.
    """
    if named is not None:
        return named
    if not DEFAULT.exists():
        problem = (
            f"{DEFAULT}: no such file in {Path.cwd()}; `hero init` writes one, "
            "or name yours with --config or HERO_CONFIG"
        )
        raise ConfigurationError((problem,))
    return DEFAULT


def load(named: Path | None) -> Settings:
    """Return the settings of a command that only reads; its log goes to standard error, and only when it matters.

    Raises:
        ConfigurationError: there is no configuration file, or it is wrong.
    """
    settings = load_settings(find_configuration(named))
    configure_logs(level="error", redactor=Redactor(settings.secrets))
    return settings


def rules_of(settings: Settings) -> Rules:
    """Return the settings that decisions and what is shown of them depend on, without those of escalation."""
    own = settings.bot
    return Rules(
        cadence=own.cadence,
        request_expires=own.request_expires,
        request_reminder=own.request_reminder,
        status_every=own.status_every,
        timezone=own.timezone,
    )
