"""What ``hero doctor`` asks about GitHub, each answer with the fix."""

from bot.channels.github.client import GitHubClient
from bot.channels.github.outcomes import CREDENTIALS_FIX, say_trouble
from bot.errors import ServiceError

type Finding = tuple[str, bool, str, str]
"""Connection, whether it is well, what was seen, and the fix when it is not."""

_LEAST_LEFT = 500
"""Requests an hour below which messages may soon be late; a run costs about 60 for reading alone."""


async def examine(client: GitHubClient) -> tuple[Finding, ...]:
    """Ask for token, repository, permission to write and rate limit; after the first refusal the rest is not asked."""
    findings: list[Finding] = []
    for ask in (_token, _repository, _writing, _limit):
        try:
            finding = await ask(client)
        except ServiceError as error:
            name = f"github {ask.__name__.strip('_')}"
            finding = (name, False, str(error), say_trouble(error, client.repository, None))
        findings.append(finding)
        if not finding[1]:
            break
    return tuple(findings)


async def _token(client: GitHubClient) -> Finding:
    account = await client.ask_self()
    if account is None:
        return ("github token", True, "an app's token, which does not tell its login; [github] app_id would", "")
    detail = f"speaks as {account.login}{', an app' if account.is_bot else ''}"
    return ("github token", True, detail, "")


async def _repository(client: GitHubClient) -> Finding:
    configured = client.repository
    seen = await client.ask_repository()
    name = "github repository"
    if not seen.has_issues:
        return (name, False, f"{seen.full_name} has issues switched off", "switch them on in the repository's settings")
    if seen.is_archived:
        return (name, False, f"{seen.full_name} is archived", "unarchive it, or set another [github] repository")
    if seen.full_name.casefold() != configured.casefold():
        detail = f"{configured} is called {seen.full_name} now"
        return (name, True, detail, f'set [github] repository = "{seen.full_name}"')
    return (name, True, f"{seen.full_name} is readable", "")


async def _writing(client: GitHubClient) -> Finding:
    problem = await client.probe_writing()
    if problem:
        fix = f"{CREDENTIALS_FIX}, with the permission Issues: read and write on {client.repository}"
        return ("github issues", False, f"the token may not write issues ({problem})", fix)
    return ("github issues", True, "the token may write issues", "")


async def _limit(client: GitHubClient) -> Finding:
    left, most = await client.ask_limit()
    detail = f"{left} of {most} requests are left this hour"
    if left < min(_LEAST_LEFT, most // 10):
        return ("github rate limit", False, detail, "give Hero a token of its own, or a longer [github] poll")
    return ("github rate limit", True, detail, "")
