"""Passwords behind short flags, whose letters mean other things elsewhere: ``-p`` is a port, a path or a password.

Two rules, both on the safe side of readability. A value is hidden behind the password flag of a program that is known
to take one (``sshpass -p``, ``docker login -p``, ``redis-cli -a``), attached or apart. Behind any other ``-p`` it is
hidden when it holds white space, as a pass phrase does and no port, path or name. ``-p 8080:80``, ``-p 22``,
``-p port`` and ``mkdir -p out/dir`` stay readable. A value that is written under a secret's name is hidden as well:
``aws configure set aws_secret_access_key VALUE``, ``gh secret set NAME --body VALUE``.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from bot.secret_names import is_secret_name
from bot.secret_shapes import MARK

_ALWAYS = {
    **dict.fromkeys(("mysql", "mysqladmin", "mysqldump", "mysqlimport", "mariadb", "mariadb-dump"), "-p"),
    **dict.fromkeys(("mongo", "mongosh", "mongodump", "mongoexport", "mongoimport", "mongorestore"), "-p"),
    **dict.fromkeys(("sshpass", "rabbitmqadmin", "7z", "7za", "7zr"), "-p"),
    **dict.fromkeys(("ldapadd", "ldapmodify", "ldapsearch", "ldapwhoami"), "-w"),
    **dict.fromkeys(("zip", "unzip"), "-P"),
    "redis-cli": "-a",
}
"""Programs whose flag of this name is a password."""
_AT_LOGIN = frozenset({"az", "buildah", "crane", "docker", "helm", "nerdctl", "oras", "podman", "regctl", "skopeo"})
"""Programs whose ``-p`` is a password after ``login``, and something else otherwise."""
_ATTACHED = frozenset({"mysql", "mysqladmin", "mysqldump", "mysqlimport", "mariadb", "mariadb-dump", "sshpass", "7z"})
_FLAGS = frozenset({"-p", *_ALWAYS.values()})
_PLACE = re.compile(r"[/~$]|\.{1,2}/|[A-Za-z]:\\")
_SPACE = re.compile(r"\s")
_END = frozenset({"|", "||", "&&", ";", "&", "--", "ssh", "scp", "sftp", "rsync", "psql", "mkdir"})
"""What ends the arguments of the program before it: an operator, or a program that takes no password so."""

_QUOTED = re.compile(r"(?<![\w-])-p(?P<between>[ \t]++|=)(?P<quote>\\*+[\"'])(?P<value>[^\"'\n\\]{1,400}+)(?P=quote)")
_TOOL = re.compile(
    r"(?<![\w.-])(?P<tool>" + "|".join(map(re.escape, sorted({*_ALWAYS, *_AT_LOGIN}, key=len, reverse=True))) + r")"
    r"(?=[ \t])(?P<rest>[^\n|;&]{1,400}+)",
    re.ASCII,
)
_SET = re.compile(
    r"\b(?P<before>config(?:ure)?[ \t]{1,8}set[ \t]{1,8}(?P<name>[\w.-]{1,200}+)[ \t]{1,8})(?P<value>[^\s\"']++)"
)
_SECRET_SET = re.compile(
    r"\b(?P<before>secret[ \t]{1,8}set\b[^\n|;&]{1,300}?[ \t](?:--body|-b)[ \t=]{1,8})(?P<value>[^\s\"']++)"
)
_IN_TEXT = re.compile(r"(?P<flag>(?<!\S)-[pPaw])(?P<between>[ \t]++|=?)(?P<value>\"[^\"\n]*+\"|'[^'\n]*+'|[^\s\"']++)")


def is_password(before: tuple[str, ...], word: str) -> bool:
    """Say whether an argument is a password that stands apart from its short flag.

    Args:
        before: the arguments before it, the program among them.
        word: the argument.
    """
    if not before or word.startswith("-"):
        return False
    if before[-2:-1] == ("set",) and before[-3:-2] in {("configure",), ("config",)} and is_secret_name(before[-1]):
        return True
    if before[-1] in {"--body", "-b"} and ("secret", "set") in pairwise(before):
        return True
    if before[-1] not in _FLAGS:
        return False
    return _flag_of(before[:-1]) == before[-1] or (before[-1] == "-p" and _is_phrase(word))


def attached_flag(before: Sequence[str], word: str) -> str:
    """Return the flag of ``-pPASSWORD``, where the program takes it so; else nothing."""
    flag = word[:2]
    if flag not in _FLAGS or len(word) == len(flag):
        return ""
    tool = _tool(before)
    return flag if tool in _ATTACHED and _ALWAYS.get(tool) == flag else ""


def scrub_flags(text: str) -> str:
    """Replace passwords behind short flags in running text."""
    text = _QUOTED.sub(_quoted, text)
    text = _TOOL.sub(_tool_line, text)
    text = _SET.sub(lambda found: f"{found['before']}{MARK}" if is_secret_name(found["name"]) else found[0], text)
    return _SECRET_SET.sub(rf"\g<before>{MARK}", text)


def _is_phrase(value: str) -> bool:
    return bool(_SPACE.search(value.strip())) and not _PLACE.match(value)


def _tool(words: Sequence[str]) -> str:
    """Return the program that takes the flags after these words: the last known one of its command."""
    for word in reversed(words):
        if word in _END:
            return ""
        name = word.rpartition("/")[2]
        if name in _ALWAYS or name in _AT_LOGIN:
            return name
    return ""


def _flag_of(words: Sequence[str]) -> str:
    tool = _tool(words)
    return _ALWAYS.get(tool, "-p" if tool in _AT_LOGIN and "login" in words else "")


def _quoted(found: re.Match[str]) -> str:
    if not _is_phrase(found["value"]):
        return found[0]
    return f"-p{found['between']}{found['quote']}{MARK}{found['quote']}"


def _tool_line(found: re.Match[str]) -> str:
    tool, rest = found["tool"], found["rest"]

    def hide(flag: re.Match[str]) -> str:
        value = flag["value"].strip("\"'")
        is_fine = value == MARK or value.startswith("$") or (not flag["between"] and tool not in _ATTACHED)
        if is_fine or _flag_of((tool, *rest[: flag.start()].split())) != flag["flag"]:
            return flag[0]
        return f"{flag['flag']}{flag['between']}{MARK}"

    return f"{tool}{_IN_TEXT.sub(hide, rest)}"
