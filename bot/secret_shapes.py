"""Secrets that are known by their own look, whatever stands before them.

Every pattern is bounded or possessive, so that a line of a megabyte takes linear time.
"""

import re

MARK = "[redacted]"
"""What stands where a secret stood."""

_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(r"[\w|:.\-+/= \t]{0,60}?[A-Za-z0-9+/=]{40,}\r?\n?")

_TOKENS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"gh[opsur]_[A-Za-z0-9_]{4,}(?:\.[\w-]{1,2000}){0,2}"  # GitHub
    r"|github_pat_[A-Za-z0-9_]{4,}"
    r"|xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{4,}|xapp-[A-Za-z0-9-]{4,}"  # Slack
    r"|hf_[A-Za-z0-9]{16,}|api_org_[A-Za-z0-9]{16,}"  # Hugging Face
    r"|sk-(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{16,}|[srp]k_(?:live|test)_[A-Za-z0-9]{8,}"  # OpenAI, Stripe
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}(?:[\s:,;\"'|]{1,4}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+]))?"  # AWS, with its key
    r"|AIza[\w-]{30,}|ya29\.[\w.-]{10,}|GOCSPX-[\w-]{10,}|GOOG1[A-Z0-9]{16,}"  # Google
    r"|wandb_v[0-9]{1,3}_[\w-]{16,}|local-[0-9a-f]{40}"  # W&B
    r"|glpat-[\w-]{10,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|SG\.[\w-]{16,}\.[\w-]{16,}"  # GitLab, PyPI
    r"|[MNO][A-Za-z0-9]{23,27}\.[\w-]{6}\.[\w-]{27,}"  # Discord
    r"|eyJ[\w-]{6,}+\.[\w-]{4,}+(?:\.[\w-]*+)?"  # JWT
    r")",
    re.ASCII,
)
_WEBHOOK = re.compile(
    r"(hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/(?:v[0-9]{1,3}/)?webhooks/)"
    r"[\w/%.-]+",
    re.ASCII | re.IGNORECASE,
)
_USERINFO = re.compile(r"(?<![A-Za-z0-9+.\-])([A-Za-z][A-Za-z0-9+.\-]*+)://((?:[^\s/?#\"'`<>@]*+@)+)")
_SCHEME_AND_TOKEN = re.compile(r"\b(bearer|basic)([ \t]++)([A-Za-z0-9._~+/=-]{8,})", re.ASCII | re.IGNORECASE)
_USER_FLAG = re.compile(r"(?<![\w-])(-u|--user|--proxy-user)([ =]\"?'?)([^\s:\"'/]{1,200}):([^\s\"']+)")
_NETRC = re.compile(r"\b(login[ \t]++\S{1,200}+\s++password[ \t]++)(\S+)", re.IGNORECASE)
_HEX_KEY = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{40}(?![0-9A-Za-z])")
_WANDB = re.compile(r"wandb|w&b|weights (?:&|and) biases", re.IGNORECASE)
_KEY_WORD = re.compile(r"key|login|password|secret|token|auth", re.IGNORECASE)
_REVISION = re.compile(r"sha|commit|revision|\brev\b|\bgit\b", re.IGNORECASE)
_BEFORE = 80


def scrub_shapes(text: str) -> str:
    """Replace everything that looks like a secret by itself."""
    text = _scrub_private_keys(text)
    text = _TOKENS.sub(MARK, text)
    text = _WEBHOOK.sub(r"\1" + MARK, text)
    text = _USERINFO.sub(_userinfo, text)
    text = _SCHEME_AND_TOKEN.sub(_scheme, text)
    text = _USER_FLAG.sub(_user_flag, text)
    text = _NETRC.sub(r"\1" + MARK, text)
    return _HEX_KEY.sub(_hex_key, text)


def is_tracker_key(before: str) -> bool:
    """Say whether 40 hex digits after these words are a W&B key; alone they are as likely a commit."""
    near = before.rpartition("\n")[2]
    return bool(_WANDB.search(near) and _KEY_WORD.search(near) and not _REVISION.search(near[-30:]))


def looks_random(value: str) -> bool:
    """Say whether a value is long and mixed enough to be generated."""
    return len(value) >= 16 and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)  # noqa: PLR2004 -- a length


def _scrub_private_keys(text: str) -> str:
    pieces: list[str] = []
    done = 0
    while begin := _PEM_BEGIN.search(text, done):
        end = _PEM_END.search(text, begin.end())
        # Without its end the key may be cut anywhere: nothing after it can be told from it.
        pieces += text[done : begin.start()], MARK
        done = end.end() if end else len(text)
    rest = text[done:]
    if end := _PEM_END.search(rest):
        rest = _without_tail(rest[: end.start()]) + MARK + rest[end.end() :]
    return "".join(pieces) + rest


def _without_tail(text: str) -> str:
    """Drop the last lines of a key whose beginning is not in the text."""
    lines = text.splitlines(keepends=True)
    while lines and (_PEM_BODY.fullmatch(lines[-1]) or (len(lines) > 1 and _PEM_BODY.fullmatch(lines[-2]))):
        lines.pop()
    return "".join(lines)


def _hex_key(found: re.Match[str]) -> str:
    before = found.string[max(0, found.start() - _BEFORE) : found.start()]
    return MARK if is_tracker_key(before) else found[0]


def _userinfo(found: re.Match[str]) -> str:
    scheme, userinfo = found[1], found[2][:-1]
    user, colon, _ = userinfo.partition(":")
    if colon:
        return f"{scheme}://{user}:{MARK}@"
    # "ssh://git@host" names an account; "https://TOKEN@host" is the token.
    named = scheme.lower() in {"ssh", "git+ssh", "sftp", "rsync", "s3", "gs"} or userinfo == MARK
    return found[0] if named else f"{scheme}://{MARK}@"


def _scheme(found: re.Match[str]) -> str:
    value = found[3]
    plain = value.isalpha() and (value.islower() or value.istitle())
    return found[0] if plain else f"{found[1]}{found[2]}{MARK}"


def _user_flag(found: re.Match[str]) -> str:
    account = found[3].isdigit() and found[4].isdigit()  # "--user 1000:1000" of docker
    return found[0] if account or found[4].startswith("$") else f"{found[1]}{found[2]}{found[3]}:{MARK}"
