"""An update as a Discord message: one line that says it all, embeds for the eye, and a text for where those are barred.

Everything that is not ours is escaped. Lengths are bounded after escaping, in this order: evidence gives way first and
says so; the first line, what is next and who is asked stay; a plan is shown whole or can't be approved here.
Limits: Discord, "Message Object" and "Embed Limits" (resources/message.mdx). Pings are in the content alone, and only
of the ids in ``mentions``.
"""

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from bot.model.update import Choice, Standing, Update, UpdateKind
from bot.model.value import RunId, Value
from bot.model.verdict import Severity
from bot.render.text import clean, discord_code_block, discord_escape
from bot.render.words import SEVERITY_SIGNS, first_line, standing_facts

type Json = dict[str, Any]

CONTENT_LIMIT = 1_990
DESCRIPTION_LIMIT = 4_096
EMBEDS_LIMIT = 5_900
"""Of 6,000 over all embeds of a message."""

_COLOURS = {Severity.INFO: 0x5865F2, Severity.WARNING: 0xF0B232, Severity.CRITICAL: 0xDA373C}
_FACTS = 10
_ENTRY_LIMIT = 20_000
_PLAN_LIMIT = 60_000
_FENCES = len("```\n\n```")
_CUT_NOTE_ROOM = 80
_LEAST_ROOM = 150
_MARK_CHARS = 20
"""A nonce may have 25 (resources/message.mdx, "Create Message")."""

_USER_ID = re.compile(r"[1-9][0-9]{14,19}")
_REQUEST = re.compile(r"R[1-9][0-9]{0,8}")
_BUTTON_ID = re.compile(r"hero:(approve|deny):(R[1-9][0-9]{0,8})")
_TOO_LONG = (
    "✂ **The plan is too long for Discord and is cut here, so it can't be approved here.** Read it whole with"
    " `hero plan`, and answer on another channel."
)


class Button(Value):
    """A button of a request; ``custom_id`` comes back when it is pressed, from whoever pressed it."""

    custom_id: str
    label: str
    is_approval: bool


class DiscordMessage(Value):
    """What a message is made of; ``plain`` is the same without embeds, for where they are refused or dropped."""

    content: str
    embeds: tuple[Json, ...] = ()
    buttons: tuple[Button, ...] = ()
    mentions: tuple[int, ...] = ()
    plain: "DiscordMessage | None" = None


def mark_of(key: str) -> str:
    """The mark by which Hero finds its own message again; also its nonce."""
    return sha256(key.encode()).hexdigest()[:_MARK_CHARS]


def signature(mark: str) -> str:
    """What the mark looks like at a message's end."""
    return f"hero · {mark}"


def parse_button(custom_id: str) -> tuple[str, bool] | None:
    """The request and whether it is a yes; None for what is no button of a request. Nothing else is in it."""
    found = _BUTTON_ID.fullmatch(custom_id)
    return (found[2], found[1] == "approve") if found else None


def render_discord(
    update: Update,
    *,
    timezone: str,
    mark: str,
    mention: str = "",
    also: tuple[str, ...] = (),
    reads_replies: bool = True,
) -> DiscordMessage:
    """Render an update.

    Args:
        update: what to tell.
        timezone: in which people read times.
        mark: from ``mark_of``.
        mention: Discord user id of the person asked; empty when they have none.
        also: those of ``update.also_asked``, in their order. Nobody else is ever mentioned.
        reads_replies: whether Hero may read what people write without mentioning it.
    """
    names = tuple(name for name in (update.asked, *update.also_asked) if name)
    named = list(zip(names, (mention, *also, *("" for _ in names)), strict=False))
    pinged = [user for _, user in named if _USER_ID.fullmatch(user)] if _pings(update) else []
    asked = ", ".join(f"<@{user}>" if user in pinged else f"**{_one_line(name, 100)}**" for name, user in named)
    mentions = tuple(int(user) for user in pinged)
    plain, plain_whole = _plain(update, timezone, mark, asked, reads_replies=reads_replies)
    embeds, whole = _embeds(update, timezone, mark, "" if pinged else asked, reads_replies=reads_replies)
    content = f"{SEVERITY_SIGNS[update.severity]} **{_one_line(first_line(update), 1_500)}**"
    return DiscordMessage(
        content=f"{content}\nAsked: {asked}" if pinged else content,
        embeds=embeds,
        buttons=_buttons(update.choice) if whole else (),
        mentions=mentions,
        plain=DiscordMessage(content=plain, buttons=_buttons(update.choice) if plain_whole else (), mentions=mentions),
    )


def render_thread_root(run_id: RunId, mark: str) -> DiscordMessage:
    """The root of a run's thread for when its first news is not about where the run stands."""
    line = f"**{_one_line(run_id, 300)}**: Hero looks after this run. What happens to it is told in this thread."
    return _said(line, mark)


def render_moved(run_id: RunId, mark: str) -> DiscordMessage:
    """What is said once when a run's thread had to be opened anew."""
    line = f"The earlier thread of {_one_line(run_id, 300)} is gone or locked. It goes on here."
    return _said(line, mark)


def _said(line: str, mark: str) -> DiscordMessage:
    return DiscordMessage(content=f"{line}\n-# {signature(mark)}")


def _pings(update: Update) -> bool:
    """A status that is edited in place pings nobody."""
    return update.asked is not None and update.kind is not UpdateKind.LIVE_STATUS


def _embeds(
    update: Update, timezone: str, mark: str, asked: str, *, reads_replies: bool
) -> tuple[tuple[Json, ...], bool]:
    """The embeds, and whether the whole plan is in them."""
    foot = signature(mark)
    head: Json = {"description": "", "fields": _fields(update.standing, timezone) if update.standing else []}
    tail = _tail(update, asked, reads_replies=reads_replies)
    room = EMBEDS_LIMIT - len(foot) - len(tail) - _size((head,))
    plan, whole = _plan(update.plan, room)
    if not whole:
        tail = _tail(update.model_copy(update={"choice": None}), asked, reads_replies=reads_replies)
    head["description"] = tail
    room -= _size(plan)
    shown = [head] if tail or head["fields"] else []
    shown += [*_evidence(update.evidence, room), *plan]
    shown = shown or [{"description": ""}]
    shown[0]["color"] = _COLOURS[update.severity]
    shown[-1]["footer"] = {"text": foot}
    return tuple({key: value for key, value in embed.items() if value} for embed in shown), whole


def _plain(update: Update, timezone: str, mark: str, asked: str, *, reads_replies: bool) -> tuple[str, bool]:
    """The most important first; the plan whole or not at all, then evidence as far as there is room."""
    foot = f"-# {signature(mark)}"
    lines = [f"{SEVERITY_SIGNS[update.severity]} **{_one_line(first_line(update), 600)}**"]
    tail = _tail(update, asked, reads_replies=reads_replies, limit=300)
    room = CONTENT_LIMIT - len(foot) - len(lines[0]) - len(tail) - 3
    plan = f"**Plan**\n{discord_code_block(clean('\n'.join(update.plan), _PLAN_LIMIT))}\n" if update.plan else ""
    whole = len(plan) <= room
    if not whole:
        plan = f"{_TOO_LONG}\n"
        tail = _tail(update.model_copy(update={"choice": None}), asked, reads_replies=reads_replies, limit=300)
    room -= len(plan)
    if update.standing and room > _LEAST_ROOM:
        facts = " · ".join(f"{label}: {value}" for label, value in standing_facts(update.standing, timezone))
        lines.append(_one_line(facts, min(room, 700)))
        room -= len(lines[-1]) + 1
    if update.evidence and room > _LEAST_ROOM:
        evidence = "\n".join(clean(entry, _ENTRY_LIMIT) for entry in update.evidence)
        lines.append(discord_code_block(evidence, room - 1))
    return "\n".join([*lines, *([plan.rstrip("\n")] if plan else []), *([tail] if tail else []), foot]), whole


def _fields(standing: Standing, timezone: str) -> list[Json]:
    facts = standing_facts(standing.model_copy(update={"gaps": ()}), timezone)
    fields = [{"name": label, "value": _one_line(value, 250), "inline": True} for label, value in facts[:_FACTS]]
    if standing.gaps:
        gaps = discord_escape("\n".join(f"• {' '.join(gap.split())}" for gap in standing.gaps), 1_000)
        fields.append({"name": "unknown", "value": gaps, "inline": False})
    return fields


def _tail(update: Update, asked: str, *, reads_replies: bool, limit: int = 1_000) -> str:
    lines = []
    if update.next:
        lines.append(f"**Next:** {_one_line(update.next, limit)}")
    if asked:
        lines.append(f"**Asked:** {asked}")
    if update.choice:
        lines.append(_choice(update.choice, limit, reads_replies=reads_replies))
    return "\n".join(lines)


def _choice(choice: Choice, limit: int, *, reads_replies: bool) -> str:
    request = _one_line(choice.request, 50)
    if not choice.is_open:
        return f"{request}: {_one_line(choice.outcome, limit)}" if choice.outcome else f"{request} is closed."
    if reads_replies:
        return f"To answer in words: `approve {request}` or `deny {request} because …` in this thread."
    return (
        f"Press a button, or `/hero approve {request}` or `/hero deny {request} because …` in this thread."
        " Replies that do not begin with a mention of Hero can't be read: it lacks the Message Content Intent."
    )


def _plan(plan: tuple[str, ...], room: int) -> tuple[list[Json], bool]:
    """A plan's embeds, and whether all of it is in them: nobody approves what they could not read."""
    if not plan:
        return [], True
    text = clean("\n".join(plan), _PLAN_LIMIT)
    title = "Plan"
    whole_size = len(discord_code_block(text)) + len(title)
    if whole_size <= min(room, DESCRIPTION_LIMIT):
        return [{"title": title, "description": discord_code_block(text)}], True
    half = _halves(text)
    if sum(len(each) for each in half) + len(title) <= room and all(len(each) <= DESCRIPTION_LIMIT for each in half):
        return [{"title": title, "description": half[0]}, {"description": half[1]}], True
    shown = min(room - len(title) - len(_TOO_LONG) - 1, 1_500)
    cut = f"{discord_code_block(text, shown)}\n{_TOO_LONG}" if shown > _LEAST_ROOM else _TOO_LONG
    return [{"title": title, "description": cut}], False


def _halves(text: str) -> tuple[str, ...]:
    """A text as code blocks of which the first ends at a line's end, as full as a description may be."""
    end = text.rfind("\n", 0, DESCRIPTION_LIMIT - 2 * _FENCES)
    if end <= 0:
        return (discord_code_block(text),)
    return discord_code_block(text[:end]), discord_code_block(text[end + 1 :])


def _evidence(evidence: tuple[str, ...], room: int) -> list[Json]:
    if not evidence or room < _LEAST_ROOM:
        return []
    lines = "\n".join(clean(entry, _ENTRY_LIMIT) for entry in evidence).split("\n")
    most = min(room, DESCRIPTION_LIMIT) - _CUT_NOTE_ROOM
    kept = list[str]()
    left = most - _FENCES
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    text = "\n".join(kept) if kept else lines[0]
    block = discord_code_block(text, most)
    cut = len(lines) - max(1, len(kept))
    note = f"\n✂ evidence cut: {cut} more lines are in the log" if cut else ""
    return [{"description": f"{block}{note}"}]


def _buttons(choice: Choice | None) -> tuple[Button, ...]:
    if choice is None or not choice.is_open or not _REQUEST.fullmatch(choice.request):
        return ()
    return (
        Button(custom_id=f"hero:approve:{choice.request}", label=f"Approve {choice.request}", is_approval=True),
        Button(custom_id=f"hero:deny:{choice.request}", label=f"Deny {choice.request}", is_approval=False),
    )


def _one_line(text: str, limit: int) -> str:
    return discord_escape(" ".join(clean(text, _ENTRY_LIMIT).split()), limit)


def _size(embeds: Iterable[Json]) -> int:
    """Characters that Discord counts."""
    return sum(
        len(embed.get("title", ""))
        + len(embed.get("description", ""))
        + sum(len(field["name"]) + len(field["value"]) for field in embed.get("fields", ()))
        for embed in embeds
    )
