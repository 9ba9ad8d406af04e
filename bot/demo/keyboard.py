"""The demo's keyboard: hands on what is typed, and knows when nobody can type any more."""

import contextlib
import os
import threading
from typing import Self


class Keyboard:
    """Stands between the real standard input and whoever reads descriptor 0, as the console channel does.

    The channel goes on without a keyboard when its input ends, as a bot should; the demo waits for an answer and must
    not wait for ever.
    """

    def __init__(self) -> None:
        self.has_ended = False
        self._real: int | None = None

    def __enter__(self) -> Self:
        try:
            self._real = os.dup(0)
        except OSError:  # closed, as by `<&-`
            self.has_ended = True
            _put(os.open(os.devnull, os.O_RDONLY))
            return self
        listen, tell = os.pipe()
        _put(listen)
        threading.Thread(target=self._hand_on, args=(self._real, tell), name="keyboard", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Give the real input back; our own copy of it stays open, since the thread may still wait for a line."""
        if self._real is not None:
            os.dup2(self._real, 0)

    def _hand_on(self, real: int, tell: int) -> None:
        with contextlib.suppress(OSError), os.fdopen(tell, "wb", buffering=0) as pipe:
            while chunk := os.read(real, 4096):
                pipe.write(chunk)
        self.has_ended = True


def _put(descriptor: int) -> None:
    """Make this descriptor the standard input."""
    if descriptor != 0:
        os.dup2(descriptor, 0)
        os.close(descriptor)
