"""Which lines of a message are its author's own plain words.

Two questions with two strictnesses: a line may *decide* only if every platform shows it as plain own words; a line may
be left out of account *beside* a decision only if every platform shows it as a quote, as code or as a mail's trailer.
"""

import re
from collections.abc import Collection

from bot.model.value import Value

HIDDEN = "\x00"
"""Stands where a comment or an inline code span stood. Input cannot hold it: it is replaced first."""

_CODE_INDENT = 4
_QUOTE = re.compile(r"\s*(?:>|&gt;)")
_QUOTE_OF_ALL_THAT_FOLLOWS = re.compile(r"\s*(?:>|&gt;){3}")
# HTML and footnotes can hide or strike out the lines after them without a mark on those; links cannot.
_HIDING = re.compile(r"<(?!https?:|mailto:)[!?/a-z]|\[\^", re.IGNORECASE)
_FENCE = re.compile(r"[ ]{0,3}(?P<run>`{3,}|~{3,})(?P<rest>.*)")
_BARE_FENCE = re.compile(r"[ ]{0,3}(?P<run>`{3,})(?P<language>\w*)[ \t]*")
_LONG_RUN = re.compile(r"`{3,}")
_RUN = re.compile(r"`+")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_SIGNATURE = re.compile(r"--[ \t]*|-{2,}[ ]?original message[ ]?-{2,}|_{10,}[ \t]*", re.IGNORECASE)
_WROTE = re.compile(r"on\b.{1,300}\bwrote:\s*", re.IGNORECASE | re.DOTALL)
_DATE = re.compile(r"\b20[0-9]{2}\b|\b[0-9]{1,2}[:.][0-9]{2}\b")


class OwnWords(Value):
    """A message, line by line; the places are those of the lines in the text."""

    lines: tuple[str, ...]
    """What surely is plain own words; a line that is not is empty here."""
    raw: tuple[str, ...]
    """The same lines as they were sent, down to where a mail's trailer begins."""
    below: tuple[str, ...]
    """What may be own words below that."""

    def beside(self, places: Collection[int]) -> list[str]:
        """Return every line that may be own words, but those at these places."""
        raw = list(self.raw)
        return _unquoted(raw, _closed_code(raw) | set(places)) + list(self.below)

    def may_be_hidden(self, places: Collection[int]) -> bool:
        """Say whether some platform may show the lines at these places as quoted, struck out or not at all."""
        raw = list(self.raw)
        if any(_QUOTE_OF_ALL_THAT_FOLLOWS.match(line) or _HIDING.search(line) for line in raw):
            return True
        return any(_is_inside_a_quote(raw, place) for place in places)


def own_words(text: str) -> OwnWords:
    """Tell a person's plain words from quotes, code, comments and trailers; never raises."""
    sound = text.encode("utf-8", "replace").decode("utf-8").replace(HIDDEN, "\ufffd")
    sound = sound.replace("\r\n", "\n").replace("\r", "\n")
    uncommented = _COMMENT.sub(lambda match: re.sub(r"[^\n]", HIDDEN, match[0]), sound)
    raw, shown = sound.split("\n"), uncommented.split("\n")
    # Platforms disagree on what wins where fences and comments overlap: a line counts only if every reading shows it.
    coded = _fenced(raw) | _fenced(shown) | _toggled(raw) | _toggled(shown)
    apart = coded | {place for place, line in enumerate(raw) if _quoted_or_indented(line)}
    kept = ["" if place in apart or _quoted_or_indented(line) else line for place, line in enumerate(shown)]
    end = _trailer_start(kept)
    lines = [line if line.strip(HIDDEN + " \t") else "" for line in _without_code_spans(kept[:end])]
    return OwnWords(lines=tuple(lines), raw=tuple(raw[:end]), below=tuple(_below(raw[end:])))


def _quoted_or_indented(line: str) -> bool:
    if _QUOTE.match(line):
        return True
    expanded = line.expandtabs(_CODE_INDENT)
    return len(expanded) - len(expanded.lstrip(" ")) >= _CODE_INDENT


def _fenced(lines: list[str]) -> set[int]:
    """Return the places of lines in fenced blocks as Markdown reads them; an unclosed one reaches to the end."""
    places: set[int] = set()
    fence: str | None = None
    for place, line in enumerate(lines):
        found = _FENCE.match(line)
        if fence is not None:
            places.add(place)
            closes = found is not None and found["run"].startswith(fence) and not found["rest"].strip()
            fence = None if closes else fence
        elif found is not None and not (found["run"][0] == "`" and "`" in found["rest"]):
            places.add(place)
            fence = found["run"]
    return places


def _toggled(lines: list[str]) -> set[int]:
    """Return the places of lines in code blocks as Slack reads them: every triple backtick opens or closes."""
    places: set[int] = set()
    inside = False
    for place, line in enumerate(lines):
        runs = len(_LONG_RUN.findall(line))
        if inside or runs:
            places.add(place)
        inside ^= bool(runs % 2)
    return places


def _trailer_start(lines: list[str]) -> int:
    """Return where an e-mail's signature or quoted predecessor begins; the number of lines when there is none."""
    for place, line in enumerate(lines):
        if _SIGNATURE.fullmatch(line.strip()) or _wrote(lines, place):
            return place
    return len(lines)


def _wrote(lines: list[str], place: int) -> int:
    """Return over how many lines an "On … wrote:" reaches from there; 0 when none begins there.

    Mail programs wrap it, so it may end on one of the next two lines.
    """
    if lines[place].strip()[:2].lower() != "on":
        return 0
    return next((n for n in (1, 2, 3) if _WROTE.fullmatch("\n".join(lines[place : place + n]).strip())), 0)


def _below(lines: list[str]) -> list[str]:
    """Return the lines of a trailer that may be the person's own words all the same."""
    if not lines:
        return []
    mark = lines[0].strip()
    if _SIGNATURE.fullmatch(mark):
        following = next((line.strip().lower() for line in lines[1:] if line.strip()), "")
        is_rule = set(mark) == {"_"} and not following.startswith("from:")
        is_dash = mark == "--" and not lines[0].endswith(" ")
        return [] if not is_dash and not is_rule else _unquoted(lines[1:], _closed_code(lines[1:]))
    wrote = _wrote(lines, 0)
    rest = lines[wrote:]
    for place, line in enumerate(rest):
        if line.startswith("-- ") and _SIGNATURE.fullmatch(line.strip()):
            rest = rest[:place]
            break
    # "On second thought, as I wrote:" is no mail program's line; those have a date.
    dated = _DATE.search("\n".join(lines[:wrote]))
    return _unquoted(rest if dated else lines[:wrote] + rest, frozenset())


def _unquoted(lines: list[str], apart: Collection[int]) -> list[str]:
    # Where a viewer ends a line at another mark than "\n", the rest of a quoted line is not quoted.
    return [
        piece
        for place, line in enumerate(lines)
        if place not in apart
        for piece in line.splitlines()
        if piece.strip() and not _QUOTE.match(piece)
    ]


def _closed_code(lines: list[str]) -> frozenset[int]:
    """Return the places of code blocks that every platform reads as such: backticks on lines of their own, closed."""
    places: set[int] = set()
    opened: tuple[int, int] | None = None
    for place, line in enumerate(lines):
        found = _BARE_FENCE.fullmatch(line)
        if found is None and _LONG_RUN.search(line):
            return frozenset()
        if found is None:
            continue
        if opened is None:
            opened = place, len(found["run"])
        elif found["language"] or len(found["run"]) < opened[1]:
            return frozenset()
        else:
            places |= set(range(opened[0], place + 1))
            opened = None
    return frozenset(places)


def _is_inside_a_quote(lines: list[str], place: int) -> bool:
    """Say whether quoted lines stand before and after in one paragraph: a mark that spans them hides or strikes it."""
    above = next((n for n in range(place, 0, -1) if not lines[n - 1].strip()), 0)
    below = next((n for n in range(place, len(lines)) if not lines[n].strip()), len(lines))
    return any(map(_QUOTE.match, lines[above:place])) and any(map(_QUOTE.match, lines[place:below]))


def _without_code_spans(lines: list[str]) -> list[str]:
    """Hide inline code, which may reach over the line ends of its paragraph."""
    shown: list[str] = []
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line)
            continue
        if paragraph:
            shown += _hide_spans("\n".join(paragraph)).split("\n")
            paragraph = []
        shown.append("")
    return shown[: len(lines)]


def _hide_spans(paragraph: str) -> str:
    runs = list(_RUN.finditer(paragraph))
    closing: dict[int, int] = {}
    latest: dict[int, int] = {}
    for place in range(len(runs) - 1, -1, -1):
        length = len(runs[place][0])
        if length in latest:
            closing[place] = latest[length]
        latest[length] = place
    pieces: list[str] = []
    done = place = 0
    while place < len(runs):
        if place in closing:
            start, end = runs[place].start(), runs[closing[place]].end()
            pieces += paragraph[done:start], re.sub(r"[^\n]", HIDDEN, paragraph[start:end])
            done, place = end, closing[place]
        place += 1
    return "".join(pieces) + paragraph[done:]
