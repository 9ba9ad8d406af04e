"""Puts a run's picture into its thread, after the message that it belongs to.

A picture is never worth a message: where it cannot be drawn or is not taken, the message stands without it.
"""

import asyncio
import io
from importlib.util import find_spec

import discord
import structlog

from bot.channels.discord.api import CallError, DiscordApi
from bot.channels.discord.threads import Threads
from bot.model.chart import Chart
from bot.render.chart import chart_png, chart_words

log = structlog.get_logger()


class Pictures:
    """Draws off the loop, one picture at a time, and posts it as a file of its own."""

    def __init__(self, api: DiscordApi, threads: Threads) -> None:
        self._api = api
        self._threads = threads
        self._drawing = asyncio.Lock()

    async def attach(self, chart: Chart) -> bool:
        """Return whether the picture is in the run's thread; it needs the permission Attach Files there."""
        try:
            return await self._attach(chart)
        except CallError as error:
            log.info("discord_picture_not_taken", run_id=chart.run_id, code=error.code, reason=error.detail)
        except Exception:  # the border of a channel: a fault in drawing must not stop the outbox
            log.exception("discord_picture_broke", run_id=chart.run_id)
        return False

    async def _attach(self, chart: Chart) -> bool:
        thread = await self._threads.known(chart.run_id)
        if thread is None or find_spec("matplotlib") is None:
            return False
        async with self._drawing:
            picture = await asyncio.to_thread(chart_png, chart)
        file = discord.File(io.BytesIO(picture), filename="plot.png", description=chart_words(chart)[:1_000])
        nobody = discord.AllowedMentions.none()
        await self._api.ask(
            lambda client: client.get_partial_messageable(int(thread.message_id)).send(
                file=file, allowed_mentions=nobody, silent=True
            )
        )
        return True
