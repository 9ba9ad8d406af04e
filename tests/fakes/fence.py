"""The fence of a Hero that nobody has taken over."""


async def no_fence() -> None:
    """Let everything through."""
