"""A log of any size, in bounded memory: its beginning, its end, and how many lines are left out between them.

The whole file is read once, in pieces, so that a gzipped file and a pipe are read the same way as a plain file, and
line numbers stay right.
"""

import gzip
import sys
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from bot.regular_files import open_stream
from checks.crash.text import MAX_CHARS

HEAD_BYTES = MAX_CHARS // 8
TAIL_BYTES = MAX_CHARS - HEAD_BYTES - 2
"""Together they stay below what the classifier looks at, so that it cuts nothing itself."""
_PIECE = 1 << 20
_GZIP = b"\x1f\x8b"


class LongText(NamedTuple):
    """Text with what may be missing in its middle."""

    text: str
    head_lines: int
    """Lines before the gap."""
    skipped_lines: int
    """Lines that are not in ``text``."""

    def number(self, line: int) -> int:
        """Return the number that a line of ``text`` has in the file."""
        return line + self.skipped_lines if line > self.head_lines else line


def read_long_text(name: str) -> LongText:
    """Read a log; ``-`` is standard input. Bytes that are no UTF-8 are replaced.

    Raises:
        OSError: it cannot be read.
        EOFError: it is gzipped and ends too early.
        zlib.error: it is gzipped and damaged.
    """
    with _opened(name) as file:
        return condense(_pieces(file))


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdin.buffer
        return
    with open_stream(Path(name)) as file:
        yield file


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content in pieces; gzip is known by its first bytes, whatever the file is called."""
    start = file.read(len(_GZIP))
    if start == _GZIP:
        with gzip.GzipFile(mode="rb", fileobj=cast("BinaryIO", _Again(start, file))) as inside:
            while piece := inside.read(_PIECE):
                yield piece
        return
    yield start
    while piece := file.read(_PIECE):
        yield piece


class _Again:
    """A file of which the first bytes were read already; a pipe cannot go back."""

    def __init__(self, start: bytes, file: BinaryIO) -> None:
        self._start = start
        self._file = file

    def read(self, size: int = -1) -> bytes:
        start, self._start = self._start, b""
        return start + self._file.read(size if size < 0 else max(0, size - len(start)))


def condense(pieces: Iterable[bytes], head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> LongText:
    """Keep the first and the last bytes of a text that comes in pieces, and count the lines between them."""
    head = bytearray()
    tail: deque[bytes] = deque()
    held = skipped = 0
    is_cut = False
    for piece in pieces:
        rest = piece
        if len(head) < head_bytes:
            room = head_bytes - len(head)
            head += piece[:room]
            rest = piece[room:]
        if rest:
            tail.append(rest)
            held += len(rest)
        while held - len(tail[0] if tail else b"") >= tail_bytes:
            gone = tail.popleft()
            held -= len(gone)
            skipped += gone.count(b"\n")
            is_cut = True
    end = b"".join(tail)
    cut = max(0, len(end) - tail_bytes)
    if not is_cut and not cut:
        return LongText(_decoded(bytes(head) + end), sys.maxsize, 0)
    skipped += end[:cut].count(b"\n")
    start = _decoded(bytes(head))
    # One newline of ours parts head and tail.
    return LongText(f"{start}\n{_decoded(end[cut:])}", start.count("\n") + 1, skipped - 1)


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


UNREADABLE = (OSError, EOFError, zlib.error)
"""What ``read_long_text`` raises for a file that cannot be read."""
