"""What is wrong with the link to GitHub now: shown in one line, logged once when it begins and once when it ends."""

import structlog

from bot.clock import Clock

log = structlog.get_logger()


class Trouble:
    """By concern (``reading``, ``writing``, ``issue 12``), so that one being well again does not hide another."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now: dict[str, tuple[str, float]] = {}

    @property
    def text(self) -> str:
        """All of it in one line with the fixes; the same fault of several concerns is told once."""
        return "; ".join(dict.fromkeys(text for text, _ in self._now.values()))

    def begin(self, concern: str, text: str) -> None:
        since = self._now.get(concern)
        self._now[concern] = (text, since[1] if since else self._clock.monotonic())
        if since is None:
            log.warning("github_trouble_began", concern=concern, detail=text)

    def end(self, concern: str) -> None:
        found = self._now.pop(concern, None)
        if found is not None:
            log.info("github_trouble_ended", concern=concern, away_s=round(self._clock.monotonic() - found[1], 1))
