"""Who Hero is on GitHub, so that it knows its own comments."""

from bot.channels.github.client import GitHubClient
from bot.channels.github.records import Records
from bot.channels.github.seen import Comment
from bot.render.github import MARKER_START


class OwnAccount:
    """The login behind the token: asked once, or for an app's token learnt from its first comment."""

    def __init__(self, client: GitHubClient, records: Records) -> None:
        self._client = client
        self._records = records
        self._login: str | None = None
        self._is_asked = False

    async def login(self) -> str | None:
        """Return Hero's login; None for an app that has not been seen to comment yet."""
        if not self._is_asked:
            account = await self._client.ask_self()
            self._login = account.login if account else await self._records.login()
            self._is_asked = True
        return self._login

    def forget(self) -> None:
        """Ask again: the token is another one now, and may be another account's."""
        self._login, self._is_asked = None, False

    async def learn(self, comment: Comment) -> None:
        """Take a comment that is certainly ours to learn the login from."""
        if self._login is None and comment.author is not None:
            self._login = comment.author.login
            await self._records.save_login(self._login)

    async def has_written(self, comment: Comment) -> bool:
        """Say whether the account is the comment's author; a marker alone proves nothing: anybody can paste it."""
        login = await self.login()
        if comment.author is None:
            return False
        if login is None:
            return comment.author.is_bot and MARKER_START in comment.body
        return comment.author.login.casefold() == login.casefold()
