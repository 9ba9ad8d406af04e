"""The files of ``hero init`` and the pages of the reference say what the code says."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.channels.slack.manifest import slack_manifest
from bot.commands.init import init
from bot.commands.pages import contract_page, settings_page
from bot.commands.reference import contract_tables, settings_tables
from bot.errors import ConfigurationError
from bot.model.contract import Contract
from bot.model.durations import parse_duration, write_duration
from bot.run_contracts import contracts_of
from bot.settings import Settings, load_settings

DOCS = Path(__file__).parents[3] / "docs"


def uncommented(text: str) -> str:
    """The file after somebody took away the # before every setting."""
    return re.sub(r"(?m)^#(?=[\w\[])", "", text)


def differences(model: Any, other: Any) -> set[str]:
    mine, others = model.model_dump(), other.model_dump()
    return {
        f"{section}.{key}"
        for section, inside in mine.items()
        if isinstance(inside, dict)
        for key, value in inside.items()
        if value != (others[section] or {}).get(key)
    }


@pytest.fixture
def written(tmp_path: Path) -> Path:
    init(tmp_path, is_forced=False)
    return tmp_path


@pytest.mark.parametrize(("page", "generated"), [("settings.md", settings_page), ("contract.md", contract_page)])
def test_the_committed_page_is_the_generated_one(page: str, generated: Any) -> None:
    assert (DOCS / page).read_text(encoding="utf-8") == generated(), "write it with python -m bot.commands.pages"


def test_every_setting_and_every_field_of_a_contract_says_what_it_means() -> None:
    tables = (*settings_tables(), *contract_tables())

    silent = [f"[{table.name}] {entry.key}" for table in tables for entry in table.entries if not entry.meaning]

    assert silent == []
    assert sum(len(table.entries) for table in tables) > 100


def test_the_written_settings_load_as_they_stand_and_are_the_defaults(written: Path) -> None:
    settings = load_settings(written / "hero.toml")

    assert differences(settings, Settings()) == {"bot.database", "bot.runs", "history.directory", "people.alice"}
    assert settings.bot.database == f"sqlite:///{written}/hero.db"
    assert settings.bot.runs == written / "runs"


def test_every_line_of_the_written_settings_may_be_taken_into_use(written: Path) -> None:
    file = written / "hero.toml"
    # A token and an app are two ways to one account, and exclude each other.
    file.write_text(re.sub(r"(?m)^app_(id|private_key_file|installation) .*\n", "", uncommented(file.read_text())))
    (written / "secrets").mkdir()
    for name in re.findall(r'"(secrets/[\w.-]+)"', file.read_text()):
        (written / name).write_text("a-secret-of-the-test")

    settings = load_settings(file)

    meant_as_examples = {
        *(f"slack.{key}{end}" for key in ("bot_token", "app_token", "signing_secret") for end in ("", "_file")),
        *("slack.channel", "github.token", "github.token_file", "github.repository", "heartbeat.url"),
        "github.source_repository",
        "bot.public_url",
        *("iris.controller_url", "iris.config", "iris.cluster", "iris.token", "iris.token_file"),
        *("finelog.url", "finelog.token", "finelog.token_file"),
        *("wandb.entity", "wandb.project", "wandb.api_key", "wandb.api_key_file"),
        *(f"kubernetes.{key}" for key in ("api_url", "token", "token_file", "ca_file", "kubeconfig", "context")),
        "kubernetes.namespace",
        *(f"discord.{key}" for key in ("token", "token_file", "guild", "channel")),
        *(f"github.{key}" for key in ("webhook_secret", "webhook_secret_file", "issue_template")),
        *(
            f"email.{key}"
            for key in ("host", "ca_file", "username", "password", "password_file", "sender", "to", "kinds")
        ),
        *(f"pager.{key}{end}" for key in ("routing_key", "url", "authorization") for end in ("", "_file")),
        "pager.headers",
    }
    ours = {"bot.database", "bot.runs", "history.directory", "people.alice"}
    ours |= {f"escalation.{key}" for key in ("critical", "warning", "per_day")}  # the table itself takes it into use
    assert differences(settings, Settings()) - ours == meant_as_examples
    assert all(value is not None for value in settings.people["alice"].model_dump().values())  # type: ignore[index]  # PersonName


def test_no_secret_can_be_written_into_the_settings_by_taking_a_line_into_use(written: Path) -> None:
    text = uncommented((written / "hero.toml").read_text())

    assert not re.search(r"(?m)^(bot_token|app_token|signing_secret|token|api_key)\s*=", text)


def test_the_example_contract_is_watched_only_once_it_is_renamed_and_is_valid_then(written: Path) -> None:
    contracts = contracts_of(load_settings(written / "hero.toml"))
    before = contracts.run_ids()

    (written / "runs" / "example.toml.sample").rename(written / "runs" / "my-run.toml")

    assert before == ()
    (run_id,) = contracts.run_ids()
    contract = contracts.load(run_id)
    assert isinstance(contract, Contract), contract
    assert contract.run_id == "my-run"


@pytest.mark.parametrize("kind", ["iris", "local"])
def test_every_line_of_the_example_contract_may_be_taken_into_use(written: Path, kind: str) -> None:
    sample = uncommented((written / "runs" / "example.toml.sample").read_text()).replace("RUN_ID", "my-run")
    head, *tables = re.split(r"(?m)^(?=\[)", sample)
    chosen = [table for table in tables if "[orchestrator]" not in table or f'kind = "{kind}"' in table]
    (written / "runs" / "my-run.toml").write_text(head + "".join(chosen))

    contracts = contracts_of(load_settings(written / "hero.toml"))
    contract = contracts.load(contracts.run_ids()[0])

    assert isinstance(contract, Contract), contract
    assert contract.orchestrator.kind == kind
    assert "progress.stalled" in contract.thresholds


def test_init_refuses_to_overwrite_and_then_writes_nothing_at_all(tmp_path: Path) -> None:
    (tmp_path / "slack-manifest.json").write_text("mine")

    with pytest.raises(ConfigurationError, match=r"slack-manifest\.json: is there already.*--force"):
        init(tmp_path, is_forced=False)

    assert [path.name for path in tmp_path.iterdir()] == ["slack-manifest.json"]
    init(tmp_path, is_forced=True)
    assert json.loads((tmp_path / "slack-manifest.json").read_text()) == slack_manifest()


@given(st.integers(min_value=0, max_value=10**12))
def test_a_written_duration_is_read_back_as_it_was(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)

    assert parse_duration(write_duration(duration)) == duration
