"""Which names stand before a secret: of settings, flags, variables, headers, query parameters and JSON fields.

A name is read as words (``accessKeyId`` is access, key, id), so that ``HF_TOKEN`` is told from
``TOKENIZERS_PARALLELISM`` and ``--api-key`` from ``--keep-last``. When in doubt a name is secret: a hidden value can be
looked up where it belongs, a shown one has to be revoked.
"""

import re
from functools import lru_cache
from itertools import pairwise

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST = 200


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# A word that is enough by itself, wherever it stands in the name.
_HARD = _set(
    "secret secrets password passwords passwd passphrase passcode credential credentials cookie cookies dsn auth"
    " authorization apikey connstr bearer jwt"
)
_HARD_ENDINGS = (
    *("token", "password", "passwd", "secret", "apikey", "privatekey", "accesskey", "secretkey", "credential"),
    *("credentials", "passphrase", "connectionstring", "accountkey", "signingkey", "authkey"),
)
_PAIRS = frozenset(
    {("connection", "string"), ("connection", "str"), ("conn", "string"), ("conn", "str"), ("access", "code")}
    | {(word, "key") for word in _set("api private access secret signing encryption account ssh auth master shared")}
    | {(word, "key") for word in _set("session license service storage deploy webhook bot client app")}
)
# A last word that says the value is about the secret, not the secret: where it lies, how long it lives.
_ABOUT = _set(
    "path file files filename dir directory name names length len count size type kind mode ttl expiry expires age"
    " expiration at header ref url uri endpoint version enabled required provider method limit budget policy server"
    " host port domain issuer scope scopes realm status error errors help py go rs js ts cc md toml yaml yml"
)
# Beside one of these, "token" is a piece of text and not a key.
_TEXT = _set(
    "per eos bos pad unk mask sep cls special num n max min total avg mean batch loss next image audio stop start end"
)
_TOKEN_FOLLOWERS = _set("value prod dev staging default key string b64 base64 raw old ro rw")
# In capitals, as environment variables are, every other key is taken for a secret one.
_OPEN_KEYS = _set("public sort primary foreign cache prng rng random partition metric group index row column host")
_QUERY = _set("key sig signature awsaccesskeyid googleaccessid")
_QUERY_LAST = _set("signature credential")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Say whether a value under this name is to be hidden."""
    words = _words(name)
    if not words or words[-1] in _ABOUT:
        return False
    if any(word in _HARD or (word.endswith(_HARD_ENDINGS) and word != "token") for word in words):
        return True
    if any(pair in _PAIRS for pair in pairwise(words)) or (len(words) > 1 and "pwd" in words):
        return True
    capital = name.upper() == name
    if "token" in words and not _TEXT.intersection(words):
        place = words.index("token") + 1
        return capital or place == len(words) or words[place] in _TOKEN_FOLLOWERS
    return capital and len(words) > 1 and words[-1] == "key" and words[-2] not in _OPEN_KEYS


def is_secret_parameter(name: str) -> bool:
    """Say whether a URL's query parameter of this name gives access, as in signed URLs."""
    words = _words(name)
    return is_secret_name(name) or "".join(words) in _QUERY or (bool(words) and words[-1] in _QUERY_LAST)


def may_be_count(name: str) -> bool:
    """Say whether a small number under this name is more likely a measurement than a secret."""
    words = _words(name)
    return not any(word in _HARD and word != "auth" for word in words)


def is_bare_key(name: str) -> bool:
    """Say whether the name is just ``key``: a secret on a command line, anything elsewhere."""
    return name.strip("-").lower() == "key"


def _words(name: str) -> list[str]:
    words = [word.lower() for word in _WORD.findall(name[-_LONGEST:])]
    while words and words[-1].isdigit():
        words.pop()
    return words
