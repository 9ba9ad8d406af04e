"""The git source over real repositories with a real remote: every state of a checkout ends in a sound reading."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.clock import SystemClock
from bot.commands.code_probe import probe_git
from bot.model.code import CodeState, SourceFaultKind
from bot.model.contract import Contract
from bot.model.reading import Gap, Known, Unknown
from bot.redaction import Redactor
from bot.settings import GitSettings
from bot.sources.git.source import GitSource
from tests.fakes.clock import FakeClock
from tests.fakes.repositories import Origin, Repository
from tests.fakes.snapshots import contract


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path)


@pytest.fixture
def checkout(origin: Origin) -> Repository:
    return origin.clone()


def source(clock: Any = None, **settings: Any) -> GitSource:
    given = {"deadline": timedelta(seconds=60), **settings}
    return GitSource(GitSettings(**given), clock or SystemClock())


def promised(checkout: Repository | Path, sha: str | None = None, **fields: Any) -> Contract:
    path = checkout.path if isinstance(checkout, Repository) else checkout
    return contract(checkout=str(path), source_sha=sha, **fields)


async def known(contract: Contract, reader: GitSource | None = None) -> CodeState:
    reading = await (reader or source()).code(contract)
    assert isinstance(reading, Known), reading
    return reading.value


async def unknown(contract: Contract, reader: GitSource | None = None) -> Unknown:
    reading = await (reader or source()).code(contract)
    assert isinstance(reading, Unknown), reading
    return reading


async def test_a_clean_checkout_at_its_pushed_commit_is_told_whole(checkout: Repository) -> None:
    state = await known(promised(checkout, checkout.head))

    assert state.source is not None
    assert (state.head, state.branch, state.dirty, state.patch_sha256) == (checkout.head, "main", (), "")
    assert (state.source.sha, state.source.is_ancestor) == (checkout.head, True)
    assert state.source.pushed_to == ("origin/main",)
    assert state.fetched_at is not None
    assert (state.changed, state.fetch_fault, state.underway) == ((), "", "")


async def test_every_kind_of_change_is_dirty_and_odd_names_are_whole(checkout: Repository) -> None:
    for name in ("gone.py", "moved.py", "edited.py"):
        checkout.commit(name, f"{name}\n")
    (checkout.path / "gone.py").unlink()
    checkout.git("mv", "moved.py", "elsewhere.py")
    checkout.write("edited.py", "another\n")
    for name in ("new\nline.py", 'quo"te.py', "schön.py", "sub/deep file.py", "-option.py"):
        checkout.write(name)

    state = await known(promised(checkout))

    assert set(state.dirty) == {
        "gone.py", "moved.py", "elsewhere.py", "edited.py",
        "new\nline.py", 'quo"te.py', "schön.py", "sub/deep file.py", "-option.py",
    }  # fmt: skip


async def test_a_name_that_is_no_text_is_told_and_its_content_counts(checkout: Repository) -> None:
    name = os.fsdecode(b"odd\xff.py")
    checkout.write(name, "1")

    before = await known(promised(checkout))
    checkout.write(name, "2")
    after = await known(promised(checkout))

    assert before.dirty == (r"odd\xff.py",)
    assert before.patch_sha256 != after.patch_sha256


async def test_a_conflict_and_what_is_underway_are_told(checkout: Repository) -> None:
    base = checkout.head
    checkout.commit("train.py", "x = 1\n")
    checkout.git("checkout", "--quiet", "-b", "other", base)
    checkout.commit("train.py", "x = 2\n")
    with pytest.raises(AssertionError, match="rebase"):
        checkout.git("rebase", "main")

    state = await known(promised(checkout, base))

    assert state.dirty == ("train.py",)
    assert state.branch == ""
    assert state.underway == "a rebase"


async def test_the_digest_is_of_content_alone_and_of_what_counts(checkout: Repository) -> None:
    checkout.write("train.py", "x = 5\n")
    checkout.write("new.py", "y = 1\n")
    first = await known(promised(checkout))

    checkout.git("add", "-A")  # staged or not is nothing to what would be launched
    checkout.write("notes.md", "harmless")
    checkout.write("out/step-1/weights", "written by the run")
    same = await known(promised(checkout, output_root="out"))
    checkout.write("new.py", "y = 2\n")
    other = await known(promised(checkout))
    (checkout.path / "new.py").chmod(0o755)
    executable = await known(promised(checkout))

    assert first.patch_sha256
    assert "notes.md" in same.dirty
    assert same.dirty_that_counts == ("new.py", "train.py")
    assert same.patch_sha256 == first.patch_sha256
    assert len({first.patch_sha256, other.patch_sha256, executable.patch_sha256}) == 3


async def test_an_output_root_that_is_the_checkout_excuses_nothing(checkout: Repository) -> None:
    checkout.write("new.py")

    for root in (".", "..", str(checkout.path)):
        state = await known(promised(checkout, output_root=root, checkpoint_roots=("x",)))
        assert state.dirty_that_counts == ("new.py",), root


async def test_a_checkout_below_the_top_is_judged_whole(checkout: Repository) -> None:
    checkout.commit("apps/run/train.py")
    checkout.write("library/model.py")
    checkout.write("apps/run/out/metrics.jsonl")

    state = await known(promised(checkout.path / "apps/run", output_root="out"))

    assert state.dirty == ("apps/run/out/metrics.jsonl", "library/model.py")
    assert state.dirty_that_counts == ("library/model.py",)


async def test_what_changed_since_the_source_is_named_by_path(checkout: Repository) -> None:
    sha = checkout.head
    checkout.commit("README.md", "words")
    checkout.commit("model.py")
    checkout.git("mv", "train.py", "moved.py")
    checkout.git("commit", "--quiet", "--message", "move")

    state = await known(promised(checkout, sha))

    assert state.changed == ("README.md", "model.py", "moved.py", "train.py")
    assert state.changed_that_counts == ("model.py", "moved.py", "train.py")


async def test_what_changed_between_two_launches_is_named_and_an_unknown_commit_is_no_answer(
    checkout: Repository,
) -> None:
    first = checkout.head
    second = checkout.commit("model.py")

    changed = await source().between(promised(checkout, second), first[:9])
    nothing = await source().between(promised(checkout, first), first)
    missing = await source().between(promised(checkout, second), "deadbeef" * 5)

    assert isinstance(changed, Known)
    assert isinstance(nothing, Known)
    assert isinstance(missing, Unknown)
    assert changed.value == ("model.py",)
    assert nothing.value == ()


async def test_an_unpushed_commit_is_on_no_branch_until_it_is_pushed(checkout: Repository) -> None:
    sha = checkout.commit("model.py")

    before = await known(promised(checkout, sha))
    checkout.push("topic")
    on_topic = await known(promised(checkout, sha))
    checkout.push("main")
    on_main = await known(promised(checkout, sha))

    lies = [(s.source.pushed_to, s.source.is_ancestor) for s in (before, on_topic, on_main) if s.source]
    assert lies == [((), False), (("origin/topic",), False), (("origin/main", "origin/topic"), True)]


async def test_a_fetch_brings_one_branch_and_touches_nothing_else(origin: Origin, checkout: Repository) -> None:
    other = origin.clone("other")
    sha = other.commit("model.py")
    other.push()
    other.push("topic")
    other.git("tag", "v1")
    other.git("push", "--quiet", "origin", "v1")
    checkout.git("update-ref", "refs/remotes/origin/stale", checkout.head)
    mine = checkout.head

    state = await known(promised(checkout, sha))

    refs = checkout.git("for-each-ref", "--format=%(refname)").splitlines()
    assert state.source is not None
    assert state.source.is_ancestor
    assert checkout.head == mine
    assert set(refs) == {"refs/heads/main"} | {f"refs/remotes/origin/{each}" for each in ("HEAD", "main", "stale")}
    assert not (checkout.path / ".git/FETCH_HEAD").exists()
    assert not (checkout.path / "model.py").exists()


async def test_a_repository_is_fetched_at_most_once_in_a_while_for_all_its_runs(
    origin: Origin, checkout: Repository
) -> None:
    clock = FakeClock()
    reader = source(clock, fetch_every=timedelta(hours=1))
    worktree = checkout.path.parent / "worktree"
    checkout.git("worktree", "add", "--quiet", "--detach", str(worktree))
    first = await known(promised(checkout, checkout.head), reader)
    other = origin.clone("other")
    sha = other.commit("model.py")
    other.push()

    clock.advance(timedelta(minutes=59))
    early = await known(promised(worktree, sha), reader)
    clock.advance(timedelta(minutes=2))
    late = await known(promised(worktree, sha), reader)

    assert early.fetched_at == first.fetched_at
    assert early.source_fault is not None
    assert early.source_fault.kind is SourceFaultKind.MISSING
    assert late.source is not None
    assert late.source.is_ancestor


async def test_without_fetching_the_branch_stays_as_it_was_and_is_said_to(origin: Origin, checkout: Repository) -> None:
    other = origin.clone("other")
    sha = other.commit("model.py")
    other.push()

    state = await known(promised(checkout, sha), source(fetch=False))

    assert (state.source, state.fetched_at) == (None, None)


async def test_a_remote_that_is_gone_costs_the_fetch_and_nothing_else(checkout: Repository) -> None:
    sha = checkout.head
    secret = "hunter2-is-the-password"  # a made-up one
    checkout.git("remote", "set-url", "origin", f"http://ada:{secret}@127.0.0.1:1/repository")

    state = await known(promised(checkout, sha))

    assert state.fetched_at is None
    assert state.fetch_fault
    assert secret not in state.model_dump_json()
    assert state.source is not None
    assert state.source.is_ancestor, "it was there when it was last heard of"


async def test_a_branch_that_the_remote_does_not_have_is_named(checkout: Repository) -> None:
    state = await known(promised(checkout, checkout.head, code={"branch": "release"}))

    assert state.source is not None
    assert state.source.is_ancestor is None
    assert "origin/release is not here" in state.source.ancestry_gap
    assert "correct [code] branch" in state.fetch_fault


@pytest.mark.parametrize("named", ["main", "v1", "HEAD", "origin/main", "", "--all", "abc12", "z" * 40])
async def test_a_name_is_no_sha(checkout: Repository, named: str) -> None:
    checkout.git("tag", "v1")

    state = await known(promised(checkout, named))

    assert state.source is None
    assert state.source_fault is not None
    assert state.source_fault.kind is SourceFaultKind.NOT_A_SHA
    assert named in {"", "--all", "abc12", "z" * 40} or checkout.head in state.source_fault.fix


async def test_an_abbreviation_counts_and_a_branch_of_the_same_name_does_not(checkout: Repository) -> None:
    sha = checkout.head
    later = checkout.commit("model.py")
    checkout.git("branch", sha[:8], later)

    for named in (sha[:7], sha[:8], sha.upper(), sha):
        state = await known(promised(checkout, named))
        assert state.source is not None, named
        assert state.source.sha == sha


async def test_what_is_missing_or_no_commit_is_told_apart(checkout: Repository) -> None:
    tree = checkout.git("rev-parse", "HEAD^{tree}")
    checkout.git("tag", "--annotate", "v2", "--message", "two")
    tag = checkout.git("rev-parse", "v2")

    missing = await known(promised(checkout, "deadbeef" * 5))
    no_commit = await known(promised(checkout, tree))
    tagged = await known(promised(checkout, tag))

    kinds = [state.source_fault.kind for state in (missing, no_commit, tagged) if state.source_fault]
    assert kinds == [SourceFaultKind.MISSING, SourceFaultKind.NO_COMMIT, SourceFaultKind.NO_COMMIT]


async def test_an_ambiguous_abbreviation_names_the_commits(checkout: Repository) -> None:
    """Seven digits are shared by chance only in huge repositories, so an object store that answers so stands in."""
    first, second = checkout.head, checkout.commit("model.py")
    program = checkout.path.parent / "git"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *--disambiguate=*) printf "%s\\n" {first} {second};; *) exec git "$@";; esac\n'
    )
    program.chmod(0o755)

    state = await known(promised(checkout, first[:7]), source(program=str(program)))

    assert state.source_fault is not None
    assert state.source_fault.kind is SourceFaultKind.AMBIGUOUS
    assert first in state.source_fault.detail
    assert second in state.source_fault.detail


async def test_a_shallow_clone_never_says_that_a_commit_is_no_ancestor(origin: Origin) -> None:
    seed = Repository(origin.path.parent / "seed")
    old = seed.head
    for number in range(3):
        seed.commit("train.py", f"x = {number + 7}\n")
    seed.push()
    shallow = origin.clone("shallow", "--depth", "1")
    shallow.git("fetch", "--quiet", "--depth", "1", "origin", old)

    cut = await known(promised(shallow, old))
    absent = await known(promised(shallow, "deadbeef" * 5))
    tip = await known(promised(shallow, shallow.head))

    assert cut.is_shallow
    assert cut.source is not None
    assert cut.source.is_ancestor is None
    assert "--unshallow" in cut.source.ancestry_gap
    assert absent.source_fault is not None
    assert "--unshallow" in absent.source_fault.fix
    assert tip.source is not None
    assert tip.source.is_ancestor


async def test_what_is_no_repository_is_nothing_configured_until_a_commit_is_named(tmp_path: Path) -> None:
    nothing = await unknown(promised(tmp_path))
    named = await unknown(promised(tmp_path, "a" * 40))
    absent = await unknown(promised(tmp_path / "absent", "a" * 40))

    assert nothing.reason is Gap.NOT_CONFIGURED
    assert named.reason is Gap.REFUSED
    assert "is no git repository; set `checkout`" in named.detail
    assert absent.reason is Gap.REFUSED


async def test_a_repository_without_a_work_tree_or_a_commit_is_refused(origin: Origin, tmp_path: Path) -> None:
    empty = Repository(tmp_path / "empty")
    empty.path.mkdir()
    empty.git("init", "--quiet")

    bare = await unknown(promised(origin.path, "a" * 40))
    inside = await unknown(promised(empty.path / ".git", "a" * 40))
    unborn = await unknown(promised(empty, "a" * 40))

    assert (bare.reason, inside.reason, unborn.reason) == (Gap.REFUSED,) * 3
    assert "bare repository" in bare.detail
    assert "git worktree add" in bare.detail
    assert "inside a .git directory" in inside.detail
    assert "no commit yet" in unborn.detail
    assert (await unknown(promised(empty))).reason is Gap.NOT_CONFIGURED


async def test_a_directory_that_the_repository_around_it_does_not_hold_is_none_of_it(checkout: Repository) -> None:
    checkout.write(".gitignore", "scratch/\n")
    checkout.write("scratch/run/train.py")

    nothing = await unknown(promised(checkout.path / "scratch/run"))
    named = await unknown(promised(checkout.path / "scratch/run", checkout.head))

    assert nothing.reason is Gap.NOT_CONFIGURED
    assert named.reason is Gap.REFUSED
    assert "no part of the repository around it" in named.detail


async def test_the_doctor_names_version_and_what_each_run_lacks(checkout: Repository, tmp_path: Path) -> None:
    settings = GitSettings(deadline=timedelta(seconds=60))
    missing = GitSettings(program=str(tmp_path / "no-such-git"))
    well, astray = promised(checkout, checkout.head), promised(checkout, "main")

    git, first, second = await probe_git(settings, (well, astray, promised(checkout)), SystemClock())
    (needed,) = await probe_git(missing, (well,), SystemClock())
    (not_needed,) = await probe_git(missing, (promised(checkout),), SystemClock())

    assert git.ok
    assert git.detail.startswith("version 2.")
    assert first.ok
    assert "origin/main was fetched" in first.detail
    assert not second.ok
    assert checkout.head in second.fix
    assert not needed.ok
    assert "[git] program" in needed.fix
    assert not_needed.ok


async def test_a_missing_program_is_told_with_its_fix(checkout: Repository) -> None:
    reader = source(program=str(checkout.path / "no-such-git"))

    gap = await unknown(promised(checkout, checkout.head), reader)

    assert gap.reason is Gap.REFUSED
    assert "set [git] program" in gap.detail
    assert (await unknown(promised(checkout), reader)).reason is Gap.NOT_CONFIGURED


async def test_somebody_elses_repository_is_refused_with_the_command_that_trusts_it(
    checkout: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    promise = promised(checkout, checkout.head)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    gap = await unknown(promise)

    assert gap.reason is Gap.REFUSED
    assert f"git config --global --add safe.directory {checkout.path}" in gap.detail


def hanging(directory: Path, verb: str) -> str:
    """Return a program that hangs at one verb, with a child that would outlive it, and is git otherwise."""
    program = directory / f"git-that-hangs-at-{verb}"
    child = f"sleep 300 & echo $! > {directory}/child; wait"
    program.write_text(f'#!/bin/sh\ncase "$*" in *" {verb} "*) {child};; *) exec git "$@";; esac\n')
    program.chmod(0o755)
    return str(program)


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


async def test_a_hanging_remote_costs_half_the_time_and_its_children_end(checkout: Repository, tmp_path: Path) -> None:
    reader = source(program=hanging(tmp_path, "fetch"), deadline=timedelta(seconds=8))

    state = await known(promised(checkout, checkout.head), reader)

    assert "did not answer in time" in state.fetch_fault
    assert state.source is not None
    assert not is_alive(int((tmp_path / "child").read_text()))


async def test_a_git_that_hangs_is_a_timeout(checkout: Repository, tmp_path: Path) -> None:
    reader = source(program=hanging(tmp_path, "status"), deadline=timedelta(seconds=2))

    gap = await unknown(promised(checkout, checkout.head), reader)

    assert gap.reason is Gap.TIMEOUT
    assert not is_alive(int((tmp_path / "child").read_text()))


async def test_a_lock_that_somebody_holds_is_no_hindrance_and_none_is_taken(checkout: Repository) -> None:
    checkout.write("train.py", "x = 3\n")
    (checkout.path / ".git/index.lock").touch()

    state = await known(promised(checkout, checkout.head))

    assert state.dirty == ("train.py",)
    assert (checkout.path / ".git/index.lock").exists()


async def test_no_hook_monitor_or_differ_of_the_repository_is_run(
    origin: Origin, checkout: Repository, tmp_path: Path
) -> None:
    other = origin.clone("other")
    sha = other.commit("model.py")
    other.push()
    mark = tmp_path / "it-ran"
    script = checkout.write(".git/hooks/reference-transaction", f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o755)
    checkout.git("config", "core.fsmonitor", str(script))
    checkout.git("config", "diff.external", str(script))
    mark.unlink(missing_ok=True)
    checkout.write("train.py", "x = 3\n")

    state = await known(promised(checkout, sha))
    patch = await source().patch(promised(checkout), Redactor())

    assert isinstance(patch, Known)
    assert "+x = 3" in patch.value.text
    assert state.source is not None, "a reference was changed by a fetch"
    assert not mark.exists()


async def test_hero_run_inside_a_hook_still_reads_the_contracts_checkout(
    origin: Origin, checkout: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = origin.clone("other")
    other.commit("model.py")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))

    assert (await known(promised(checkout))).directory == str(checkout.path)


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
async def test_a_change_of_which_git_was_told_to_say_nothing_is_dirty(checkout: Repository, mark: str) -> None:
    checkout.commit("train.py", "x = 1\n")
    checkout.git("update-index", mark, "train.py")

    marked = await known(promised(checkout))
    checkout.write("train.py", "x = 2\n")
    changed = await known(promised(checkout))
    (checkout.path / "train.py").unlink()
    gone = await known(promised(checkout))

    assert (marked.dirty, marked.patch_sha256) == ((), "")
    assert changed.dirty == ("train.py",)
    assert changed.patch_sha256
    assert gone.dirty == (("train.py",) if mark == "--assume-unchanged" else ()), "a sparse checkout leaves files out"


async def test_a_graft_makes_no_commit_pushed(checkout: Repository) -> None:
    pushed = checkout.head
    sha = checkout.commit("model.py")
    (checkout.path / ".git" / "info").mkdir(exist_ok=True)
    (checkout.path / ".git" / "info" / "grafts").write_text(f"{pushed} {sha}\n")

    state = await known(promised(checkout, sha))

    assert state.source is not None
    assert (state.source.pushed_to, state.source.is_ancestor) == ((), False)


async def test_a_submodules_own_changes_are_part_of_the_digest(origin: Origin, checkout: Repository) -> None:
    checkout.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", origin.url, "library")
    checkout.git("commit", "--quiet", "--message", "library")
    library = Repository(checkout.path / "library")

    clean = await known(promised(checkout))
    library.write("train.py", "x = 8\n")
    one = await known(promised(checkout))
    library.write("train.py", "x = 9\n")
    two = await known(promised(checkout))

    assert clean.dirty == ()
    assert one.dirty == ("library",)
    assert len({"", one.patch_sha256, two.patch_sha256}) == 3


async def test_many_files_are_read_in_time(checkout: Repository) -> None:
    folder = checkout.path / "new"
    folder.mkdir()
    for number in range(20_000):
        (folder / f"{number}.py").touch()

    state = await known(promised(checkout))

    assert len(state.dirty) == 20_000
    assert state.patch_sha256


async def test_of_a_huge_file_the_start_and_its_size_count(checkout: Repository) -> None:
    path = checkout.path / "weights.bin"
    with path.open("wb") as file:
        file.truncate(80 * 2**20)
    small = await known(promised(checkout))
    with path.open("r+b") as file:
        file.truncate(5 * 2**30)
    huge = await known(promised(checkout))

    assert small.patch_sha256 != huge.patch_sha256


async def test_a_pipe_in_the_work_tree_does_not_hang(checkout: Repository) -> None:
    os.mkfifo(checkout.path / "pipe.py")
    checkout.write("train.py", "x = 3\n")

    assert (await known(promised(checkout))).patch_sha256


async def test_the_written_patch_holds_no_secret_and_is_bounded(checkout: Repository) -> None:
    secret = "hunter2-is-the-password"  # a made-up one
    checkout.write("train.py", f"x = 3\napi_key = '{secret}'\n")
    checkout.write("new.py", "y = 1\n")
    checkout.write("weights.bin", b"\0" * 1000)
    checkout.write("notes.md", "harmless\n")
    small = await source().patch(promised(checkout), Redactor((secret,)))
    checkout.write("long.py", "z = 1\n" * 200_000)
    long = await source().patch(promised(checkout), Redactor((secret,)))
    state = await known(promised(checkout))

    assert isinstance(small, Known)
    assert isinstance(long, Known)
    assert "+x = 3" in small.value.text
    assert "+y = 1" in small.value.text
    assert "[binary, 1000 bytes]" in small.value.text
    assert "harmless" not in small.value.text
    assert secret not in small.value.text + long.value.text
    assert long.value.is_cut
    assert len(long.value.text) < 300_000
    assert long.value.patch_sha256 == state.patch_sha256
