"""Discord's documented limits on a message: what its REST API answers 50035 for.

Sources: resources/message.mdx ("Create Message", "Embed Limits"), components/reference.mdx, of the public API
documentation. Characters are counted as code points.
"""

from collections.abc import Iterator
from typing import Any

type Json = dict[str, Any]

_EMBED_PARTS = {"title": 256, "description": 4_096}


def message_errors(payload: Json) -> list[str]:
    """Return what Discord would refuse in a message's payload, by path."""
    return list(_errors(payload))


def _errors(payload: Json) -> Iterator[str]:
    content = payload.get("content") or ""
    embeds = payload.get("embeds") or []
    components = payload.get("components") or []
    if len(content) > 2_000:
        yield f"content: Must be 2000 or fewer in length (is {len(content)})"
    if not content and not embeds and not payload.get("files"):
        yield "content: Cannot send an empty message"
    if len(embeds) > 10:
        yield "embeds: Must be 10 or fewer in length"
    for place, embed in enumerate(embeds):
        yield from _embed(embed, f"embeds.{place}")
    total = sum(_size(embed) for embed in embeds)
    if total > 6_000:
        yield f"embeds: Embed size exceeds maximum size of 6000 (is {total})"
    yield from _rows(components)
    if len(str(payload.get("nonce") or "")) > 25:
        yield "nonce: Must be 25 or fewer in length"
    yield from _mentions(payload.get("allowed_mentions"))


def _embed(embed: Json, path: str) -> Iterator[str]:
    for part, most in _EMBED_PARTS.items():
        if len(embed.get(part) or "") > most:
            yield f"{path}.{part}: Must be {most} or fewer in length"
    if len((embed.get("footer") or {}).get("text") or "") > 2_048:
        yield f"{path}.footer.text: Must be 2048 or fewer in length"
    fields = embed.get("fields") or []
    if len(fields) > 25:
        yield f"{path}.fields: Must be 25 or fewer in length"
    for place, field in enumerate(fields):
        if not 0 < len(field["name"].strip()) <= 256:
            yield f"{path}.fields.{place}.name: Must be between 1 and 256 in length"
        if not 0 < len(field["value"].strip()) <= 1_024:
            yield f"{path}.fields.{place}.value: Must be between 1 and 1024 in length"


def _size(embed: Json) -> int:
    fields = embed.get("fields") or []
    return (
        len(embed.get("title") or "")
        + len(embed.get("description") or "")
        + len((embed.get("footer") or {}).get("text") or "")
        + sum(len(field["name"]) + len(field["value"]) for field in fields)
    )


def _rows(rows: list[Json]) -> Iterator[str]:
    if len(rows) > 5:
        yield "components: Must be 5 or fewer in length"
    seen: set[str] = set()
    for row in rows:
        if row.get("type") != 1 or not 0 < len(row.get("components") or ()) <= 5:
            yield "components: a row holds 1 to 5 buttons"
            continue
        for button in row["components"]:
            custom_id = button.get("custom_id") or ""
            if not 0 < len(custom_id) <= 100 or custom_id in seen:
                yield "components: custom_id must be unique, of 1 to 100 characters"
            if not 0 < len(button.get("label") or "") <= 80:
                yield "components: label must be of 1 to 80 characters"
            seen.add(custom_id)


def _mentions(allowed: Json | None) -> Iterator[str]:
    if allowed is None:
        return
    for kind in ("users", "roles"):
        if kind in (allowed.get("parse") or ()) and allowed.get(kind):
            yield f"allowed_mentions: parse:[{kind}] and {kind}: [ids...] are mutually exclusive"
        if len(allowed.get(kind) or ()) > 100:
            yield f"allowed_mentions.{kind}: Must be 100 or fewer in length"
