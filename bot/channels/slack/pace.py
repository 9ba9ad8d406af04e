"""Keeps to Slack's pace: about one message a second in a channel, and silence for as long as Slack asks for it."""

from datetime import timedelta

from bot.clock import Clock

POST_EVERY = timedelta(seconds=1)
"""Per channel (Slack: Rate limits, "Posting messages"; September 2025)."""
EDIT_EVERY = timedelta(seconds=1.2)
"""chat.update is in tier 3: 50 a minute in the whole workspace."""
WHISPER_EVERY = timedelta(seconds=0.6)
"""chat.postEphemeral is in tier 4: 100 a minute."""
DEFAULT_PAUSE = timedelta(seconds=30)
"""After a refusal that does not say how long to wait; some lack the header (maknz/slack#36)."""

_PATIENCE_S = 5.0


class Pace:
    """Turns, by key: a channel for posts, a method for others."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._free_at: dict[str, float] = {}

    async def turn(self, key: str, every: timedelta) -> timedelta | None:
        """Wait for the next turn of ``key``; when it is too far off to wait here, take none and return how far."""
        now = self._clock.monotonic()
        at = max(now, self._free_at.get(key, now))
        if at - now > _PATIENCE_S:
            return timedelta(seconds=at - now)
        self._free_at[key] = at + every.total_seconds()
        if at > now:
            await self._clock.sleep(timedelta(seconds=at - now))
        return None

    def hold(self, key: str, pause: timedelta) -> None:
        """Let nothing through for so long."""
        until = self._clock.monotonic() + pause.total_seconds()
        self._free_at[key] = max(until, self._free_at.get(key, until))
