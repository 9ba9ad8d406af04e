"""What Slack refuses in a message, and what it lets pass although nobody wanted it.

Limits: the Block Kit reference, ``chat.postMessage`` and ``chat.update``; the 13,200 characters over all blocks
are known from bolt-js #2509, the 4,000 of an update from seratch/ChatGPT-in-Slack #102.
"""

import re
from collections.abc import Iterator
from typing import Any

from tests.fakes.slack_values import Json, Mistake, Refused, texts_in

TEXT_ADVISED = 4_000
TEXT_CUT = 40_000
BLOCKS = 50
ALL_BLOCKS_TEXT = 13_200
TEXT_OBJECT = 3_000

_KNOWN_BLOCKS = frozenset(
    {"section", "header", "divider", "context", "actions", "image", "input", "rich_text", "markdown", "video", "file"}
)
_TOKEN = re.compile(r"<([^<>\n]+)>")
_LINK = re.compile(r"(https?|mailto|tel):", re.IGNORECASE)
_BARE = re.compile(r"<|(?<!^)>|&(?!amp;|lt;|gt;)", re.MULTILINE)


def check_blocks(blocks: object) -> None:
    """Raise Refused where Slack would not take these blocks."""
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise Refused("invalid_blocks_format")
    if len(blocks) > BLOCKS:
        raise Refused("invalid_blocks", messages=(f"no more than {BLOCKS} items allowed [json-pointer:/blocks]",))
    errors = tuple(error for index, block in enumerate(blocks) for error in _block(block, f"/blocks/{index}"))
    ids = [block["block_id"] for block in blocks if block.get("block_id")]
    repeated = {name for name in ids if ids.count(name) > 1}
    errors += tuple(f"`block_id` {name} is already in use [json-pointer:/blocks]" for name in sorted(repeated))
    if errors:
        raise Refused("invalid_blocks", messages=errors)
    if sum(len(text) for text in texts_in(blocks)) > ALL_BLOCKS_TEXT:
        raise Refused("msg_blocks_too_long")


def check_view(view: object) -> None:
    """Raise Refused where Slack would not open this view (views.open; the reference of views and of select menus)."""
    if not isinstance(view, dict) or view.get("type") != "modal":
        raise Refused("invalid_arguments", messages=("missing required field: view [json-pointer:/view]",))
    if errors := tuple(_view(view)):
        raise Refused("invalid_arguments", messages=errors)


def _view(view: Json) -> Iterator[str]:
    for key, needed in (
        ("title", True),
        ("submit", any(b.get("type") == "input" for b in view["blocks"])),
        ("close", 0),
    ):
        if needed or view.get(key) is not None:
            yield from _text_object(view.get(key), 24, f"/view/{key}", plain=True)
    yield from _length(view.get("callback_id"), 255, "/view/callback_id")
    yield from _length(view.get("private_metadata"), 3_000, "/view/private_metadata")
    yield from _many(view.get("blocks"), 100, "/view/blocks")
    for index, block in enumerate(view["blocks"]):
        yield from _block(block, f"/view/blocks/{index}")
        if block.get("type") == "input":
            yield from _input(block, f"/view/blocks/{index}")


def _input(block: Json, at: str) -> Iterator[str]:
    yield from _text_object(block.get("label"), 2_000, f"{at}/label", plain=True)
    if block.get("hint") is not None:
        yield from _text_object(block["hint"], 2_000, f"{at}/hint", plain=True)
    element = block.get("element") or {}
    yield from _element(element, f"{at}/element")
    if element.get("type") != "static_select":
        yield f"unsupported type: {element.get('type')} [json-pointer:{at}/element/type]"
        return
    if element.get("placeholder") is not None:
        yield from _text_object(element["placeholder"], 150, f"{at}/element/placeholder", plain=True)
    yield from _many(element.get("options"), 100, f"{at}/element/options")
    for index, option in enumerate(element.get("options") or ()):
        yield from _text_object(option.get("text"), 75, f"{at}/element/options/{index}/text")
        yield from _string(option.get("value"), 150, f"{at}/element/options/{index}/value")


def check_metadata(metadata: object) -> None:
    """Raise Refused unless it is the documented pair of a type and a payload."""
    match metadata:
        case {"event_type": str(kind), "event_payload": dict()} if kind:
            return
        case _:
            raise Refused("invalid_metadata_format")


def _block(block: Json, at: str) -> Iterator[str]:
    kind = block.get("type")
    if kind not in _KNOWN_BLOCKS:
        yield f"unsupported type: {kind} [json-pointer:{at}/type]"
        return
    yield from _length(block.get("block_id"), 255, f"{at}/block_id")
    match kind:
        case "section":
            yield from _section(block, at)
        case "header":
            yield from _text_object(block.get("text"), 150, f"{at}/text", plain=True)
        case "context":
            yield from _context(block.get("elements") or [], f"{at}/elements")
        case "actions":
            yield from _actions(block.get("elements") or [], f"{at}/elements")
        case "markdown":
            yield from _string(block.get("text"), 12_000, f"{at}/text")
        case _:
            return


def _context(elements: list[Json], at: str) -> Iterator[str]:
    yield from _many(elements, 10, at)
    for index, element in enumerate(elements):
        if element.get("type") != "image":
            yield from _text_object(element, TEXT_OBJECT, f"{at}/{index}")


def _actions(elements: list[Json], at: str) -> Iterator[str]:
    yield from _many(elements, 25, at)
    for index, element in enumerate(elements):
        yield from _element(element, f"{at}/{index}")
    ids = [element["action_id"] for element in elements if element.get("action_id")]
    if len(ids) != len(set(ids)):
        yield f"`action_id` is already in use in this block [json-pointer:{at}]"


def _section(block: Json, at: str) -> Iterator[str]:
    fields = block.get("fields")
    if block.get("text") is None and not fields:
        yield f"missing required field: text [json-pointer:{at}]"
    if block.get("text") is not None:
        yield from _text_object(block["text"], TEXT_OBJECT, f"{at}/text")
    if fields is not None:
        yield from _many(fields, 10, f"{at}/fields")
        for index, piece in enumerate(fields):
            yield from _text_object(piece, 2_000, f"{at}/fields/{index}")
    if block.get("accessory") is not None:
        yield from _element(block["accessory"], f"{at}/accessory")


def _element(element: Json, at: str) -> Iterator[str]:
    yield from _length(element.get("action_id"), 255, f"{at}/action_id")
    if element.get("type") != "button":
        return
    yield from _text_object(element.get("text"), 75, f"{at}/text", plain=True)
    yield from _length(element.get("value"), 2_000, f"{at}/value")
    yield from _length(element.get("url"), 3_000, f"{at}/url")
    if element.get("style") not in {None, "primary", "danger"}:
        yield f"must be a valid enum value [json-pointer:{at}/style]"
    confirm = element.get("confirm")
    if confirm is not None:
        limits = (("title", 100, True), ("text", 300, False), ("confirm", 30, True), ("deny", 30, True))
        for key, most, plain in limits:
            yield from _text_object(confirm.get(key), most, f"{at}/confirm/{key}", plain=plain)


def _text_object(text: Any, most: int, at: str, *, plain: bool = False) -> Iterator[str]:
    match text:
        case {"type": "plain_text", "text": str(said)}:
            yield from _string(said, most, f"{at}/text")
        case {"type": "mrkdwn", "text": str(said)} if not plain:
            yield from _string(said, most, f"{at}/text")
        case None:
            yield f"missing required field [json-pointer:{at}]"
        case _:
            yield f"must be a valid text object [json-pointer:{at}]"


def _string(text: Any, most: int, at: str) -> Iterator[str]:
    if not isinstance(text, str) or not text:
        yield f"must be more than 0 characters [json-pointer:{at}]"
    else:
        yield from _length(text, most, at)


def _length(text: Any, most: int, at: str) -> Iterator[str]:
    if text is not None and len(text) > most:
        yield f"must be less than {most + 1} characters [json-pointer:{at}]"


def _many(items: Any, most: int, at: str) -> Iterator[str]:
    if not items:
        yield f"must have at least 1 item [json-pointer:{at}]"
    elif len(items) > most:
        yield f"no more than {most} items allowed [json-pointer:{at}]"


def mistakes_in(args: Json, allowed_mentions: frozenset[str]) -> Iterator[Mistake]:
    """What Slack would take from this post and we would regret: pings, raw markup, no fallback, wide settings."""
    text, blocks = str(args.get("text") or ""), args.get("blocks") or []
    if blocks and not text:
        yield Mistake("no_fallback_text", f"{len(blocks)} blocks without text: notifications show nothing")
    if len(text) > TEXT_ADVISED:
        yield Mistake("text_long", f"text of {len(text)} characters, advised are {TEXT_ADVISED}")
    if args.get("link_names") or args.get("parse") not in {None, "none"}:
        yield Mistake("parsing_widened", "`link_names` or `parse` turns names in foreign text into mentions")
    for said in (text, *_mrkdwn_in(blocks)):
        yield from _markup(said, allowed_mentions)


def _mrkdwn_in(part: Any) -> Iterator[str]:
    match part:
        case {"type": "mrkdwn" | "markdown", "text": str(text)}:
            yield text
        case dict():
            for value in part.values():
                yield from _mrkdwn_in(value)
        case list():
            for value in part:
                yield from _mrkdwn_in(value)
        case _:
            return


def _markup(said: str, allowed: frozenset[str]) -> Iterator[Mistake]:
    for token in _TOKEN.finditer(said):
        whole, inside = token.group(0), token.group(1)
        if inside.startswith("@") or (inside.startswith("!") and not inside.startswith("!date^")):
            if f"<{inside.split('|')[0]}>" not in allowed:
                yield Mistake("mention", f"{whole} in: {said[:200]}")
        elif not inside.startswith(("#", "!")) and not _LINK.match(inside):
            yield Mistake("unescaped", f"{whole} in: {said[:200]}")
    bare = _BARE.search(_TOKEN.sub("", said))
    if bare:
        yield Mistake("unescaped", f"{bare.group(0)} in: {said[:200]}")
