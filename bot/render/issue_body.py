"""Where Hero's own block stands in the body of an issue that belongs to people: between two hidden markers.

Everything outside of the markers is left as it is, to the byte.
"""

from bot.model.value import RunId
from bot.render.github import MARKER_START, coded

PUT_BACK = (
    "*This block was taken out once and Hero has put it back. Take it out again and Hero leaves this text alone.*"
)


def block_of(run_id: RunId, text: str, *, is_put_back: bool = False) -> str:
    """Return the block with its markers."""
    start, end = _markers(run_id)
    note = f"{PUT_BACK}\n\n" if is_put_back else ""
    return f"{start}\n{note}{text}\n{end}"


def has_block(body: str, run_id: RunId) -> bool:
    """Whether both markers are there, in their order."""
    return _place(body, run_id) is not None


def outside_of(body: str, run_id: RunId) -> str:
    """Return what people wrote around the block."""
    place = _place(body, run_id)
    return body if place is None else body[: place[0]] + body[place[1] :]


def with_block(body: str, run_id: RunId, block: str) -> str:
    """Return the body with this block where the old one was; at the end when there was none."""
    place = _place(body, run_id)
    if place is None:
        return f"{body}\n\n{block}" if body.strip() else block
    start, end = place
    is_same = body[start:end].replace("\r\n", "\n") == block
    return body if is_same else body[:start] + block + body[end:]


def _place(body: str, run_id: RunId) -> tuple[int, int] | None:
    """Return from where to where the block reaches; a marker whose partner is gone does not count."""
    start, end = _markers(run_id)
    last = body.rfind(end)
    first = body.rfind(start, 0, last) if last >= 0 else -1
    return None if first < 0 else (first, last + len(end))


def _markers(run_id: RunId) -> tuple[str, str]:
    name = coded(run_id)
    return f"{MARKER_START}record={name} -->", f"{MARKER_START}record-end={name} -->"
