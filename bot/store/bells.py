"""What workers wait on instead of polling: a bell rings after each commit that gave them work."""

import asyncio


class Bell(asyncio.Event):
    """An event that several workers can wait on.

    One worker alone may ``wait`` and ``clear`` the bell itself. Of several, each takes an event of its own from
    ``listen``, since what one clears the others would miss. Clear first, then look for work, then wait again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._listeners: list[asyncio.Event] = []

    def listen(self) -> asyncio.Event:
        """Return an event that is set at every ring from now on; for as long as the store is open."""
        listener = asyncio.Event()
        self._listeners.append(listener)
        return listener

    def set(self) -> None:
        super().set()
        for listener in self._listeners:
            listener.set()
