"""A path that may not be read, also where the tests run as root."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def forbidden(path: Path) -> Iterator[None]:
    """Deny everyone the path; root, whom nothing is denied, becomes nobody meanwhile."""
    mode, user = path.stat().st_mode, os.geteuid()
    path.chmod(0)
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        path.chmod(mode)
