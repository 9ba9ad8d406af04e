"""Puts a run's picture into its thread, after the message that it belongs to.

A picture is never worth a message: where it cannot be drawn or is not taken, the message stands without it.
"""

import asyncio
from importlib.util import find_spec

import structlog

from bot.channels.slack.api import CallError, SlackApi
from bot.channels.slack.manifest import FILES_SCOPE
from bot.channels.slack.posts import Ref
from bot.channels.slack.roots import Roots
from bot.model.chart import Chart
from bot.render.chart import chart_png, chart_title, chart_words

log = structlog.get_logger()


class Pictures:
    """Draws off the loop, one picture at a time, and uploads by Slack's three steps."""

    def __init__(self, api: SlackApi, roots: Roots) -> None:
        self._api = api
        self._roots = roots
        self._drawing = asyncio.Lock()

    async def attach(self, chart: Chart) -> bool:
        """Return whether the picture is in the run's thread.

        Only Hero's own thread gets it: a command may be given where Hero is no member, and what is shown to one person
        alone can carry no file (Slack: chat.postEphemeral).
        """
        try:
            return await self._attach(chart)
        except CallError as error:
            log.info("slack_picture_not_taken", run_id=chart.run_id, code=error.code, reason=error.detail)
        except Exception:  # the border of a channel: a fault in drawing must not stop the outbox
            log.exception("slack_picture_broke", run_id=chart.run_id)
        return False

    async def _attach(self, chart: Chart) -> bool:
        me = await self._api.me()
        root = await self._roots.known(chart.run_id)
        if root is None or FILES_SCOPE not in me.scopes or find_spec("matplotlib") is None:
            return False
        async with self._drawing:
            picture = await asyncio.to_thread(chart_png, chart)
        thread = Ref.parse(root.message_id)
        await self._api.ask(
            self._api.client.files_upload_v2(
                filename=f"{chart.run_id}.png",
                file=picture,
                title=f"{chart_title(chart)}: loss and throughput",
                alt_txt=chart_words(chart),
                channel=thread.channel,
                thread_ts=thread.ts,
            )
        )
        return True
