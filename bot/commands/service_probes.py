"""What the doctor asks of services: Slack, GitHub, Iris, Finelog, W&B, and whether people can be reached there."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

from bot.channels.github.client import GitHubClient
from bot.channels.github.doctor import examine
from bot.channels.github.records import Records
from bot.channels.github.webhook import PATH
from bot.channels.slack.api import SlackApi
from bot.channels.slack.doctor import probe
from bot.channels.slack.identify import standing_of
from bot.clock import Clock
from bot.commands.probing import Probe, bad, good
from bot.commands.sight import open_store
from bot.errors import ServiceError
from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.person import Actor, Person, Platform
from bot.model.reading import Gap, Known, Unknown
from bot.model.tracker import TrackerRunState
from bot.render.words import say_time
from bot.settings import (
    DiscordSettings,
    FinelogSettings,
    IrisSettings,
    Settings,
    SlackSettings,
    WandbSettings,
)
from bot.sources.chosen import is_tracked
from bot.sources.finelog.source import FinelogSource
from bot.sources.iris.client_age import MAY_SUBMIT_FOR, client_build_date, client_words
from bot.sources.iris.failure import NoVerbError
from bot.sources.iris.source import IrisOrchestrator
from bot.sources.wandb.source import WandbSource

_UPGRADE = "upgrade marin-iris where the submit command runs"

_FINELOG_THERE = (
    "see that Finelog runs, and that [finelog] url is right (without one it is asked behind the controller)"
)
_FINELOG_FIX = {
    Gap.NOT_CONFIGURED: "pip install hero-bot[finelog]",
    Gap.REFUSED: "correct [finelog] url or token",
    Gap.UNREACHABLE: _FINELOG_THERE,
    Gap.TIMEOUT: _FINELOG_THERE,
    Gap.UNRECOGNISED: "correct [finelog] url; one that has just started lacks its tables for a minute, and one that is "
    "newer than this Hero needs a newer Hero",
}


async def probe_slack(settings: SlackSettings) -> tuple[Probe, ...]:
    """Ask what the Slack channel knows of itself."""
    if not is_slack_meant(settings):
        return (good("slack", "not configured"),)
    found = await probe(settings, SlackApi(settings))
    return tuple(Probe(each.connection, each.ok, each.detail, each.fix) for each in found)


async def probe_github(settings: Settings, clock: Clock) -> tuple[Probe, ...]:
    """Ask what the GitHub channel knows of itself, and how comments reach it."""
    github = settings.github
    if not github.is_set and github.repository is None:
        return (good("github", "not configured"),)
    if not github.is_set:
        return (bad("github token", "not set", "set HERO_GITHUB__TOKEN, [github] token_file, or a GitHub App"),)
    client = GitHubClient(github, clock, pacing=timedelta(seconds=1))
    try:
        found = tuple(Probe(*finding) for finding in await examine(client))
    finally:
        client.close()
    if not all(each.ok for each in found):
        return (*found, await _probe_comments(settings, clock))
    return (*found, await _probe_seal(settings, clock), await _probe_comments(settings, clock))


async def _probe_seal(settings: Settings, clock: Clock) -> Probe:
    """Say where finished runs are sealed; whether the token may is only known by doing it, since no question tells."""
    github, name = settings.github, "github seal"
    source = github.source_repository or github.repository
    client = GitHubClient(github.model_copy(update={"repository": source}), clock, pacing=timedelta(seconds=1))
    try:
        seen = await client.ask_repository()
    except ServiceError as error:
        fix = "set [github] source_repository to the runs' source, and give the token `contents: write` there"
        return bad(name, f"{source} cannot be read: {error}", fix)
    finally:
        client.close()
    if seen.is_archived:
        return bad(name, f"{seen.full_name} is archived: no tag can be created", "unarchive it, or name another one")
    which = "[github] source_repository" if github.source_repository else "[github] repository"
    needs = "a seal needs `contents: write` there, which is tried only then"
    return good(name, f"finished runs are sealed with a tag in {seen.full_name} ({which}); {needs}")


async def _probe_comments(settings: Settings, clock: Clock) -> Probe:
    """Say which way comments arrive; that no delivery was ever seen is a note, since polling misses nothing."""
    github, name = settings.github, "github comments"
    poll = say_duration(github.poll)
    if github.webhook_secret is None:
        return good(name, f"are read every {poll}; there is no webhook")
    async with open_store(settings, clock) as store:
        seen = await Records(store).delivered() if store is not None else None
    if seen is None:
        fix = (
            f"add a webhook to {github.repository}: https://YOUR-HOST{PATH} as payload URL, content type "
            "application/json, the secret, and of the events Issue comments alone"
        )
        return good(name, f"are read every {poll}: no delivery of the webhook was seen yet", fix)
    last = f"{seen.count} deliveries of the webhook were seen, the last at {say_time(seen.at, settings.bot.timezone)}"
    if not seen.is_reliable:
        fix = "see the webhook's Recent Deliveries on GitHub for what became of the others"
        return good(name, f"are read every {poll}, since a comment was not delivered: {last}", fix)
    return good(name, f"{last}; they are read every {say_duration(github.sweep)} besides")


async def probe_iris(settings: IrisSettings, contracts: tuple[Contract, ...], clock: Clock) -> tuple[Probe, ...]:
    """Ask the controller something, and the client that submits how old it is."""
    runs = [contract for contract in contracts if contract.orchestrator.kind == "iris"]
    is_set = bool(settings.controller_url or settings.config or settings.cluster)
    if not is_set and not runs:
        return (good("iris", "not configured"),)
    if not is_set:
        detail = f"not configured, and {', '.join(run.run_id for run in runs)} is an Iris job"
        return (bad("iris controller", detail, "set [iris] controller_url, config or cluster"),)
    controller, *ages = await asyncio.gather(
        _ask_controller(settings, clock),
        *(_ask_age(words, directory, settings, clock) for words, directory in _clients(settings, runs)),
    )
    return (controller, *ages)


async def probe_finelog(settings: FinelogSettings, contracts: tuple[Contract, ...], clock: Clock) -> tuple[Probe, ...]:
    """Ask Finelog which of its tables for training metrics it has.

    Args:
        settings: ``Settings.finelog_in_use``.
        contracts: of the runs.
        clock: for the moment of the answer.
    """
    if settings.url is None:
        runs = ", ".join(each.run_id for each in contracts if each.orchestrator.kind == "iris")
        if not runs:
            return (good("finelog", "not configured"),)
        detail = f"no address, so the figures and signs of life of {runs} are not read there"
        return (good("finelog", detail, "set [iris] controller_url or [finelog] url"),)
    source = FinelogSource(settings, clock)
    try:
        found = await source.tables()
    finally:
        await source.close()
    match found:
        case Unknown(reason=reason, detail=detail):
            return (
                bad("finelog", f"{settings.url}: {detail}", _FINELOG_FIX.get(reason, "report it, with what was seen")),
            )
        case Known(value=tables):
            return (good("finelog", f"{settings.url} holds training metrics in {', '.join(tables)}"),)


async def probe_wandb(settings: WandbSettings, contracts: tuple[Contract, ...], clock: Clock) -> tuple[Probe, ...]:
    """Ask W&B for every run that a contract names there; a missing key is only told of when one is wanted."""
    tracked = [contract for contract in contracts if is_tracked(contract)]
    if settings.api_key is None:
        fix = "set HERO_WANDB__API_KEY or [wandb] api_key_file"
        if tracked:
            names = ", ".join(contract.run_id for contract in tracked)
            return (good("wandb", f"no key, so the tracker of {names} is not read", fix),)
        if settings.entity or settings.project:
            return (good("wandb", "[wandb] is set and there is no key, so nothing is read there", fix),)
        return (good("wandb", "not configured"),)
    source = WandbSource(settings, clock)
    try:
        return tuple(await asyncio.gather(*(_ask_tracker(source, contract) for contract in tracked))) or (
            good("wandb", "a key is set, and no contract names a tracked run"),
        )
    finally:
        await source.close()


async def _ask_tracker(source: WandbSource, contract: Contract) -> Probe:
    name = f"wandb {contract.run_id}"
    match await source.tracker(contract):
        case Unknown(reason=reason, detail=detail):
            return bad(name, f"{reason}: {detail}", "check the key, [wandb] base_url, entity and project")
        case Known(value=state) if state.state is TrackerRunState.MISSING:
            return good(
                name, "W&B has no such run yet", "it appears when the trainer first logs; else correct [tracker]"
            )
        case Known(value=state):
            return good(name, f"{state.url} is {state.state}")


async def probe_people(settings: Settings, contracts: tuple[Contract, ...], clock: Clock) -> tuple[Probe, ...]:
    """See that each DRI has an account on each channel, and that each of them knows it."""
    wanted = {contract.dri for contract in contracts}
    people = [person for person in settings.persons if person.name in wanted]
    slack, github = settings.slack, settings.github
    found: list[Probe] = []
    if slack.bot_token is not None:
        api = SlackApi(slack)
        found += await asyncio.gather(*(_reach_on_slack(person, api, clock) for person in people))
    if github.is_set:
        client = GitHubClient(github, clock, pacing=timedelta(seconds=1))
        try:
            found += [await _reach_on_github(person, client) for person in people]
        finally:
            client.close()
    if settings.discord.token is not None:
        from bot.commands.discord_probe import reach_on_discord  # noqa: PLC0415 - discord.py takes half a second, and only who uses it needs it

        found += await reach_on_discord(people, settings.discord, clock)
    if settings.speaks_in_terminal:
        found += [_reach_on_console(person) for person in people]
    return tuple(found) or (good("people", "no run names anybody yet"),)


async def probe_discord(settings: DiscordSettings) -> tuple[Probe, ...]:
    """Check every part of the connection to Discord, when there is one."""
    if settings.token is None and settings.channel is None and settings.guild is None:
        return (good("discord", "not configured"),)
    from bot.commands.discord_probe import ask_discord  # noqa: PLC0415 - discord.py takes half a second, and only who uses it needs it

    return await ask_discord(settings)


def is_slack_meant(settings: SlackSettings) -> bool:
    """Whether anything of Slack was set up, completely or not."""
    given = (settings.bot_token, settings.app_token, settings.signing_secret, settings.channel)
    return any(each is not None for each in given)


async def _reach_on_slack(person: Person, api: SlackApi, clock: Clock) -> Probe:
    name = f"{person.name} on slack"
    fix = f"set [people.{person.name}] slack to their user id, U… (profile, More, Copy member ID)"
    if person.slack is None:
        return bad(name, "no Slack account on record: they can neither be called nor answer there", fix)
    match await standing_of(Actor(platform=Platform.SLACK, user_id=person.slack), api, clock):
        case Unknown(detail=detail):
            return bad(name, f"{person.slack}: {detail}", "mend the connection to Slack, then ask again")
        case Known(value=standing) if not standing.is_member:
            return bad(name, f"{person.slack} is {standing.detail}: their answers would not count", fix)
        case _:
            return good(name, f"{person.slack} is a member")


async def _reach_on_github(person: Person, client: GitHubClient) -> Probe:
    name = f"{person.name} on github"
    fix = f"set [people.{person.name}] github to their login"
    if person.github is None:
        return bad(name, "no GitHub login on record: they can neither be called nor answer there", fix)
    try:
        account = await client.ask_account(person.github)
        permission = await client.ask_permission(person.github) if account else "none"
    except ServiceError as error:
        return bad(name, f"{person.github}: {error.detail}", "mend the connection to GitHub, then ask again")
    if account is None:
        return bad(name, f"there is no account {person.github}", fix)
    if person.github_id is not None and person.github_id != account.id:
        detail = f"{person.github} has the id {account.id}, and {person.github_id} is on record"
        return bad(name, detail, f"correct [people.{person.name}] github_id")
    if permission not in {"admin", "maintain", "write"}:
        detail = f"{person.github} has the permission {permission!r} on {client.repository}: answers would not count"
        return bad(name, detail, f"give {person.github} write access to {client.repository}")
    return good(name, f"{person.github} has the permission {permission!r}")


def _reach_on_console(person: Person) -> Probe:
    name = f"{person.name} on console"
    if person.console:
        return good(name, "whoever sits at Hero's terminal")
    fix = f"set [people.{person.name}] console = true if they sit at Hero's terminal, or set up Slack or GitHub"
    return bad(name, "answers typed at Hero's terminal would not count as theirs", fix)


async def _ask_controller(settings: IrisSettings, clock: Clock) -> Probe:
    name = "iris controller"
    iris = IrisOrchestrator(settings, clock)
    way = settings.controller_url or f"the CLI {settings.cli!r}"
    try:
        async with asyncio.timeout(settings.deadline.total_seconds()):
            await iris.ask("ListJobs", {"query": {"scope": "JOB_QUERY_SCOPE_ALL", "limit": 1}})
    except TimeoutError:
        detail = f"no answer through {way} in {say_duration(settings.deadline)}"
        return bad(
            name, detail, "see that the controller runs and that [iris] controller_url, config or cluster is right"
        )
    except NoVerbError as error:
        detail = f"{way} is of a generation that cannot be asked this way ({error.detail})"
        return good(name, detail, "set [iris] controller_url, so that its RPC is asked")
    except ServiceError as error:
        return bad(name, f"{way}: {error.detail}", "correct [iris] controller_url, config, cluster or token")
    finally:
        await iris.close()
    return good(name, f"answers through {way}")


def _clients(settings: IrisSettings, runs: list[Contract]) -> tuple[tuple[tuple[str, ...], Path | None], ...]:
    """Return how each client that would submit is called, and where; the settings' own when no command shows one."""
    shown = [(client_words(run.command), Path(run.checkout)) for run in runs]
    found: list[tuple[tuple[str, ...], Path | None]] = [(words, where) for words, where in shown if words]
    return tuple(dict.fromkeys(found)) or ((tuple(settings.cli.split()), None),)


async def _ask_age(words: tuple[str, ...], directory: Path | None, settings: IrisSettings, clock: Clock) -> Probe:
    name = "iris client"
    called = " ".join(words)
    match await client_build_date(words, deadline=settings.deadline, clock=clock, directory=directory):
        case Unknown(detail=detail):
            fix = "see that the client can be called here; the controller refuses one that is older than 14 days"
            return bad(name, f"the age of `{called}` is not known: {detail}", fix)
        case Known(value=built, at=at):
            return judge_age(called, built, at, settings.client_age_warning)


def judge_age(called: str, built: datetime, at: datetime, warning: timedelta) -> Probe:
    """Say whether a client may submit, and warn when it soon may not."""
    name, age = "iris client", at - built
    last = built + MAY_SUBMIT_FOR
    if age >= MAY_SUBMIT_FOR:
        return bad(name, f"`{called}` is {age.days} days old: the controller refuses its submissions", _UPGRADE)
    if age >= warning:
        return good(name, f"`{called}` is {age.days} days old and may submit until {last:%Y-%m-%d}", _UPGRADE)
    return good(name, f"`{called}` is {age.days} days old")
