"""Typed configuration: one frozen tree from ``hero.toml`` and the environment, loaded once and handed down in pieces.

Every value can be overridden by an environment variable ``HERO_<SECTION>__<KEY>``. Secrets come from the environment or
from files named by ``<key>_file``, never from the TOML itself. A new table is a class in ``own``, ``people``,
``alerts`` or ``services``, its field in ``tree`` and its name here.
"""

from bot.settings.alerts import EmailSettings, EscalationSettings, PagerSettings
from bot.settings.history import HistorySettings
from bot.settings.launching import LaunchSettings
from bot.settings.loading import load_settings
from bot.settings.own import BotSettings, HeartbeatSettings
from bot.settings.people import DiscordSettings, GitHubSettings, PersonSettings, SlackSettings
from bot.settings.section import Section, ServiceSection
from bot.settings.services import FinelogSettings, GitSettings, IrisSettings, KubernetesSettings, WandbSettings
from bot.settings.tree import Settings

__all__ = [
    "BotSettings",
    "DiscordSettings",
    "EmailSettings",
    "EscalationSettings",
    "FinelogSettings",
    "GitHubSettings",
    "GitSettings",
    "HeartbeatSettings",
    "HistorySettings",
    "IrisSettings",
    "KubernetesSettings",
    "LaunchSettings",
    "PagerSettings",
    "PersonSettings",
    "Section",
    "ServiceSection",
    "Settings",
    "SlackSettings",
    "WandbSettings",
    "load_settings",
]
