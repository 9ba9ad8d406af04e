"""Builds the channels that are configured, and the routes of those that are reached over HTTP."""

from typing import Any

from rich.console import Console
from starlette.routing import BaseRoute

from bot.channels.console import ConsoleChannel
from bot.channels.github.channel import GitHubChannel
from bot.channels.pager.channel import PagerChannel
from bot.channels.ports import Channel
from bot.channels.slack.channel import SlackChannel
from bot.clock import Clock
from bot.contracts import BadContract, Contracts
from bot.model.delivery import ChannelName
from bot.model.value import RunId
from bot.naming import names_from
from bot.render.issue_template import facts_of
from bot.settings import Settings
from bot.store.store import Store
from handlers.command import COMMANDS


def build_channels(
    settings: Settings, store: Store, clock: Clock, contracts: Contracts, console: Console | None
) -> tuple[dict[ChannelName, Channel], tuple[BaseRoute, ...]]:
    """Return the channels that are configured, and the routes of those that are reached over HTTP."""
    channels: dict[ChannelName, Channel] = {}
    routes: tuple[BaseRoute, ...] = ()
    zone = settings.bot.timezone

    def named(run_id: RunId, field: str) -> Any:
        contract = contracts.load(run_id)
        return None if isinstance(contract, BadContract) else getattr(contract.channels, field)

    if settings.slack.bot_token is not None:
        slack = SlackChannel(
            settings.slack,
            store,
            clock,
            people=settings.persons,
            timezone=zone,
            threads=lambda run_id: named(run_id, "slack_thread"),
            runs=contracts.run_ids,
        )
        channels[ChannelName.SLACK] = slack
        routes = tuple(slack.routes()) if settings.slack.mode == "http" else ()
    if settings.discord.token is not None:
        channels[ChannelName.DISCORD] = _discord(settings, store, clock, contracts)
    if settings.github.is_set:
        github = GitHubChannel(
            settings.github,
            store,
            clock,
            people=settings.persons,
            issues=lambda run_id: named(run_id, "github_issue"),
            facts=lambda run_id: _issue_facts(contracts, run_id),
            timezone=zone,
        )
        channels[ChannelName.GITHUB] = github
        routes += tuple(github.routes())
    if settings.console or not channels:
        channels[ChannelName.CONSOLE] = ConsoleChannel(
            store, clock, console=console or Console(soft_wrap=True), timezone=zone
        )
    channels |= one_way_channels(settings, clock)
    return channels, routes


def _discord(settings: Settings, store: Store, clock: Clock, contracts: Contracts) -> Channel:
    from bot.channels.discord.channel import DiscordChannel  # noqa: PLC0415 - discord.py takes half a second, and only who uses it needs it

    def thread(run_id: RunId) -> str | None:
        contract = contracts.load(run_id)
        return None if isinstance(contract, BadContract) else contract.channels.discord_thread

    return DiscordChannel(
        settings.discord,
        store,
        clock,
        people=settings.persons,
        timezone=settings.bot.timezone,
        threads=thread,
        is_command=COMMANDS.__contains__,
        names=names_from(store, contracts),
    )


def one_way_channels(settings: Settings, clock: Clock) -> dict[ChannelName, Channel]:
    """Return the channels in which nobody answers; a conversation is held elsewhere, whatever of these there is."""
    channels: dict[ChannelName, Channel] = {}
    if settings.email.host is not None:
        # Its library is loaded only where mail is sent.
        from bot.channels.email.channel import EmailChannel  # noqa: PLC0415 - see above

        channels[ChannelName.EMAIL] = EmailChannel(
            settings.email, clock, people=settings.persons, timezone=settings.bot.timezone
        )
    if settings.pager.address is not None:
        channels[ChannelName.PAGER] = PagerChannel(settings.pager, clock)
    return channels


def _issue_facts(contracts: Contracts, run_id: RunId) -> dict[str, str]:
    contract = contracts.load(run_id)
    return {} if isinstance(contract, BadContract) else facts_of(contract)
