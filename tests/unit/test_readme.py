"""What README and docs say can be typed exists, their links lead somewhere, and their examples can be loaded."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from bot.actions.iris_command import prepare_submission
from bot.actions.ports import Submission
from bot.cli import app
from bot.model.contract import Contract
from bot.model.value import RunId
from bot.run_contracts import contracts_of
from bot.settings import load_settings
from bot.store.tables import metadata
from handlers.command import COMMANDS

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = tuple(sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]))
SETUP = ("uv run hero demo", "uv run --group test pytest")

_FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)`(?P<code>[^`\n]+)`(?!`)")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_TYPED = re.compile(r"(?:uv run )?hero(?: (?P<words>.+))?")
_IN_CONTAINER = re.compile(r"docker run .* hero (?P<words>[a-z].*)")


def blocks(text: str, *languages: str) -> list[str]:
    return [found["body"] for found in _FENCE.finditer(text) if found["language"] in languages]


def typed_commands(page: Path) -> list[str]:
    """Return every `hero …` that a page tells to type, in its blocks and in its sentences."""
    text = page.read_text(encoding="utf-8")
    lines = [line.partition("#")[0].strip() for block in blocks(text, "", "sh") for line in block.splitlines()]
    lines += [found["code"].strip() for found in _INLINE.finditer(_FENCE.sub("", text))]
    found = [match["words"] for line in lines if (match := _TYPED.fullmatch(line) or _IN_CONTAINER.fullmatch(line))]
    return [words for words in found if words and words[0] != "…"]


def problem_with(words: list[str]) -> str | None:
    """Return why the program would refuse these words; None when it knows all of them."""
    program = typer.main.get_command(app)
    assert isinstance(program, TyperGroup)
    options = {option for parameter in program.params for option in parameter.opts}
    name = next((word for word in words if not word.startswith("-")), None)
    if name is not None:
        if name not in program.commands:
            return f"there is no command {name}"
        command = program.commands[name]
        if isinstance(command, TyperGroup):
            below = words[words.index(name) + 1] if words[-1] != name else ""
            if below not in command.commands:
                return f"there is no command {name} {below}"
            command = command.commands[below]
        options |= {option for parameter in command.params for option in parameter.opts}
    unknown = [word for word in words if word.startswith("-") and word != "-" and word not in options]
    return f"there is no option {unknown[0]}" if unknown else None


def slugs(page: Path) -> set[str]:
    """Return the anchors of a page's headings as GitHub makes them."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_is_shown_exists(page: Path) -> None:
    problems = {words: problem for words in typed_commands(page) if (problem := problem_with(shlex.split(words)))}

    assert not problems


def test_the_readme_shows_every_command_of_the_program() -> None:
    program = typer.main.get_command(app)
    assert isinstance(program, TyperGroup)

    assert {shlex.split(words)[0] for words in typed_commands(README)} >= set(program.commands)


def test_an_invented_command_or_option_would_be_noticed() -> None:
    assert problem_with(["fly"]) == "there is no command fly"
    assert problem_with(["demo", "--auto", "--fast"]) == "there is no option --fast"
    assert problem_with(["status", "hero-8b", "--json"]) is None


def test_set_up_and_tests_are_two_commands() -> None:
    lines = [line for block in blocks(README.read_text(encoding="utf-8"), "") for line in block.splitlines()]

    assert tuple(line for line in lines if line.startswith("uv ")) == SETUP


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    broken = []
    for found in _LINK.finditer(text):
        target, _, anchor = found["target"].partition("#")
        if "://" in target:
            continue
        there = (page.parent / target).resolve() if target else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in slugs(there)):
            broken.append(found["target"])

    assert not broken


def test_the_chat_commands_of_the_readme_are_those_there_are() -> None:
    text = README.read_text(encoding="utf-8")
    section = text[text.index("## Talk to it") : text.index("**To decide a request**")]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]

    assert {code.split()[0] for row in rows for code in _INLINE.findall(row)} == set(COMMANDS)


def test_the_readmes_configuration_and_contract_can_be_loaded(tmp_path: Path) -> None:
    examples = blocks(README.read_text(encoding="utf-8"), "toml")
    for example in examples:
        path = tmp_path / example.splitlines()[0].removeprefix("# ")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(example, encoding="utf-8")

    settings = load_settings(tmp_path / "hero.toml")
    contracts = contracts_of(settings)

    assert contracts.run_ids() == ("hero-8b",)
    contract = contracts.load(contracts.run_ids()[0])
    assert isinstance(contract, Contract), contract
    submission = prepare_submission(contract, default_name="unnamed")
    assert isinstance(submission, Submission), submission
    assert submission.job_id == contract.orchestrator.job_id


def test_the_readmes_one_box_can_be_loaded(tmp_path: Path) -> None:
    for example in blocks(README.read_text(encoding="utf-8"), "toml"):
        path = tmp_path / example.splitlines()[0].removeprefix("# ")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(example, encoding="utf-8")

    settings = load_settings(tmp_path / "box" / "hero.toml")
    contract = contracts_of(settings).load(RunId("toy"))

    assert isinstance(contract, Contract), contract
    assert contract.checkout == str(tmp_path / "box")
    assert settings.people[contract.dri].console


def test_the_layers_that_are_drawn_are_those_that_the_gate_holds() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    held = next(each["layers"] for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == "layers")
    drawn = blocks((ROOT / "docs/architecture.md").read_text(encoding="utf-8"), "text")

    assert "\n".join(held) + "\n" in drawn


def test_the_tables_that_are_listed_are_those_of_the_database() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = text[text.index("## What is stored") : text.index("## Deadlines and pools")]

    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(metadata.tables)
