"""The address of a message that somebody sent, worked out from where Hero's own messages of the run stand. Pure."""

from collections.abc import Sequence

from bot.model.delivery import ChannelName, Posted
from bot.model.event import Place
from bot.model.person import Platform

_ARCHIVES = "/archives/"
_CHANNELS = "/channels/"


def link_of(platform: Platform, place: Place, posted: Sequence[Posted]) -> str:
    """Return where a message can be read; empty when nothing that is on record tells.

    Args:
        platform: where it was sent.
        place: the conversation and the message in it; a slash command is no message.
        posted: Hero's own messages, whose addresses tell workspace, repository or server.
    """
    if not place.message or platform is Platform.CONSOLE:
        return ""
    known = [each for each in posted if each.channel is ChannelName(platform.value) and each.link]
    match platform:
        case Platform.SLACK:
            return _on_slack(place, known)
        case Platform.GITHUB:
            issue = next((each.link for each in known if each.slot == "thread"), "").partition("#")[0]
            return f"{issue}#issuecomment-{place.message}" if issue and place.message.isdigit() else ""
        case Platform.DISCORD:
            return _on_discord(place, known)


def _on_slack(place: Place, known: list[Posted]) -> str:
    """``https://WORKSPACE.slack.com/archives/C…/p…``, as chat.getPermalink builds it."""
    base = next((each.link.partition(_ARCHIVES)[0] for each in known if _ARCHIVES in each.link), "")
    if not base:
        return ""
    is_reply = place.thread and place.thread != place.message
    thread = f"?thread_ts={place.thread}&cid={place.conversation}" if is_reply else ""
    return f"{base}{_ARCHIVES}{place.conversation}/p{place.message.replace('.', '')}{thread}"


def _on_discord(place: Place, known: list[Posted]) -> str:
    """``https://discord.com/channels/SERVER/CHANNEL/MESSAGE``."""
    for each in known:
        base, mark, rest = each.link.partition(_CHANNELS)
        if mark and (server := rest.split("/")[0]):
            return f"{base}{_CHANNELS}{server}/{place.conversation}/{place.message}"
    return ""
