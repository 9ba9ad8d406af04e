"""What ``hero doctor`` asks of Discord: its token, intent, gateway, channel and command, and whether it knows a DRI."""

from bot.channels.discord.api import DiscordApi
from bot.channels.discord.doctor import examine
from bot.channels.discord.identify import standing_of
from bot.clock import Clock
from bot.commands.probing import Probe, bad, good
from bot.model.person import Actor, Person, Platform
from bot.model.reading import Known, Unknown
from bot.settings import DiscordSettings


async def ask_discord(settings: DiscordSettings) -> tuple[Probe, ...]:
    """Check every part of the connection."""
    api = DiscordApi(settings)
    try:
        return tuple(Probe(*finding) for finding in await examine(settings, api))
    finally:
        await api.close()


async def reach_on_discord(people: list[Person], settings: DiscordSettings, clock: Clock) -> tuple[Probe, ...]:
    """See that each of them can be called and answer there."""
    api = DiscordApi(settings)
    try:
        return tuple([await _reach(person, api, settings, clock) for person in people])
    finally:
        await api.close()


async def _reach(person: Person, api: DiscordApi, settings: DiscordSettings, clock: Clock) -> Probe:
    name = f"{person.name} on discord"
    fix = f"set [people.{person.name}] discord to their numeric user id (developer mode, Copy User ID)"
    if person.discord is None:
        return bad(name, "no Discord account on record: they can neither be called nor answer there", fix)
    actor = Actor(platform=Platform.DISCORD, user_id=person.discord)
    match await standing_of(actor, api, settings.guild or "0", clock):
        case Unknown(detail=detail):
            return bad(name, f"{person.discord}: {detail}", "mend the connection to Discord, then ask again")
        case Known(value=standing) if not standing.is_member:
            return bad(name, f"{person.discord} is {standing.detail}: their answers would not count", fix)
        case _:
            return good(name, f"{person.discord} is a member")
