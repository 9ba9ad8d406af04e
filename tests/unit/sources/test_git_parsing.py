"""What git prints with ``-z``: every path whole, whatever is in its name, and nothing guessed from half an answer."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import UnrecognisedError
from bot.sources.git.failure import of_git, said
from bot.sources.git.parsing import parse_changes, parse_status

HEAD = b"a" * 40
paths = st.binary(min_size=1, max_size=20).filter(lambda path: b"\0" not in path)
kinds = st.sampled_from(("changed", "renamed", "unmerged", "unknown", "submodule"))


def headers(head: bytes = HEAD, branch: bytes = b"main") -> bytes:
    return b"# branch.oid " + head + b"\0# branch.head " + branch + b"\0# branch.ab +1 -2\0# stash 3\0"


def record(kind: str, path: bytes, before: bytes = b"before") -> bytes:
    modes, shas = b"100644 100644 100644", HEAD + b" " + HEAD
    match kind:
        case "changed":
            return b"1 .M N... " + modes + b" " + shas + b" " + path
        case "submodule":
            return b"1 .M S.MU " + modes + b" " + shas + b" " + path
        case "renamed":
            return b"2 R. N... " + modes + b" " + shas + b" R100 " + path + b"\0" + before
        case "unmerged":
            return b"u UU N... " + modes + b" 100644 " + shas + b" " + HEAD + b" " + path
        case _:
            return b"? " + path


@given(st.lists(st.tuples(kinds, paths, paths), max_size=6))
def test_every_path_is_found_and_is_the_same_bytes(changes: list[tuple[str, bytes, bytes]]) -> None:
    printed = headers() + b"".join(record(*change) + b"\0" for change in changes)

    status = parse_status(printed)

    expected = {path for _, path, _ in changes} | {before for kind, _, before in changes if kind == "renamed"}
    assert (status.head, status.branch) == (HEAD.decode(), "main")
    assert [entry.path for entry in status.entries] == sorted(expected)


def test_what_is_known_of_a_path_beside_its_name() -> None:
    printed = headers(b"(initial)", b"(detached)") + record("submodule", b"lib") + b"\0? new/\0? file\0! ignored\0"

    status = parse_status(printed)

    assert (status.head, status.branch) == ("", "")
    assert [(each.path, each.is_known, each.is_repository) for each in status.entries] == [
        (b"file", False, False), (b"lib", True, True), (b"new/", False, True),
    ]  # fmt: skip


@given(st.lists(st.tuples(kinds, paths), min_size=1, max_size=3), st.data())
def test_an_answer_that_was_cut_off_never_loses_a_path_silently(
    changes: list[tuple[str, bytes]], data: st.DataObject
) -> None:
    whole = headers() + b"".join(record(*change) + b"\0" for change in changes)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]

    if cut.endswith(b"\0"):  # between two records nothing shows the cut; the program's end and its limit do
        return
    with pytest.raises(UnrecognisedError):
        parse_status(cut)


@given(st.binary(max_size=200))
def test_no_bytes_break_the_parsers(printed: bytes) -> None:
    for parse in (parse_status, parse_changes):
        with contextlib.suppress(UnrecognisedError):
            parse(printed)


@given(st.lists(st.tuples(st.sampled_from((b"A", b"D", b"M", b"T", b"R087", b"C100")), paths, paths), max_size=6))
def test_changes_are_both_names_of_a_rename(changes: list[tuple[bytes, bytes, bytes]]) -> None:
    printed = b"".join(
        kind + b"\0" + old + b"\0" + (new + b"\0" if kind[:1] in b"RC" else b"") for kind, old, new in changes
    )

    found = parse_changes(printed)

    expected = {old for _, old, _ in changes} | {new for kind, _, new in changes if kind[:1] in b"RC"}
    assert found == tuple(sorted(expected))


def test_a_password_in_a_remotes_address_is_never_said() -> None:
    secret = "hunter2-is-the-password"  # a made-up one
    stderr = f"hint: x\nfatal: unable to access 'https://ada:{secret}@host/x.git/': Could not resolve host: host\n"

    assert secret not in of_git("fetch", "/checkout", 128, stderr).detail
    assert "Could not resolve host" in said(stderr)
