"""Opens the form for a command that names no run, while Slack still waits for the acknowledgement."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

import structlog
from pydantic import ValidationError

from bot.channels.slack.api import CallError, Json, SlackApi
from bot.channels.slack.mapping import Command
from bot.channels.slack.modals import form_for, verb_to_ask_about

log = structlog.get_logger()

_OPEN_WITHIN = timedelta(seconds=1.5)
"""A command has to be acknowledged, and its trigger used, within three seconds (Slack: "Handling user interaction")."""


class Asking:
    """Asks which run is meant. Where it can't, the command is answered in words like any other."""

    def __init__(self, api: SlackApi, runs: Callable[[], Sequence[str]]) -> None:
        self._api = api
        self._runs = runs

    async def opens_form(self, body: Json) -> bool:
        """Open a form if the command needs one; say whether it stands there now."""
        try:
            command = Command.model_validate(body)
        except ValidationError:
            return False  # whoever takes commands says so
        verb = verb_to_ask_about(command.text)
        view = form_for(verb, self._runs(), command.channel_id) if verb else None
        if view is None:
            return False
        try:
            async with asyncio.timeout(_OPEN_WITHIN.total_seconds()):
                await self._api.ask(self._api.client.views_open(trigger_id=command.trigger_id, view=view))
        except (CallError, TimeoutError) as error:
            log.info("slack_form_not_opened", reason=str(error)[:300] or "no answer in time")
            return False
        return True
