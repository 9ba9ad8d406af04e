"""What a failed call means for a delivery: later, and what a person can mend meanwhile, or never."""

from datetime import timedelta

from bot.channels.slack.api import CallError
from bot.channels.slack.pace import DEFAULT_PAUSE
from bot.model.delivery import Later, Never

MEND_EVERY = timedelta(minutes=5)
"""How often something that only a person can mend is tried again."""

GONE = frozenset({"thread_not_found", "message_not_found"})
REFUSED_CONTENT = frozenset(
    {"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long", "block_mismatch"}
)
UNREACHED = frozenset({"not_in_channel", "channel_not_found", "user_not_in_channel", "no_permission"})

_TOKEN_FIX = "reinstall the app, then set HERO_SLACK__BOT_TOKEN or bot_token_file to its new token and restart Hero"  # noqa: S105 - advice
_MENDABLE: dict[str, str] = {
    "invalid_auth": _TOKEN_FIX,
    "not_authed": _TOKEN_FIX,
    "not_allowed_token_type": _TOKEN_FIX,
    "account_inactive": _TOKEN_FIX,
    "token_revoked": _TOKEN_FIX,
    "token_expired": _TOKEN_FIX,
    "access_denied": _TOKEN_FIX,
    "org_login_required": "the workspace is being moved to an organisation: wait until that is done",
    "team_access_not_granted": "install the app in this workspace",
    "missing_scope": "add the scope {missing} under OAuth & Permissions and reinstall the app",
    "not_in_channel": "in Slack: /invite @hero in channel {channel}",
    "channel_not_found": "set [slack] channel to the id (C…) of a channel that Hero was invited to; now {channel}",
    "is_archived": "unarchive channel {channel}, or set [slack] channel to another",
    "restricted_action": "let the app post in channel {channel}: channel settings, posting permissions",
    "no_permission": "let the app post in channel {channel}: channel settings, posting permissions",
    "ekm_access_denied": "ask the workspace's administrator: its encryption keys are withdrawn",
}


def fix_for(error: CallError, channel: str) -> str:
    """What a person has to do about it; empty when it is nothing that a person mends while Hero runs."""
    fix = _MENDABLE.get(error.code, "")
    return fix.format(channel=channel, missing=error.missing or "that Slack names") if fix else ""


def outcome_of(error: CallError, channel: str) -> Later | Never:
    """What to do with a delivery whose call failed.

    What a person can mend while Hero runs comes later, not never: the message is still worth sending then.
    """
    if error.code == "ratelimited":
        return Later(reason=error.detail, after=error.retry_after or DEFAULT_PAUSE)
    if error.is_uncertain or not error.code:
        return Later(reason=error.detail, is_uncertain=error.is_uncertain)
    if fix := fix_for(error, channel):
        return Later(reason=f"{error.detail}; fix: {fix}", after=MEND_EVERY)
    if error.code in REFUSED_CONTENT or error.code.startswith("invalid_"):
        return Never(
            reason=f"Slack does not take this message: {error.detail}", fix="this is a fault in Hero: report it"
        )
    return Later(reason=f"Slack answered {error.detail}")
