"""Which account a login on record was when Hero first saw it: a login can be renamed away and taken by a stranger.

A person whose ``github_id`` is on record needs no pin; for the others the numeric id is fixed at the first start that
can ask, and an account that takes the login later stands for nobody.
"""

from bot.channels.github.client import GitHubClient
from bot.channels.ports import Ledger
from bot.model.person import Actor, Person, Standing
from bot.model.reading import Known, Reading


class Pins:
    """The ids of the people's logins, kept in the ledger."""

    def __init__(self, client: GitHubClient, ledger: Ledger, people: tuple[Person, ...]) -> None:
        self._client = client
        self._ledger = ledger
        self._logins = {p.github.casefold(): p for p in people if p.github and p.github_id is None}
        self._ids = frozenset(str(p.github_id) for p in people if p.github_id is not None)

    async def pin(self) -> None:
        """Fix the id of every login that has none yet.

        Raises:
            ServiceError: GitHub could not be asked; the rest is fixed at the next try.
        """
        for login in self._logins:
            if await self._ledger.cursor(_name(login)) is None:
                account = await self._client.ask_account(login)
                if account is not None:
                    await self._ledger.save_cursor(_name(login), str(account.id))

    async def judge(self, actor: Actor, found: Reading[Standing]) -> Reading[Standing]:
        """Return the standing, unless the login was another account when Hero first saw it."""
        login = actor.login.casefold()
        if not isinstance(found, Known) or login not in self._logins or actor.user_id in self._ids:
            return found
        first = await self._ledger.cursor(_name(login))
        if first is None:
            await self._ledger.save_cursor(_name(login), actor.user_id)
            return found
        if first == actor.user_id:
            return found
        name = self._logins[login].name
        detail = (
            f"the login {actor.login} was account {first} when Hero first saw it and is {actor.user_id} now; "
            f"if that is right, set [people.{name}] github_id = {actor.user_id}"
        )
        standing = found.value.model_copy(update={"is_member": False, "detail": detail})
        return found.model_copy(update={"value": standing})


def _name(login: str) -> str:
    return f"github:id:{login}"
