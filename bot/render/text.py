"""Makes foreign text safe to show: run names, log lines, exceptions, what people typed.

Order of use: ``clean`` what comes from outside (bounded, no control characters), then exactly one escape or code block
for the place where it will stand, then ``split_text`` when the whole message may be longer than the channel takes.
Escapes and code blocks clean by themselves, so forgetting the first step costs looks, not safety. Give them ``limit``
where the *escaped* length is bounded: an escape makes text longer, and cutting afterwards could cut it open again.
"""

import re
from collections.abc import Callable, Iterator

_BREAK = "\u200b"
"""Zero-width space: put inside what a platform would act on, it leaves the look and takes the effect."""

_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,16}[@-~]?"  # CSI: colours, cursor, clear screen
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]{0,2000}(?:\x07|\x1b\\|\x9c)"  # OSC: title
    r"|\x1b[ -/]*+[0-~]?"
)
_LINE_END = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_UNSEEN = re.compile(
    r"[\u00ad\u061c\u180e\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_UNFIT = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")

_LOUD = re.compile(r"@(?=(?:everyone|here|channel)\b)", re.IGNORECASE)
_SLACK = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_LONG_RUN = re.compile("`{3,}")

_GITHUB = str.maketrans(
    {
        "&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "@" + _BREAK, "#": "#" + _BREAK,
        "\\": "\\\\", "`": "\\`", "*": "\\*", "[": "\\[", "]": "\\]", "~": "\\~", "|": "\\|", "$": "\\$",
    }
)  # fmt: skip
_EDGE_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_GH_REFERENCE = re.compile(r"\b(GH-)(?=[0-9])", re.IGNORECASE)
_REFERRING_URL = re.compile(r"(/(?:issues|pull|pulls|discussions|commit|commits)/)(?=[0-9a-f])", re.IGNORECASE)
# An indent of four makes code, and these characters at the start of a line make lists, rules and headings.
_INDENT = re.compile(r"^[^\S\n]+", re.MULTILINE)
_BULLET = re.compile(r"^(?=[-+=:])", re.MULTILINE)
_ORDINAL = re.compile(r"^([0-9]{1,9})([.)])", re.MULTILINE)

_DISCORD = re.compile(r"[\\*_`>\[\]]|~(?=~)|(?<=~)~|\|(?=\|)|(?<=\|)\|")
_DISCORD_BULLET = re.compile(r"^([^\S\n]*)(?=[-+#])", re.MULTILINE)
_DISCORD_ORDINAL = re.compile(r"^([^\S\n]*[0-9]{1,9})([.)])(?=\s|$)", re.MULTILINE)
_URL = re.compile(r"(https?://[A-Za-z0-9\-._~:/?#@!$&'*+,;=%]{1,2000})")

_LANGUAGE = re.compile(r"[A-Za-z0-9+#_.\-]{0,20}")

_RICH_TAG = re.compile(r"(?<!\\)(\\*)(?:(\[[a-z#/@][^\[]*?\])|\[)")
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})(?P<rest>.*)", re.DOTALL)


def clean(text: str, limit: int) -> str:
    """Return ``text`` without what terminals and renderers act on, at most ``limit`` characters long.

    ANSI sequences, invisible and direction-changing characters go; other control characters, NUL and lone surrogates
    become U+FFFD; every kind of line end becomes a newline. What is cut off is counted at the end.
    """
    return _fit(_tame(text), limit, lambda part: part)


def slack_escape(text: str, limit: int | None = None) -> str:
    """Return ``text`` for Slack's text and mrkdwn: no mention, link or code fence of its own.

    Source: Slack, "Formatting message text": ``&``, ``<`` and ``>`` are the three control characters.
    """
    return _fit(_tame(text), limit, _slack)


def slack_code_block(text: str, limit: int | None = None) -> str:
    """Return ``text`` as a Slack code block which it cannot close."""
    return _fit(_tame(text), limit, lambda part: f"```\n{_slack(part)}\n```")


def github_escape(text: str, limit: int | None = None) -> str:
    """Return ``text`` for the inside of a Markdown paragraph on GitHub.

    No mention, reference, closing keyword, HTML, hidden comment or formatting of its own survives; ordinary links do.
    """
    return _fit(_tame(text), limit, _github)


def github_code_block(text: str, limit: int | None = None, language: str = "") -> str:
    """Return ``text`` as a fenced block which it cannot close and in which it cannot forge a hidden marker."""
    info = language if _LANGUAGE.fullmatch(language) else ""
    return _fit(_tame(text), limit, lambda part: f"```{info}\n{_unmarked(part)}\n```")


def discord_escape(text: str, limit: int | None = None) -> str:
    """Return ``text`` for Discord's Markdown: no mention, timestamp, emoji, masked link or formatting of its own.

    Links stay links, in the brackets that keep Discord from showing what is behind them.
    """
    return _fit(_tame(text), limit, _discord)


def discord_code_block(text: str, limit: int | None = None) -> str:
    """Return ``text`` as a Discord code block which it cannot close."""
    return _fit(_tame(text), limit, lambda part: f"```\n{_LOUD.sub('@' + _BREAK, _unfenced(part))}\n```")


def console_escape(text: str) -> str:
    """Return ``text`` for Rich markup, alone or between tags, where it shows as it is."""
    escaped = _RICH_TAG.sub(_untagged, _tame(text))
    return escaped + _BREAK if escaped.endswith("\\") else escaped


def _untagged(found: re.Match[str]) -> str:
    # Rich halves the backslashes before what could be a tag and drops one before any other bracket; its own
    # escape() (15.0) knows only the first rule.
    return f"{found[1] * 2}\\{found[2]}" if found[2] else f"{found[1] or ''}\\["


def split_text(text: str, limit: int) -> tuple[str, ...]:
    """Split a message into parts of at most ``limit`` characters, at line ends where that is possible.

    A code block that reaches over a border is closed in one part and opened again in the next; one that never ends is
    ended. A limit that leaves no room inside a fence drops the fence. Returns () for an empty text.
    """
    parts = _Parts(max(1, limit))
    for opener, lines in _blocks(text):
        parts.put(opener, lines)
    return parts.end()


class _Parts:
    """Messages in the making: those that are full, and the lines of the last one."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._full: list[str] = []
        self._lines: list[str] = []
        self._size = 0

    def put(self, opener: str, lines: list[str]) -> None:
        fence = _fence_of(opener)
        frame = len(opener) + len(fence) + 2 if opener else 0
        if frame >= self._limit:
            opener, fence, frame = "", "", 0
        inside = False
        for piece in (piece for line in lines for piece in _pieces(line, self._limit - frame)):
            needed = self._size + len(piece) + (len(fence) + 1 if inside else frame)
            if self._lines and needed > self._limit:
                self._close(fence if inside else "")
                self._turn()
                inside = False
            if opener and not inside:
                self._add(opener)
                inside = True
            self._add(piece)
        self._close(fence if inside else "")

    def end(self) -> tuple[str, ...]:
        self._turn()
        return tuple(part for part in self._full if part)

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1

    def _close(self, fence: str) -> None:
        if fence:
            self._add(fence)

    def _turn(self) -> None:
        self._full.append("\n".join(self._lines))
        self._lines, self._size = [], 0


def _blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """Take a message apart into plain lines (opener "") and fenced blocks, without their fences."""
    opener, lines = "", list[str]()
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line)
        if opener and found and found["fence"].startswith(_fence_of(opener)) and not found["rest"].strip():
            yield opener, lines or [""]
            opener, lines = "", []
        elif found and not opener and not (found["fence"][0] == "`" and "`" in found["rest"]):
            yield "", lines
            language = found["rest"].strip()
            opener = found["fence"]
            # Slack shows what stands behind a fence; only Markdown takes it for a language.
            if _LANGUAGE.fullmatch(language):
                opener, lines = opener + language, []
            else:
                lines = [found["rest"]]
        else:
            lines.append(line)
    yield opener, lines


def _fence_of(opener: str) -> str:
    return opener[: len(opener) - len(opener.lstrip(opener[0]))] if opener else ""


def _pieces(line: str, width: int) -> list[str]:
    return [line[start : start + width] for start in range(0, len(line), width)] or [""]


def _fit(text: str, limit: int | None, render: Callable[[str], str]) -> str:
    """Render as much of ``text`` as ``limit`` allows, saying how much was cut."""
    if limit is None:
        return render(text)
    if len(text) <= limit and len(whole := render(text)) <= limit:
        return whole

    def noted(kept: int) -> str:
        return render(f"{text[:kept]}… [cut {len(text) - kept} characters]")

    def bare(kept: int) -> str:
        return render(text[:kept])

    for shown in (noted, bare):
        if len(shown(0)) <= limit:
            return shown(_most(lambda kept: len(shown(kept)) <= limit, min(len(text), limit)))  # noqa: B023 -- called at once
    return ""


def _most(fits: Callable[[int], bool], most: int) -> int:
    """Return a number up to ``most`` that fits, by bisection; 0 is known to fit."""
    fitting = 0
    while fitting < most:
        middle = (fitting + most + 1) // 2
        if fits(middle):
            fitting = middle
        else:
            most = middle - 1
    return fitting


def _tame(text: str) -> str:
    without_controls = _UNSEEN.sub("", _LINE_END.sub("\n", _ANSI.sub("", text)))
    return _UNFIT.sub("\ufffd", without_controls)


def _slack(text: str) -> str:
    # Bare @here is inert unless somebody turns link_names on; then it would wake a channel on every alert.
    return _LOUD.sub("@" + _BREAK, _unfenced(text.translate(_SLACK)))


def _github(text: str) -> str:
    escaped = _EDGE_UNDERSCORE.sub(r"\\_", text.translate(_GITHUB))
    unreferring = _REFERRING_URL.sub(r"\1" + _BREAK, _GH_REFERENCE.sub(r"\1" + _BREAK, escaped))
    return _ORDINAL.sub(r"\1\\\2", _BULLET.sub(r"\\", _INDENT.sub("", unreferring)))


def _discord(text: str) -> str:
    parts = _URL.split(text)  # every second part is a link
    return "".join(f"<{part}>" if place % 2 else _undressed(part) for place, part in enumerate(parts))


def _undressed(text: str) -> str:
    # Pings are switched off where a message is sent as well; this keeps what is shown what was written.
    escaped = _LOUD.sub("@" + _BREAK, _DISCORD.sub(r"\\\g<0>", text)).replace("<", "<" + _BREAK)
    return _DISCORD_ORDINAL.sub(r"\1\\\2", _DISCORD_BULLET.sub(r"\1\\", escaped))


def _unmarked(text: str) -> str:
    return _unfenced(text).replace("<!", f"<{_BREAK}!")


def _unfenced(text: str) -> str:
    return _LONG_RUN.sub(lambda run: _BREAK.join(run[0]), text)
