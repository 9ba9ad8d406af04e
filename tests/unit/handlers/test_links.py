"""The address of somebody's message is worked out where Hero's own messages tell it, and left out where they do not."""

import pytest

from bot.model.delivery import ChannelName, Posted
from bot.model.event import Place
from bot.model.person import Platform
from handlers.links import link_of
from tests.fakes.snapshots import RUN


def posted(channel: ChannelName, link: str, slot: str = "thread") -> Posted:
    return Posted(channel=channel, run_id=RUN, slot=slot, message_id="1", link=link)


KNOWN = (
    posted(ChannelName.SLACK, "https://acme.slack.com/archives/C0HERO/p100000100", "live"),
    posted(ChannelName.GITHUB, "https://github.com/acme/runs/issues/4#issue-1"),
    posted(ChannelName.DISCORD, "https://discord.com/channels/11/22/33"),
)
SLACK = "https://acme.slack.com/archives/C0HERO/"


@pytest.mark.parametrize(
    ("platform", "place", "link"),
    [
        (
            Platform.SLACK,
            Place(conversation="C0HERO", thread="100.000100", message="200.000201"),
            f"{SLACK}p200000201?thread_ts=100.000100&cid=C0HERO",
        ),
        (Platform.SLACK, Place(conversation="C0HERO", message="200.000201"), f"{SLACK}p200000201"),
        (Platform.SLACK, Place(conversation="C0HERO"), ""),
        (
            Platform.GITHUB,
            Place(conversation="4", message="2001"),
            "https://github.com/acme/runs/issues/4#issuecomment-2001",
        ),
        (Platform.GITHUB, Place(conversation="4", message="x"), ""),
        (Platform.DISCORD, Place(conversation="22", message="44"), "https://discord.com/channels/11/22/44"),
        (Platform.CONSOLE, Place(conversation="console", message="1"), ""),
    ],
)
def test_a_message_has_the_address_that_its_platform_gives_it(platform: Platform, place: Place, link: str) -> None:
    assert link_of(platform, place, KNOWN) == link
    assert link_of(platform, place, ()) == ""
