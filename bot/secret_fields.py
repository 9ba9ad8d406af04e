"""Finds values that stand behind a secret's name in running text and replaces them.

Understood are assignments (``KEY=v``, ``"token": "v"``, also escaped), flags (``--api-key v``), variables handed to a
launcher (``-e KEY v``), headers, query parameters, printed argument lists and name/value pairs. Each value is consumed
once, so the time is linear in the text.
"""

import re

from bot.secret_names import is_bare_key, is_secret_name, is_secret_parameter, may_be_count
from bot.secret_shapes import MARK, looks_random

VARIABLE_FLAGS = frozenset({"-e", "--env", "--env-var", "--env-vars", "--environment", "--set-env", "--build-arg"})
"""Flags that are followed by a variable's name and, apart, its value."""

_NAME = re.compile(
    r"(?<![\w.\-])(?P<name>[\w.\-]++)(?:"
    r"(?P<close>\\*+(?:[\"'`]\]?)?)[ \t]*+(?P<assign>:=|=>|==?|:(?!:|//))[ \t]*+"
    r"|(?P<listed>\\*+[\"']\s*+,\s*+(?=\\*[\"']))"
    r"|(?P<spaced>(?:[ \t]|\\\r?\n)++)(?![=:])"
    r")",
    re.ASCII,
)
_VARIABLE = re.compile(r"\\*+[\"']?(?P<name>[A-Za-z_]\w*+)\\*+[\"']?(?:,\s*+|(?:[ \t]|\\\r?\n)++)(?![=:])", re.ASCII)
_NAMED_VALUE = re.compile(
    r"(?:name|key)\\{0,8}[\"']?\s{0,8}[:=]\s{0,8}\\{0,8}[\"']?(?P<name>[\w.\-]{1,200}+)\\{0,8}[\"']?\s{0,8},?"
    r"\s{0,80}\\{0,8}[\"']?value\\{0,8}[\"']?\s{0,8}[:=][ \t]{0,8}",
    re.ASCII,
)
_SWITCH = re.compile(r"-+(?:no|use|with|without|enable|disable|skip|require|allow|has|is)[-_]", re.IGNORECASE)
_FLAG = re.compile(r"--[A-Za-z]|-[A-Za-z]?(?![\w\-])")
_OPENING = re.compile(r"(\\*+)([\"'`])")
_BARE = re.compile(
    r"(?:\$\{[^}\n]{0,200}\}|\$\([^)\n]{0,200}\)|[^\s\"'`,;&)\]}|\\]|\\[^\"'`\n]|[,;&](?![\s\"']|\Z|[\w.\-]{1,64}[=:])|[)\]}|](?=[\w$!@#%^*]))++",
    re.ASCII,
)
_IN_URL = re.compile(r"(?:\[redacted\])*+[^\s\"'`&#;<>|\\)\]]*+")
_GENERATED = re.compile(r"\\*+[\"']?([A-Za-z0-9+/_.\-]{16,256}+)", re.ASCII)
_AFTER_WORD = frozenset(" \t\r\n,;:)]}>|&/\\")
_BRACKET = re.compile(r"[\[({})\]\n]")
_SPACE = re.compile(r"\s")
_SPACES = re.compile(r"[ \t]+")
_SCHEMES = frozenset({"bearer", "basic", "token", "digest", "negotiate", "apikey", "aws4-hmac-sha256"})
_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})
_PLAIN = re.compile(
    r"true|false|yes|no|on|off|none|null|nil|str|bytes|int|float|bool|any|secretstr|\.\.\."
    r"|\$\w+|\$\{\w+\}|\$\([^()\n]{0,200}\)|%\w+%",
    re.IGNORECASE | re.ASCII,
)
_COUNT = re.compile(r"[-+]?(?:[0-9]{1,5}|[0-9]{0,9}\.[0-9]{1,12}(?:e[-+]?[0-9]{1,3})?)", re.IGNORECASE)


def scrub_named(text: str) -> str:
    """Replace every value that stands behind a secret's name."""
    pieces: list[str] = []
    done = position = 0
    while found := _NAME.search(text, position):
        position = found.end()
        span = _secret_span(text, found)
        if span is not None:
            pieces += text[done : span[0]], MARK
            done, position = span[1], max(position, span[1])
    return "".join(pieces) + text[done:]


def names_secret(name: str) -> bool:
    """Say whether a flag's or variable's name announces a secret; ``--key`` and ``KEY`` do, ``key`` does not."""
    return is_secret_name(name) or (is_bare_key(name) and (name.startswith("-") or name.isupper()))


def is_plain(value: str) -> bool:
    """Say whether a value can be no secret: a truth value, a type's name, a variable that is only referred to."""
    return _PLAIN.fullmatch(value) is not None


def value_follows(before: tuple[str, ...], word: str) -> bool:
    """Say whether the arguments before ``word`` make it a secret: ``--token``, or ``-e TOKEN``."""
    if not before or _FLAG.match(word):
        return False
    flag = before[-1]
    if flag.startswith("-") and "=" not in flag:
        return _takes_secret(flag)
    return len(before) > 1 and before[-2] in VARIABLE_FLAGS and is_secret_name(flag)


def _takes_secret(flag: str) -> bool:
    # A sentence that begins with a dash is no flag, whatever it speaks of.
    return flag.startswith("-") and not _SPACE.search(flag) and names_secret(flag) and not _SWITCH.match(flag)


def _secret_span(text: str, found: re.Match[str]) -> tuple[int, int] | None:
    """Return where the secret behind this name stands, without its quotes; None when there is none."""
    name, at = found["name"], found.start()
    before = text[max(0, at - 5) : at]
    in_url = before.endswith(("?", "&", "&amp;"))
    if before.endswith("\\"):  # an escaped ampersand or line end of JSON has run into the name
        in_url = name.startswith("u0026")
        name = next((cut for cut in (name.removeprefix("u0026"), name[1:]) if is_secret_parameter(cut)), name)
    held = _value_start(text, found, name, in_url=in_url)
    if held is None:
        return None
    start, name = held
    if in_url:
        value = _IN_URL.match(text, start)
        return _judged(text, name, (start, value.end())) if value else None
    header = name.lower() in _HEADERS and found["assign"] == ":" and not found["close"]
    if header and not _OPENING.match(text, start):
        return _judged(text, name, (start, _header_end(text, start, before[-1:])))
    if is_bare_key(name) and not names_secret(name):  # "key=train/loss" is none, "key=9f86d081884c7d65" is
        value = _GENERATED.match(text, start)
        return value.span(1) if value and looks_random(value[1]) else None
    return _judged(text, name, _value_span(text, start))


def _value_start(text: str, found: re.Match[str], name: str, *, in_url: bool) -> tuple[int, str] | None:
    """Return where a value begins and the name that makes it secret."""
    after = found.end()
    if found["assign"] is not None:
        if name in {"name", "key"} and (pair := _NAMED_VALUE.match(text, found.start())):
            return (pair.end(), pair["name"]) if is_secret_name(pair["name"]) else None
        secret = is_secret_parameter(name) if in_url else is_secret_name(name) or is_bare_key(name)
    elif name in VARIABLE_FLAGS:
        variable = _VARIABLE.match(text, after)
        return (variable.end(), variable["name"]) if variable and is_secret_name(variable["name"]) else None
    elif found["listed"] is not None:
        secret = names_secret(name) and not _SWITCH.match(name)
    else:
        secret = _takes_secret(name) and not _FLAG.match(text, after)
    return (after, name) if secret else None


def _judged(text: str, name: str, span: tuple[int, int]) -> tuple[int, int] | None:
    """Drop what turns out to hold nothing secret."""
    value = text[span[0] : span[1]]
    if not value or is_plain(value) or (may_be_count(name) and _COUNT.fullmatch(value)):
        return None
    return span


def _value_span(text: str, start: int) -> tuple[int, int]:
    opening = _OPENING.match(text, start)
    if opening:
        inner_end, outer_end = _quoted_end(text, opening)
        if text[outer_end : outer_end + 1] in {"", *_AFTER_WORD}:
            return opening.end(), inner_end
        return start, _word_end(text, outer_end)
    end = _word_end(text, start)
    if text[start:end].lower() in _SCHEMES and (spaces := _SPACES.match(text, end)):
        end = _word_end(text, spaces.end())
    return start, end


def _word_end(text: str, position: int) -> int:
    """Return where a shell word ends: quotes in its middle belong to it, and so do brackets at its beginning."""
    if text[position : position + 1] in {"[", "(", "{"}:
        end = _bracket_end(text, position)
        if end == position + 1:
            return position
        position = end
    while True:
        if bare := _BARE.match(text, position):
            position = bare.end()
        opening = _OPENING.match(text, position)
        if opening is None or text[opening.end() : opening.end() + 1] in {"", *_AFTER_WORD}:
            return position
        position = _quoted_end(text, opening)[1]


def _quoted_end(text: str, opening: re.Match[str]) -> tuple[int, int]:
    """Return where a quoted value ends without and with its closing quote, or the line's end when it is not closed.

    A quote inside a string that was escaped n times has more backslashes than the quote around it: at depth d the outer
    one has 2^d - 1, and one more level doubles and adds.
    """
    depth, quote = len(opening[1]), opening[2]
    for mark in re.compile(rf"(?<!\\)(\\*+){quote}|\n").finditer(text, opening.end()):
        if mark[0] == "\n":
            return mark.start(), mark.start()
        slashes = len(mark[1])
        if slashes < depth or slashes % (2 * (depth + 1)) == depth:
            return mark.end() - 1 - min(slashes, depth), mark.end()
    return len(text), len(text)


def _bracket_end(text: str, position: int) -> int:
    depth = 0
    for mark in _BRACKET.finditer(text, position):
        if mark[0] == "\n":
            return mark.start()
        depth += 1 if mark[0] in "[({" else -1
        if depth == 0:
            return mark.end()
    return len(text)


def _header_end(text: str, start: int, before: str) -> int:
    """Return where a header's value ends: at the quote that was opened before its name, else at the line's end."""
    end = re.compile(rf"(?<!\\)\\*+{before}|\n" if before in {'"', "'"} else r"\\n|\n").search(text, start)
    return end.start() if end else len(text)
