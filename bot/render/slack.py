"""An update as a Slack message: Block Kit for the eye, and a text for notifications and for readers without blocks.

Everything that is not ours is escaped in both. Lengths are bounded after escaping, in this order: evidence gives way
first and says so; the first line, what is next and who is asked stay; a plan is shown whole or can't be approved here.
Limits: Slack's Block Kit reference; the 4,000 characters of an update's text from seratch/ChatGPT-in-Slack #102, the
13,200 over all blocks from bolt-js #2509.
"""

import re
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from bot.model.update import Choice, Standing, Update, UpdateKind
from bot.model.value import RunId, Value
from bot.render.text import clean, slack_code_block, slack_escape
from bot.render.words import SEVERITY_SIGNS, first_line, standing_facts

type Json = dict[str, Any]

APPROVE_ACTION = "hero_approve"
DENY_ACTION = "hero_deny"

TEXT_LIMIT = 3_900
SECTION_LIMIT = 3_000
ALL_LIMIT = 11_900

_FENCES = len("```\n\n```")
_CUT_NOTE_ROOM = 80
_EVIDENCE_LIMIT = 2 * SECTION_LIMIT
"""Longer code blocks are folded away by Slack; the log has the rest."""
_ENTRY_LIMIT = 20_000
_PLAN_LIMIT = 60_000
_LABEL_LIMIT = 60
_FACTS = 10

_USER_ID = re.compile(r"[UW][A-Z0-9]{1,30}")


class SlackMessage(Value):
    """What chat.postMessage and chat.update take."""

    text: str
    blocks: tuple[Json, ...]

    def plain(self) -> "SlackMessage":
        """The same without blocks, for when Slack refuses them: something always arrives."""
        return SlackMessage(text=self.text, blocks=())


def render_slack(update: Update, *, timezone: str, mention: str = "", also: tuple[str, ...] = ()) -> SlackMessage:
    """Render an update.

    Args:
        update: what to tell.
        timezone: in which people read times.
        mention: Slack user id of the person asked; empty when they have none.
        also: those of ``update.also_asked``, in their order. Nobody else is ever mentioned.
    """
    asked = _asked(update, (mention, *also))
    return SlackMessage(text=_text(update, timezone, asked), blocks=tuple(_blocks(update, timezone, asked)))


def render_thread_root(run_id: RunId) -> SlackMessage:
    """The root of a run's thread for when its first news is not about where the run stands."""
    line = f"{_one_line(run_id, 300)}: Hero looks after this run. What happens to it is told in this thread."
    return SlackMessage(text=line, blocks=(_section(line),))


def render_moved(run_id: RunId) -> SlackMessage:
    """What is said once when a run's thread had to be opened anew."""
    line = f"The earlier thread of {_one_line(run_id, 300)} is gone: its first message was deleted. It goes on here."
    return SlackMessage(text=line, blocks=(_section(line),))


def _blocks(update: Update, timezone: str, asked: str) -> Iterable[Json]:
    head = [_section(f"{SEVERITY_SIGNS[update.severity]} *{_one_line(first_line(update), 2_000)}*")]
    if update.standing:
        head += _standing(update.standing, timezone)
    tail = _tail(update, asked)
    room = ALL_LIMIT - _size(head) - _size(tail)
    plan, whole = _plan(update.plan, room)
    room -= _size(plan)
    yield from head
    yield from _evidence(update.evidence, room)
    yield from plan
    yield from tail
    if update.choice and update.choice.is_open and whole:
        yield _buttons(update.choice)


def _text(update: Update, timezone: str, asked: str) -> str:
    """The most important first; the plan whole or not at all, then evidence as far as there is room."""
    lines = [f"{SEVERITY_SIGNS[update.severity]} {_one_line(first_line(update), 900)}"]
    if update.standing:
        facts = standing_facts(update.standing, timezone)
        lines.append(slack_escape(" · ".join(f"{label}: {value}" for label, value in facts), 1_000))
    if update.next:
        lines.append(f"Next: {_one_line(update.next, 600)}")
    if asked:
        lines.append(f"Asked: {asked}")
    if update.choice:
        lines.append(_choice(update.choice, 300))
    room = TEXT_LIMIT - len("\n".join(lines))
    if update.plan:
        plan = f"\nPlan:\n{slack_code_block(clean(_joined(update.plan), _PLAN_LIMIT))}"
        plan = plan if len(plan) <= room else "\nThe plan stands in the message itself."
        lines.append(plan.removeprefix("\n"))
        room -= len(plan)
    if update.evidence and room > 100:  # noqa: PLR2004 - below that a code block holds little but its note
        lines.append(slack_code_block(_joined(clean(entry, _ENTRY_LIMIT) for entry in update.evidence), room - 1))
    return "\n".join(lines)


def _standing(standing: Standing, timezone: str) -> list[Json]:
    facts = standing_facts(standing.model_copy(update={"gaps": ()}), timezone)
    fields = [_mrkdwn(f"*{label}*\n{_one_line(value, 250)}") for label, value in facts[:_FACTS]]
    blocks: list[Json] = [{"type": "section", "fields": fields}]
    if standing.gaps:
        gaps = "\n".join(f"• {' '.join(gap.split())}" for gap in standing.gaps)
        blocks.append(_section(f"*Unknown*\n{slack_escape(gaps, 1_500)}"))
    return blocks


def _tail(update: Update, asked: str) -> list[Json]:
    lines = []
    if update.next:
        lines.append(f"*Next:* {_one_line(update.next, 2_000)}")
    if asked:
        lines.append(f"*Asked:* {asked}")
    if update.choice:
        lines.append(_choice(update.choice, 600))
    return [_section("\n".join(lines))] if lines else []


def _plan(plan: tuple[str, ...], room: int) -> tuple[list[Json], bool]:
    """A plan's code blocks, and whether all of it is in them: nobody approves what they could not read."""
    if not plan:
        return [], True
    title = "*Plan*\n"
    note = (
        "✂ *The plan is too long for Slack and is cut here.* Read it whole with `hero plan` before you answer in words."
    )
    written = _joined(plan)
    room -= len(title) + len(note)
    codes, left = _code_blocks(clean(written, _PLAN_LIMIT), room, len(title))
    whole = not left and len(written) <= _PLAN_LIMIT
    blocks = [_section((title if place == 0 else "") + code) for place, code in enumerate(codes)]
    return (blocks, True) if whole else ([*blocks, _section(note)], False)


def _evidence(evidence: tuple[str, ...], room: int) -> list[Json]:
    if not evidence or room < _CUT_NOTE_ROOM:
        return []
    text = _joined(clean(entry, _ENTRY_LIMIT) for entry in evidence)
    codes, left = _code_blocks(text, min(room - _CUT_NOTE_ROOM, _EVIDENCE_LIMIT), 0)
    blocks = [_section(code) for code in codes]
    if left:
        blocks.append({"type": "context", "elements": [_mrkdwn(f"✂ evidence cut: {left} more lines are in the log")]})
    return blocks


def _code_blocks(text: str, room: int, title: int) -> tuple[list[str], int]:
    """Pack lines into code blocks, each of which fits a section; also return how many lines found no room."""
    limit = SECTION_LIMIT - title
    lines = [piece for line in text.split("\n") for piece in _pieces(line, limit)]
    blocks: list[str] = []
    packed: list[str] = []
    size = _FENCES
    for place, line in enumerate(lines):
        cost = len(slack_code_block(line)) - _FENCES + 1
        if packed and size + cost > limit:
            blocks.append(slack_code_block("\n".join(packed)))
            room -= size
            packed, size = [], _FENCES
        if size + cost > room:
            return blocks + ([slack_code_block("\n".join(packed))] if packed else []), len(lines) - place
        packed.append(line)
        size += cost
    return [*blocks, slack_code_block("\n".join(packed))], 0


def _pieces(line: str, limit: int) -> list[str]:
    """A line as it is, or halved until each part fits a code block of its own."""
    if len(line) <= 1 or (len(line) <= limit and len(slack_code_block(line)) < limit):
        return [line]
    middle = len(line) // 2
    return [*_pieces(line[:middle], limit), *_pieces(line[middle:], limit)]


def _choice(choice: Choice, limit: int) -> str:
    request = _one_line(choice.request, 50)
    if choice.is_open:
        return f"To answer in words: `approve {request}` or `deny {request} because …` in this thread."
    return f"{request}: {_one_line(choice.outcome, limit)}" if choice.outcome else f"{request} is closed."


def _buttons(choice: Choice) -> Json:
    request = clean(choice.request, 50)
    kinds = ((APPROVE_ACTION, "Approve", "primary"), (DENY_ACTION, "Deny", "danger"))
    elements = [
        {
            "type": "button",
            "action_id": action,
            "text": {"type": "plain_text", "text": clean(f"{label} {request}", _LABEL_LIMIT)},
            "style": style,
            "value": request,
        }
        for action, label, style in kinds
    ]
    return {"type": "actions", "block_id": "hero_choice", "elements": elements}


def _asked(update: Update, mentions: tuple[str, ...]) -> str:
    """The person asked, by mention where that is wanted; a status that is edited in place pings nobody."""
    if update.asked is None:
        return ""
    named = zip_longest((update.asked, *update.also_asked), mentions, fillvalue="")
    return ", ".join(
        f"<@{mention}>"
        if _USER_ID.fullmatch(mention) and update.kind is not UpdateKind.LIVE_STATUS
        else f"*{_one_line(name, 100)}*"
        for name, mention in named
        if name
    )


def _one_line(text: str, limit: int) -> str:
    return slack_escape(" ".join(clean(text, _ENTRY_LIMIT).split()), limit)


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def _section(text: str) -> Json:
    return {"type": "section", "text": _mrkdwn(text)}


def _mrkdwn(text: str) -> Json:
    return {"type": "mrkdwn", "text": text}


def _size(blocks: list[Json]) -> int:
    """Characters that Slack counts: sections, fields and context lines."""
    return sum(
        len(part["text"])
        for block in blocks
        for part in (block.get("text"), *block.get("fields", ()), *block.get("elements", ()))
        if part
    )
