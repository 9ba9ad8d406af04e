"""What a bot's text on GitHub must never do, noticed as it is stored rather than left to each test to look for."""

import re
from collections.abc import Iterable

from tests.fakes.github_access import Access
from tests.fakes.github_world import World

MENTION = re.compile(r"(?<![\w`])@([a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:/[a-z0-9][a-z0-9._-]*)?)", re.IGNORECASE)
NOT_RENDERED = re.compile(r"<!--.*?-->|\\`|(?ms:^(```|~~~).*?^\1)|(`+)[^`].*?\2", re.DOTALL)
"""Comments and code, where an `@` notifies nobody. A backslash before an `@` does not help: it is gone by then; one
before a backtick makes it begin no code."""
MARKER = re.compile(r"<!--.*?-->", re.DOTALL)


class Proofreader:
    """Collects sentences in `mistakes`. Whoever calls holds the fake's lock, but for `note`."""

    def __init__(
        self, world: World, access: Access, marker: str | None, allowed_mentions: Iterable[str] | None
    ) -> None:
        self.mistakes: list[str] = []
        self._world = world
        self._access = access
        self._marker = marker
        self._allowed = None if allowed_mentions is None else {login.lower() for login in allowed_mentions}

    def note(self, mistake: str) -> None:
        self.mistakes.append(mistake)

    def read(self, where: str, body: str) -> None:
        """Look over one stored text."""
        if self._marker is not None and self._marker not in body:
            self.note(f"{where}: the body has no marker {self._marker!r}")
        if any(token in body for token in self._access.values()):
            self.note(f"{where}: the body shows an access token")
        if self._allowed is not None:
            names = MENTION.findall(NOT_RENDERED.sub(" ", body))
            self.mistakes += [f"{where}: mentions @{name}" for name in names if name.lower() not in self._allowed]

    def compare(self, where: str, issue: int, login: str) -> None:
        """Look for the newest comment's marker in the account's older ones: a thing said twice."""
        if self._marker is None:
            return
        *older, newest = (c for c in self._world.comments_of(issue) if c.author.lower() == login.lower())
        for marker in MARKER.findall(newest.body):
            if marker.startswith(self._marker) and any(marker in comment.body for comment in older):
                self.note(f"{where}: said twice, {marker}")
