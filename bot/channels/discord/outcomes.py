"""What a failed call means for a delivery: later, and what a person can mend meanwhile, or never.

The codes are those of Discord's "JSON error codes" (topics/opcodes-and-status-codes).
"""

from datetime import timedelta

from bot.channels.discord.api import UNKNOWN_CHANNEL, CallError
from bot.model.delivery import Later, Never

MEND_EVERY = timedelta(minutes=5)
"""How often something that only a person can mend is tried again."""

UNKNOWN_GUILD = 10004
UNKNOWN_MEMBER = 10007
UNKNOWN_MESSAGE = 10008
UNKNOWN_USER = 10013
NO_ACCESS = 50001
NO_DIRECT_MESSAGES = 50007
NO_PERMISSION = 50013
BAD_CONTENT = 50035
ARCHIVED = 50083
HAS_THREAD = 160004
LOCKED = 160005
MANY_THREADS = 160006

GONE = frozenset({UNKNOWN_CHANNEL, UNKNOWN_MESSAGE})
UNREACHED = frozenset({UNKNOWN_CHANNEL, NO_ACCESS, NO_PERMISSION})

PERMISSIONS = "View Channel, Send Messages, Create Public Threads, Send Messages in Threads, Embed Links, Read History"
TOKEN_FIX = "reset the token on the application's Bot page, set HERO_DISCORD__TOKEN or token_file, restart Hero"  # noqa: S105 - advice
_MENDABLE: dict[int, str] = {
    UNKNOWN_CHANNEL: "set [discord] channel to the id of a text channel in the guild; now {place}",
    UNKNOWN_GUILD: "invite the bot to the guild, or correct [discord] guild",
    NO_ACCESS: "let the bot see channel {place}: invite it, then channel settings, Permissions, View Channel",
    NO_PERMISSION: f"give the bot's role in channel {{place}}: {PERMISSIONS}",
    MANY_THREADS: "archive threads in the guild: it has as many active ones as Discord allows",
}


def fix_for(error: CallError, place: str) -> str:
    """What a person has to do about it; empty when it is nothing that a person mends while Hero runs."""
    if error.is_refused_token:
        return TOKEN_FIX
    return _MENDABLE.get(error.code, "").format(place=place)


def outcome_of(error: CallError, place: str) -> Later | Never:
    """What to do with a delivery whose call failed.

    What a person can mend while Hero runs comes later, not never: the message is still worth sending then.
    """
    if error.is_limited:
        return Later(reason=error.detail, after=error.retry_after)
    if error.is_uncertain or not error.status:
        return Later(reason=error.detail, is_uncertain=error.is_uncertain)
    if fix := fix_for(error, place):
        return Later(reason=f"{error.detail}; fix: {fix}", after=MEND_EVERY)
    if error.code == BAD_CONTENT:
        return Never(
            reason=f"Discord does not take this message: {error.detail}", fix="this is a fault in Hero: report it"
        )
    if error.code == NO_DIRECT_MESSAGES:
        return Never(reason="this person takes no direct messages", fix="they have to allow them in this server")
    return Later(reason=f"Discord answered {error.detail}")
