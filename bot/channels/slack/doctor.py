"""Is every part of the connection to Slack in order, and if not, what exactly is to be done."""

from typing import NamedTuple

from bot.channels.slack.api import CallError, SlackApi
from bot.channels.slack.manifest import FILES_SCOPE, NEEDED_SCOPES
from bot.channels.slack.outcomes import fix_for
from bot.channels.slack.socket_mode import app_token_fix
from bot.settings import SlackSettings

_NETWORK_FIX = "check [slack] base_url and the network"


class Probe(NamedTuple):
    """One line of ``hero doctor``."""

    connection: str
    ok: bool
    detail: str
    fix: str = ""


async def probe(settings: SlackSettings, api: SlackApi) -> tuple[Probe, ...]:
    """Check the token first; without it nothing else can be asked."""
    if settings.bot_token is None:
        return (Probe("slack token", False, "not set", "set HERO_SLACK__BOT_TOKEN or bot_token_file"),)  # noqa: FBT003 - a field
    try:
        me = await api.me()
    except CallError as error:
        return (Probe("slack token", ok=False, detail=error.detail, fix=fix_for(error, "") or _NETWORK_FIX),)
    missing = sorted(NEEDED_SCOPES - me.scopes)
    wanted = missing or sorted({FILES_SCOPE} - me.scopes)
    lacks = f"lacks {', '.join(missing)}" if missing else f"all {len(NEEDED_SCOPES)} granted"
    lacks += ", but none for pictures" if wanted and not missing else ""
    scopes_fix = f"add {', '.join(wanted)} under OAuth & Permissions and reinstall the app" if wanted else ""
    return (
        Probe("slack token", ok=True, detail=f"bot {me.user_id} in {me.url}"),
        Probe("slack scopes", ok=not missing, detail=lacks, fix=scopes_fix),
        await _events(settings, api),
        await _channel(settings, api),
    )


async def _events(settings: SlackSettings, api: SlackApi) -> Probe:
    if settings.mode == "http":
        ok = settings.signing_secret is not None
        fix = "" if ok else "set HERO_SLACK__SIGNING_SECRET or signing_secret_file"
        return Probe("slack signing secret", ok=ok, detail="set" if ok else "not set", fix=fix)
    name = "slack app token"
    if settings.app_token is None:
        return Probe(name, ok=False, detail="not set", fix="set HERO_SLACK__APP_TOKEN or app_token_file")
    try:
        await api.ask(api.client.apps_connections_open(app_token=settings.app_token.get_secret_value()))
    except CallError as error:
        return Probe(name, ok=False, detail=error.detail, fix=app_token_fix(error) if error.code else _NETWORK_FIX)
    return Probe(name, ok=True, detail="a socket can be opened")


async def _channel(settings: SlackSettings, api: SlackApi) -> Probe:
    name = "slack channel"
    channel = settings.channel or ""
    if not channel:
        return Probe(name, ok=False, detail="not set", fix="set [slack] channel to the id (C…) of the runs' channel")
    try:
        answer = await api.ask(api.client.conversations_info(channel=channel))
    except CallError as error:
        return Probe(name, ok=False, detail=error.detail, fix=fix_for(error, channel) or _NETWORK_FIX)
    found = answer.get("channel") or {}
    if found.get("is_archived"):
        return Probe(
            name, ok=False, detail=f"{channel} is archived", fix="unarchive it, or set [slack] channel to another"
        )
    if not found.get("is_member"):
        return Probe(name, ok=False, detail=f"Hero is not in {channel}", fix=f"in Slack: /invite @hero in {channel}")
    return Probe(name, ok=True, detail=f"Hero is in {channel}")
