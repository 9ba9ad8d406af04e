"""The difference of a checkout written out, for the record of a launch from a dirty tree that was approved.

Source of the rule: the run-management procedure, "Launch": if dirty is approved, log the diff or patch identity.
"""

import hashlib
import os
import stat
from collections.abc import Iterable
from itertools import accumulate, takewhile
from pathlib import Path

from bot.model.code import Patch
from bot.redaction import Redactor, redact_or_withhold
from bot.sources.git.checkout import Checkout
from bot.sources.git.parsing import Entry, say_path
from bot.sources.git.program import Git, Left

LIMIT_BYTES = 256 * 2**10
"""Of the written patch; what is longer is cut, and the record says so."""
_ARGUMENT_BYTES = 64 * 2**10
_SNIFFED_BYTES = 8000
_CUT = "\n[cut here: the patch is longer than can be kept; its identity covers all of it]\n"


async def read_difference(git: Git, seen: Checkout, left: Left) -> str:
    """Return what git shows of the paths that it knows and that count, as a unified diff; the start when it is long.

    Raises:
        ServiceError: git could not say.
    """
    paths = [b":(top,literal)" + each.path for each in seen.entries_that_count if each.is_known]
    lengths = accumulate(len(path) + 1 for path in paths)
    count = sum(1 for _ in takewhile(lambda length: length <= _ARGUMENT_BYTES, lengths))
    if not count:
        return ""
    told = await git.run(
        seen.place.top,
        "diff",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--no-renames",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        "--ignore-submodules=none",
        seen.status.head,
        "--",
        *(path.decode(errors="surrogateescape") for path in paths[:count]),
        left=left,
    )
    rest = "".join(f"[not shown: {say_path(path)}]\n" for path in paths[count : count + 100])
    return told.stdout + rest


def read_new_files(top: Path, entries: Iterable[Entry]) -> str:
    """Return the files that git does not know as additions, up to the limit; of a binary one its size alone. Blocking.

    Raises:
        OSError: one cannot be read.
    """
    parts: list[str] = []
    rest = LIMIT_BYTES
    for entry in entries:
        if entry.is_known or rest <= 0:
            continue
        written = _added(top, entry)
        parts.append(written)
        rest -= len(written)
    return "".join(parts)


def patch_of(text: str, head: str, identity: str, redactor: Redactor) -> Patch:
    """Return what may be kept of a written difference: scrubbed, bounded, with both digests."""
    scrubbed = redact_or_withhold(redactor, text[:LIMIT_BYTES])
    is_cut = len(text) > LIMIT_BYTES
    kept = scrubbed + _CUT if is_cut else scrubbed
    digest = hashlib.sha256(kept.encode()).hexdigest()
    return Patch(head=head, text=kept, is_cut=is_cut, text_sha256=digest, patch_sha256=identity)


def _added(top: Path, entry: Entry) -> str:
    name = say_path(entry.path)
    path = os.path.join(os.fsencode(top), entry.path)  # noqa: PTH118 - the name may be no text
    head = f"diff --git a/{name} b/{name}\nnew file\n"
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        return f"{head}[no regular file]\n"
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        content = file.read(LIMIT_BYTES)
    if b"\0" in content[:_SNIFFED_BYTES]:
        return f"{head}[binary, {status.st_size} bytes]\n"
    lines = content.decode(errors="replace").splitlines()
    cut = f"[cut here: {status.st_size} bytes]\n" if status.st_size > len(content) else ""
    return f"{head}--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{x}\n" for x in lines) + cut
