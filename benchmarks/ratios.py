"""How two things are compared: by turns, and by the median of each."""

from collections.abc import Callable
from statistics import median


def compare(title: str, one: Callable[[], float], other: Callable[[], float], *, rounds: int) -> None:
    """Measure two sides by turns and print how many times the first the second is.

    Args:
        title: what the ratio is.
        one: returns a figure of the side that counts as 1.
        other: returns the same figure of the other side.
        rounds: how often each is measured.
    """
    pairs = [(one(), other()) for _ in range(rounds)]
    ratio = median(second for _, second in pairs) / median(first for first, _ in pairs)
    each = ", ".join(f"{second / first:.2f}" for first, second in pairs)
    print(f"{title}: {ratio:.2f}  (rounds: {each})")
