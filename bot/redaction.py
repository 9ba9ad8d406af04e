"""Takes secrets out of everything that leaves Hero's memory: posts, logs, rows, tracebacks, shown commands.

``Redactor`` knows the secrets of the settings in all their spellings, and finds others by their look
(``bot.secret_shapes``), by the name before them (``bot.secret_names``) or by a short flag (``bot.secret_flags``). What
cannot be scanned is withheld, never passed on: see ``redact_or_withhold``.
"""

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

from bot.secret_fields import is_plain, names_secret, scrub_named, value_follows
from bot.secret_flags import attached_flag, is_password, scrub_flags
from bot.secret_names import is_secret_name
from bot.secret_shapes import MARK, is_tracker_key, scrub_shapes

WITHHELD = "[withheld: this text could not be checked for secrets]"
"""What is shown instead of a text whose scan failed."""

_SHORTEST_SECRET = 4
_SHORTEST_ENCODED = 6
_SHORTEST_LINE = 16
_PASSES = 8
_DEEPEST = 40
_PAIR = 2
_NEAR = 40
"""So many arguments before one may say what it is: the program whose flag it stands behind, at most."""
_USER_FLAGS = frozenset({("-u",), ("--user",), ("--proxy-user",)})
"""Of curl: NAME:PASSWORD follows."""
_SCRIPT_FLAGS = frozenset({("-c",), ("-lc",), ("-ec",)})

_BARE_NAME = re.compile(r"[\w.\-]+", re.ASCII)
_HEX_KEY = re.compile("[0-9a-f]{40}")


class Redactor:
    """Replaces secrets by ``[redacted]``; safe to share between tasks and threads.

    Args:
        secrets: the values of the settings' secrets; shorter ones than four characters are left alone, since they would
            tear ordinary words apart.
    """

    __slots__ = ("_spellings",)

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._spellings: tuple[str, ...] = ()
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Know further secrets from now on; none is ever forgotten."""
        spellings = {spelling for secret in secrets for spelling in _spellings(secret.strip())}
        if not spellings <= set(self._spellings):
            every = spellings.union(self._spellings)
            self._spellings = tuple(sorted(every, key=lambda spelling: (-len(spelling), spelling)))

    def __repr__(self) -> str:
        return f"<Redactor of {len(self._spellings)} spellings>"

    def text(self, text: str) -> str:
        """Return ``text`` without secrets; applying it twice changes nothing more.

        Shell quoting, JSON (also escaped), headers, URLs and the printed form of argument lists are understood. Takes
        time linear in the length.
        """
        for _ in range(_PASSES):
            scrubbed = self._once(text)
            if scrubbed == text:
                return text
            text = scrubbed
        return MARK

    def value(self, value: Any) -> Any:
        """Return the same nesting of dicts, lists and tuples with every string scrubbed, keys and secret fields too.

        Other scalars stay as they are unless their printed form holds a secret; then that form, scrubbed, takes their
        place. Nesting too deep to be meant, and cycles, become ``[redacted]``.
        """
        return self._nested(value, secret=False, above=())

    def argv(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return a command's arguments without secrets, one for one.

        Unlike in a line of text an argument's end is known here, so a value with spaces goes as a whole.
        """
        scrubbed: list[str] = []
        for place, word in enumerate(words):
            before = tuple(words[max(0, place - _NEAR) : place])
            name, equals, held = word.partition("=")
            near = before[-3:]
            is_key = _HEX_KEY.fullmatch(word) is not None and is_tracker_key(" ".join(near))
            if is_key or value_follows(near, word) or is_password(before, word):
                scrubbed.append(word if is_plain(word) else MARK)
            elif flag := attached_flag(before, word):
                scrubbed.append(f"{flag}{MARK}")
            elif before[-1:] in _SCRIPT_FLAGS:
                scrubbed.append(self.text(word))
            elif before[-1:] in _USER_FLAGS:
                scrubbed.append(self.text(f"{before[-1]} {word}").removeprefix(f"{before[-1]} "))
            elif equals and held and _BARE_NAME.fullmatch(name) and names_secret(name) and not is_plain(held):
                scrubbed.append(f"{self.text(name)}={MARK}")
            else:
                scrubbed.append(self.text(word))
        return tuple(scrubbed)

    def _once(self, text: str) -> str:
        for spelling in self._spellings:
            text = text.replace(spelling, MARK)
        return scrub_named(scrub_flags(scrub_shapes(text)))

    def _nested(self, value: Any, *, secret: bool, above: tuple[int, ...]) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return MARK if secret and value and not is_plain(value) else self.text(value)
        if isinstance(value, (Mapping, list, tuple, set, frozenset)):
            if id(value) in above or len(above) >= _DEEPEST:
                return MARK
            return self._container(value, secret=secret, above=(*above, id(value)))
        printed = [(form, self.text(form)) for form in _printed(value)]
        return next((scrubbed for form, scrubbed in printed if scrubbed != form), value)

    def _container(self, value: Any, *, secret: bool, above: tuple[int, ...]) -> Any:
        if isinstance(value, Mapping):
            # Kubernetes writes variables as {"name": "HF_TOKEN", "value": "…"}.
            named = any(isinstance(value.get(key), str) and is_secret_name(value[key]) for key in ("name", "key"))
            return {
                self.text(key) if isinstance(key, str) else key: self._nested(
                    item, secret=secret or (isinstance(key, str) and _hides(key, named=named)), above=above
                )
                for key, item in value.items()
            }
        items = list(value)
        ordered = isinstance(value, (list, tuple)) and len(items) > 1 and all(isinstance(item, str) for item in items)
        if secret or not ordered:
            items = [self._nested(item, secret=secret, above=above) for item in items]
        elif len(items) == _PAIR and _BARE_NAME.fullmatch(items[0]) and is_secret_name(items[0]):
            items = [self.text(items[0]), self._nested(items[1], secret=True, above=above)]
        else:
            items = list(self.argv(items))
        return type(value)(items) if type(value) in {list, tuple, set, frozenset} else items


def _hides(key: str, *, named: bool) -> bool:
    return is_secret_name(key) or (named and key == "value")


class RedactingProcessor:
    """A structlog processor, to stand last before the renderer; an event that cannot be scanned is withheld."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, _logger: Any, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
        try:
            scrubbed: Mapping[str, Any] = self._redactor.value(dict(event))
        except Exception:  # noqa: BLE001 -- whatever broke, an unscanned event must not be printed, nor its absence hidden
            return {"event": WITHHELD, "level": str(event.get("level", "error"))}
        return scrubbed


def shows_secret(text: str) -> bool:
    """Whether a text holds something that looks like a secret, such as an address with a password in it."""
    return _BY_LOOK.text(text) != text


def redact_or_withhold(redactor: Redactor, text: str) -> str:
    """Return the scrubbed text, or ``WITHHELD`` when the scan fails for any reason."""
    try:
        return redactor.text(text)
    except Exception:  # noqa: BLE001 -- a post is withheld rather than sent unscanned (OCA/oca-github-bot#163)
        return WITHHELD


_BY_LOOK = Redactor()


def _spellings(secret: str) -> Iterator[str]:
    """Yield every spelling in which a known secret may turn up."""
    if len(secret) < _SHORTEST_SECRET or secret in MARK:
        return
    for line in secret.splitlines():
        if len(line.strip()) >= _SHORTEST_LINE:
            yield line.strip()
    raw = secret.encode("utf-8", "surrogatepass")
    for percent in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield percent
        yield re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), percent)
    escaped = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    yield from (secret, *escaped, json.dumps(escaped[0])[1:-1], repr(secret)[1:-1], html.escape(secret))
    yield html.escape(secret, quote=False)
    yield secret.replace("'", "'\"'\"'")
    if len(raw) >= _SHORTEST_ENCODED:
        yield from (raw.hex(), raw.hex().upper())
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield from _base64_cores(raw, encode)


def _base64_cores(raw: bytes, encode: Any) -> Iterator[str]:
    """Yield what base64 shows of ``raw`` at each of the three alignments, whatever stands around it."""
    for offset in range(3):
        bits = (offset * 8, (offset + len(raw)) * 8)
        whole = encode(b"\0" * offset + raw + b"\0" * 2).decode("ascii")
        yield whole[-(-bits[0] // 6) : bits[1] // 6]


def _printed(value: Any) -> tuple[str, ...]:
    """Return what a renderer may print for a value."""
    if isinstance(value, (bytes, bytearray)):
        return (bytes(value).decode("utf-8", "backslashreplace"),)
    try:
        return (str(value), repr(value))
    except Exception:  # noqa: BLE001 -- a foreign object's own printing may raise anything
        return ()
