"""An address that another program has: whoever sits at the terminal is told, and Hero works on without it."""

import asyncio
import io
import socket
from types import SimpleNamespace
from typing import Any, cast

from rich.console import Console

from bot.app import _serve
from bot.building import Parts
from bot.channels.console import ConsoleChannel
from bot.model.delivery import ChannelName
from bot.settings import BotSettings, Settings
from bot.web.server import web_app, web_server
from tests.fakes.clock import FakeClock


async def test_the_terminal_says_that_the_address_is_taken_and_what_to_do() -> None:
    printed = io.StringIO()
    terminal = ConsoleChannel(
        cast("Any", None), FakeClock(), console=Console(file=printed, width=400), timezone="UTC", listens=False
    )
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        parts = SimpleNamespace(
            channels={ChannelName.CONSOLE: terminal}, settings=Settings(bot=BotSettings(http=address))
        )
        server = web_server(web_app(cast("Any", None), ()), address)

        await asyncio.wait_for(_serve(server, asyncio.Event(), cast("Parts", parts)), 60)

    said = printed.getvalue()
    assert f"{address} cannot be had" in said
    assert "set [bot] http to another HOST:PORT" in said
