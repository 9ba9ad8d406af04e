"""``hero log RUN`` with ``--json``, ``--markdown`` or ``--verify``: the record of a run, and whether it is whole."""

import asyncio
import hashlib
import re
from pathlib import Path

from pydantic import ValidationError

from bot.clock import SystemClock
from bot.commands.configuration import load
from bot.commands.exits import Exit
from bot.commands.printing import say, say_json
from bot.commands.sight import look, open_store
from bot.errors import ConfigurationError
from bot.model.chronicle import Entry, Fault, Written, find_fault, head_of, written_under
from bot.model.delivery import ChannelName
from bot.model.value import RunId, Value
from bot.render.record import record_markdown
from bot.settings import Settings
from bot.store.rows import unreadable

_HEAD = re.compile("[0-9a-f]{12,64}")


class Kept(Value):
    """A run's record, and what is remembered of the text in its issue."""

    run_id: RunId
    entries: tuple[Entry, ...]
    written: Written | None = None
    """None where the record was never written into an issue."""


def show_record(config: Path | None, run: str, *, as_markdown: bool) -> None:
    """Print every entry as one line of JSON, or the whole as the run's issue shows it.

    Raises:
        HeroError: the configuration, no such run, or a database that cannot be read.
    """
    kept = asyncio.run(_read(load(config), run))
    if as_markdown:
        # There is no limit to what a terminal or a file takes.
        say(record_markdown(kept.run_id, kept.entries, room=10**9) or "")
        return
    for entry in kept.entries:
        say_json(entry.row(), is_line=True)


def verify_record(config: Path | None, run: str, *, head: str | None, as_json: bool) -> int:
    """Say whether the record is whole, and whether the text in the issue can be made anew from it.

    Args:
        config: the configuration file.
        run: whose record.
        head: the head that the caller has kept, at least its first 12 characters.
        as_json: one object instead of lines.

    Returns:
        The exit code: 0 for a whole record.

    Raises:
        HeroError: as ``show_record``.
    """
    if head is not None and not _HEAD.fullmatch(head):
        raise ConfigurationError((f"--head {head[:80]}: a head is at least its first 12 hexadecimal digits",))
    kept = asyncio.run(_read(load(config), run))
    fault = find_fault(kept.run_id, kept.entries, head=head)
    text = say_text(kept)
    if as_json:
        say_json(
            {
                "run_id": kept.run_id,
                "ok": fault is None,
                "count": len(kept.entries),
                "head": head_of(kept.run_id, kept.entries),
                "fault": fault.model_dump() if fault else None,
                "text": text,
            }
        )
    else:
        _say_verdict(kept, fault, is_compared=head is not None)
        say(f"the text in the issue: {_TEXT[text]}")
    return Exit.DONE if fault is None else Exit.FAILED


_TEXT = {
    "not_written": "none was written yet",
    "same": "what was last written is what this record gives",
    "differs": "what was last written is NOT what this record gives, or another Hero wrote it",
    "left_alone": "its markers were taken out twice, so Hero leaves it alone; what was last written is not there",
}


def say_text(kept: Kept) -> str:
    """Make the text anew from as many entries as were in it, and compare it with what was written."""
    written = kept.written
    if written is None:
        return "not_written"
    if written.is_left_alone:
        return "left_alone"
    text = record_markdown(kept.run_id, kept.entries[: written.count], room=written.room) or ""
    is_same = len(kept.entries) >= written.count and hashlib.sha256(text.encode()).hexdigest() == written.sha256
    return "same" if is_same else "differs"


def _say_verdict(kept: Kept, fault: Fault | None, *, is_compared: bool) -> None:
    count, head = len(kept.entries), head_of(kept.run_id, kept.entries)
    if fault is not None:
        say(f"{kept.run_id}: BROKEN at entry {fault.seq}: {fault.what}")
    elif is_compared:
        say(f"{kept.run_id}: whole: {count} entries, and the head that you gave is in it")
    else:
        say(f"{kept.run_id}: whole: {count} entries; whether its end was cut off, only a head kept elsewhere tells")
    say(f"head {head}")


async def _read(settings: Settings, run: str) -> Kept:
    clock, run_id = SystemClock(), RunId(run)
    await look(settings, clock, run)  # a run that does not exist is an error, not an empty record
    async with open_store(settings, clock) as store:
        if store is None:
            return Kept(run_id=run_id, entries=())
        place = await store.posted(ChannelName.GITHUB, run_id, "record")
        issue = int(place.message_id) if place is not None and place.message_id.isdecimal() else None
        text = await store.cursor(written_under(run_id, issue)) if issue is not None else None
        return Kept(run_id=run_id, entries=await store.chronicle(run_id), written=_written(text))


def _written(text: str | None) -> Written | None:
    try:
        return Written.model_validate_json(text) if text else None
    except ValidationError as error:
        raise unreadable("note of what stands in the issue", error) from error
