"""Real checkouts with a real remote: what is on main just now, and what downstream pins a run."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.clock import SystemClock
from bot.model.contract import Contract
from bot.model.reading import Gap, Known, Unknown
from bot.model.rehearsal import MainState
from bot.settings import GitSettings
from bot.sources.git.main_state import FRESH, MainReader
from bot.sources.git.pins import MOST_PINS, PinSearch, Searched, Word
from bot.sources.git.source import GitSource
from tests.fakes.clock import FakeClock
from tests.fakes.repositories import Origin, Repository
from tests.fakes.snapshots import contract

SCRIPT = "launch/trigger_hero.sh"
OLD = Word("hero-a", unless_within=("hero-a-v2",))


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path)


@pytest.fixture
def checkout(origin: Origin) -> Repository:
    made = origin.clone()
    made.commit(SCRIPT, "RUN=hero-a-v2\n")
    made.push()
    return made


def settings(**fields: Any) -> GitSettings:
    return GitSettings(**{"deadline": timedelta(seconds=60), **fields})


def reader(clock: Any = None, **fields: Any) -> MainReader:
    clock = clock or SystemClock()
    return MainReader(settings(**fields), clock, GitSource(settings(**fields), clock))


def promised(checkout: Repository, sha: str | None = None, /, **fields: Any) -> Contract:
    given = {"command": f"bash {SCRIPT} --go", "checkout": str(checkout.path), "source_sha": sha or checkout.head}
    return contract(**(given | fields))


async def known(contract: Contract, file: Path = Path("/nowhere/hero.toml"), asked: Any = None) -> MainState:
    found = await (asked or reader()).main(contract, file)
    assert isinstance(found, Known), found
    return found.value


async def test_a_pristine_checkout_at_fetched_main_is_told_whole(checkout: Repository) -> None:
    state = await known(promised(checkout))

    assert state.head == state.main_sha == state.source_sha == checkout.head
    assert (state.main, state.is_on_main, state.dirty) == ("origin/main", True, ())
    assert (state.contract_path, state.contract_on_main) == (SCRIPT, True)


async def test_main_is_fetched_anew_and_a_fetch_of_just_now_is_enough(origin: Origin, checkout: Repository) -> None:
    clock = FakeClock()
    source = GitSource(settings(), clock)
    asked = MainReader(settings(), clock, source)
    before = promised(checkout)
    await source.code(before)
    other = origin.clone("other")
    other.commit("train.py", "x = 2\n")
    other.push()

    just_now = await known(before, asked=asked)
    clock.advance(FRESH)
    later = await known(before, asked=asked)

    assert just_now.main_sha == checkout.head
    assert later.main_sha == other.head
    assert (later.head, later.is_on_main) == (checkout.head, True)
    assert later.fetched_at == clock.now()


async def test_a_commit_that_was_never_pushed_is_not_on_main(checkout: Repository) -> None:
    sha = checkout.commit("train.py", "x = 5\n")

    own = await known(promised(checkout, sha))
    none = await known(promised(checkout, "0" * 40))

    assert (own.source_sha, own.is_on_main) == (sha, False)
    assert (none.source_sha, none.is_on_main) == (None, None)


async def test_what_counts_of_a_dirty_checkout_is_named_and_harmless_files_are_not(checkout: Repository) -> None:
    checkout.write("train.py", "x = 9\n")
    checkout.write("docs/notes.md", "x")
    checkout.write("new.py")

    state = await known(promised(checkout))

    assert state.dirty == ("new.py", "train.py")


async def test_the_launch_values_are_held_against_main_as_they_lie_here_whatever_the_index_says(
    checkout: Repository,
) -> None:
    checkout.git("update-index", "--assume-unchanged", SCRIPT)
    checkout.write(SCRIPT, "RUN=something-else\n")

    state = await known(promised(checkout))

    assert (state.contract_path, state.contract_on_main) == (SCRIPT, False)


async def test_the_contract_counts_too_where_it_lies_in_the_checkout_and_the_one_that_is_astray_is_named(
    checkout: Repository,
) -> None:
    file = checkout.write("runs/hero-next.toml", "dri = 'ada'\n")

    new = await known(promised(checkout), file)
    checkout.git("add", "runs")
    checkout.git("commit", "--quiet", "--message", "record")
    checkout.push()
    landed = await known(promised(checkout), file)
    alone = await known(promised(checkout, command="python -m train"), file)

    assert (new.contract_path, new.contract_on_main) == ("runs/hero-next.toml", False)
    assert (landed.contract_path, landed.contract_on_main) == (f"runs/hero-next.toml, {SCRIPT}", True)
    assert (alone.contract_path, alone.contract_on_main) == ("runs/hero-next.toml", True)


async def test_where_no_file_of_the_record_is_below_the_checkout_nothing_is_said_of_it(
    checkout: Repository, tmp_path: Path
) -> None:
    outside = tmp_path / "launch.sh"
    outside.write_text("x")
    checkout.write(".gitignore", ".venv/\n")
    program = checkout.write(".venv/bin/python", "x")
    checkout.write("--flag.py")
    command = [str(program), "-m", "train", str(outside), "--flag.py", "missing.py", "train", f"--data={SCRIPT}"]

    state = await known(promised(checkout, command=command), outside)

    assert (state.contract_path, state.contract_on_main) == ("", None)


async def test_a_script_is_found_from_the_directory_that_the_command_is_run_in(checkout: Repository) -> None:
    below = promised(checkout, command="./trigger_hero.sh", checkout=str(checkout.path / "launch"))

    state = await known(below)

    assert (state.contract_path, state.contract_on_main) == (SCRIPT, True)


async def test_a_remote_that_cannot_be_fetched_leaves_main_unknown_though_an_old_copy_is_here(
    origin: Origin, checkout: Repository
) -> None:
    origin.path.rename(origin.path.with_name("gone.git"))

    found = await reader().main(promised(checkout), Path("x"))

    assert isinstance(found, Unknown)
    assert found.reason is Gap.UNREACHABLE
    assert "origin/main could not be fetched" in found.detail


@pytest.mark.parametrize(
    ("fields", "settings_given", "reason"),
    [
        ({"code": {"branch": "nowhere"}}, {}, Gap.UNREACHABLE),
        ({"checkout": "/nowhere"}, {}, Gap.REFUSED),
        ({}, {"fetch": False}, Gap.NOT_CONFIGURED),
        ({}, {"program": "/nowhere/git"}, Gap.REFUSED),
        ({}, {"deadline": timedelta(milliseconds=1)}, Gap.TIMEOUT),
    ],
)
async def test_whatever_is_in_the_way_is_unknown(
    checkout: Repository, fields: dict[str, Any], settings_given: dict[str, Any], reason: Gap
) -> None:
    found = await reader(**settings_given).main(promised(checkout, **fields), Path("x"))

    assert isinstance(found, Unknown)
    assert found.reason is reason


# Downstream


@pytest.fixture
def dashboards(origin: Origin) -> Repository:
    made = origin.clone("dashboards")
    made.write("panels/loss.json", '{"run": "hero-a"}\n{"again": "hero-a"}\n')
    made.write("panels/next.json", '{"run": "hero-a-v2", "key": "train_loss"}\n')
    made.write("odd name\n.yaml", "a: 1\nkey: train/loss\n")
    made.write("blob.bin", b"\0hero-a")
    made.commit("readme.md", "nothing here\n")
    made.write("panels/new.json", '{"run": "hero-a"}\n')
    return made


async def searched(directory: Path, *words: Word) -> Searched:
    found = await PinSearch(settings(), SystemClock()).search(str(directory), words)
    assert isinstance(found, Known), found
    return found.value


async def test_committed_lines_that_pin_the_run_or_a_key_are_found_with_their_place(dashboards: Repository) -> None:
    dashboards.git("remote", "set-url", "origin", "https://ada:t0ken@github.com/acme/dash.git")
    for name in ("grep.column", "grep.fullName", "grep.extendedRegexp", "color.ui"):
        dashboards.git("config", name, "always" if name == "color.ui" else "true")

    found = await searched(dashboards.path, OLD, Word("train/loss"))

    assert found.place == f"acme/dash at {dashboards.head[:12]}"
    assert [(pin.where, pin.what) for pin in found.pins] == [
        ("acme/dash: odd name\n.yaml:2", "train/loss"),
        ("acme/dash: panels/loss.json:1", "hero-a"),
        ("acme/dash: panels/next.json:1", "train/loss"),
    ]


async def test_nothing_found_is_an_answer_and_a_place_below_the_top_is_searched_alone(dashboards: Repository) -> None:
    nothing = await searched(dashboards.path, Word("hero-z"))
    below = await searched(dashboards.path / "panels", Word("train/loss"))

    assert nothing.pins == ()
    assert nothing.place == f"dashboards at {dashboards.head[:12]}"
    assert [pin.where for pin in below.pins] == ["dashboards: panels/next.json:1"]


async def test_a_word_that_looks_like_an_option_or_a_pattern_is_searched_as_it_stands(dashboards: Repository) -> None:
    dashboards.commit("odd.txt", "--open-files-in-pager=x\n.*\n")

    found = await searched(dashboards.path, Word("--open-files-in-pager=x"), Word(".*"))

    assert [pin.what for pin in found.pins] == ["--open-files-in-pager=x", ".*"]


async def test_a_place_that_cannot_be_searched_is_unknown_and_never_without_pins(
    dashboards: Repository, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    (dashboards.path / "untracked").mkdir()
    empty = tmp_path / "empty"
    empty.mkdir()
    Repository(empty).git("init", "--quiet")
    late = PinSearch(settings(deadline=timedelta(milliseconds=1)), SystemClock())
    search = PinSearch(settings(), SystemClock())

    for place in (tmp_path / "plain", tmp_path / "nowhere", dashboards.path / "untracked", empty):
        found = await search.search(str(place), (OLD,))
        assert isinstance(found, Unknown), place
    found = await late.search(str(dashboards.path), (OLD,))
    assert isinstance(found, Unknown)
    assert found.reason is Gap.TIMEOUT


async def test_more_pins_than_anybody_reads_are_refused_with_what_to_do(dashboards: Repository) -> None:
    for number in range(MOST_PINS):
        dashboards.write(f"many/{number}.txt", "hero-a\n")
    dashboards.commit("one-more.txt", "hero-a\n")

    found = await PinSearch(settings(), SystemClock()).search(str(dashboards.path), (OLD,))

    assert isinstance(found, Unknown)
    assert found.reason is Gap.UNRECOGNISED
    assert "[trial] inventory" in found.detail
