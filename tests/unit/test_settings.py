"""Settings: a wrong one names the file, the line, the key and the fix; a secret never stands in the file."""

from datetime import timedelta
from pathlib import Path

import pytest

from bot.errors import ConfigurationError
from bot.model.person import Person
from bot.model.value import PersonName
from bot.settings import Settings, load_settings

SECRET = "xoxb-1234567890-abcdefghijklmnop"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hero.toml"


def load(file: Path, text: str) -> Settings:
    file.write_text(text)
    return load_settings(file)


def problems(file: Path, text: str) -> str:
    with pytest.raises(ConfigurationError) as wrong:
        load(file, text)
    assert str(wrong.value) == "\n".join(wrong.value.problems)
    return str(wrong.value)


def test_without_any_file_the_defaults_hold() -> None:
    found = load_settings(None)

    assert found.bot.cadence == timedelta(minutes=15)
    assert found.secrets == ()


def test_paths_are_relative_to_the_file_and_people_become_persons(file: Path) -> None:
    found = load(file, '[bot]\ncadence = "10m"\n[people.ada]\nslack = "U0ADA"\nconsole = true\n')

    assert found.bot.runs == file.parent / "runs"
    assert found.bot.cadence == timedelta(minutes=10)
    assert found.persons == (Person(name=PersonName("ada"), slack="U0ADA", console=True),)


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ('[bot]\ncadence = "soon"\n', 2, "[bot] cadence: 'soon' is no duration; write it as 15m"),
        (
            '[bot]\n\n# why\ncadense = "15m"\n',
            4,
            '[bot] cadense: is no setting; did you mean "cadence"? docs/settings.md',
        ),
        (
            '[bot] # Hero\nhttp = "here"\n',
            2,
            '[bot] http: is not of the right form; write it as http = "127.0.0.1:8080"',
        ),
        ('[bot]\ntimezone = "Mars"\n', 2, "[bot] timezone: 'Mars' is no time zone; write it as America/Los_Angeles"),
        ('[bot]\njitter = "0s"\ncadence = "0s"\n', 3, "[bot] cadence: must be longer than zero; write it as 30s"),
        ("[bot]\npoll = -5\n", 2, "[bot] poll: must be longer than zero"),
        ("[github]\nthreads = 0\n", 2, "[github] threads: must be more than 0"),
        ('[github]\nthreads = "four"\n', 2, "[github] threads: must be a whole number; write it without quotes"),
        ("[github]\nrepository = 7\n", 2, '[github] repository: must be a text; write it in "quotes"'),
        ("[bot]\nconsole = true\n", 2, "[bot] console: is no setting; it stands above all tables"),
        ("[slack]\nrepository = 'o/n'\n", 2, "[slack] repository: is no setting; it stands in [github]"),
        ('[slack]\nchannel = "#runs"\n', 2, '[slack] channel: is not of the right form; write it as channel = "C01'),
        ('[slack]\nmode = "rtm"\n', 2, '[slack] mode: must be "socket" or "http"'),
        ('[people.ada]\nslack = "U0ADA"\n[people.bob]\nslack = "bob"\n', 4, "[people.bob] slack:"),
        ('[people]\nada = {slack = "U0ADA"}\nbob = {slack = "bob"}\n', 3, "[people.bob] slack:"),
        ('[people.ada]\nemail = "ada"\n', 2, 'email: is not of the right form; write it as email = "ada@example.org"'),
        ('[github]\nrepository = "hero"\n[slack]\nchannel = "C0"\n', 2, "[github] repository:"),
        ("nonsense = 1\n", 1, "nonsense: is no setting"),
        ('console = "maybe"\n', 1, "console: must be true or false"),
        ("slack = 5\n", 1, "[slack]:"),
        ("[bot]\ncadence = 15m\n", 2, "cadence: this line is no TOML"),
        ('[slack]\nbot_token = "' + SECRET + '"\n', 2, "[slack] bot_token is a secret and must not stand in this file"),
        ('[slack]\nbot_token_file = "nowhere"\n', 2, "[slack] bot_token_file nowhere: cannot be read"),
    ],
)
def test_what_is_wrong_names_the_line_the_key_and_the_fix(file: Path, text: str, where: int, says: str) -> None:
    said = problems(file, text)

    assert said.startswith(f"{file}:{where}: ")
    assert says in said
    assert SECRET not in said


@pytest.mark.parametrize(
    ("ada", "bob", "says"),
    [
        ("console = true", "console = true", "[people.ada], [people.bob] have `console = true`"),
        ('slack = "U0ADA"', 'slack = "U0ADA"', "[people.ada], [people.bob] have the same slack"),
        ('github = "Ada"', 'github = "ada"', "[people.ada], [people.bob] have the same github"),
    ],
)
def test_an_account_of_two_people_is_refused_since_nothing_said_from_it_could_count(
    file: Path, ada: str, bob: str, says: str
) -> None:
    said = problems(file, f"[people.ada]\n{ada}\n[people.bob]\n{bob}\n[people.eve]\ndiscord = '112233445566778899'\n")

    assert said.startswith(f"{file}:4: {says}, so nothing said from it counts")


def test_one_person_at_the_terminal_among_several_is_as_it_should_be(file: Path) -> None:
    found = load(file, "[people.ada]\nconsole = true\n[people.bob]\nconsole = false\n[people.eve]\n")

    assert [person.name for person in found.persons if person.console] == ["ada"]


def test_all_that_is_wrong_is_said_at_once(file: Path) -> None:
    text = (
        'github = 5\n[bot]\ncadence = "soon"\nhttp = "here"\npoll = "0s"\n'
        f'[slack]\nmode = "rtm"\nbot_token = "{SECRET}"\n[iris]\ntoken_file = "nowhere"\n'
    )

    said = problems(file, text).splitlines()

    assert sorted(int(line.split(":")[1]) for line in said) == [1, 3, 4, 5, 7, 8, 10]


def test_all_that_slack_lacks_is_said_at_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERO_SLACK__BOT_TOKEN", SECRET)

    said = problems(file, "[slack]\n").splitlines()

    assert [line.split(": ")[2].split(" is missing")[0] for line in said] == ["channel", "app_token"]


def test_a_table_in_one_variable_is_refused_with_its_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERO_SLACK", "{C0")

    assert problems(file, "").startswith("environment variable HERO_SLACK: a whole table cannot be set at once")


def test_a_missing_key_names_its_table_and_how_to_set_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERO_SLACK__BOT_TOKEN", SECRET)

    said = problems(file, '[bot]\ncadence = "15m"\n\n[slack]\nchannel = "C0HERO"\n')

    assert said.startswith(f"{file}:4: [slack]: app_token is missing")
    assert "set HERO_SLACK__APP_TOKEN or app_token_file" in said
    assert SECRET not in said


def test_a_missing_or_unreadable_file_says_what_writes_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such file; `hero init` writes one"):
        load_settings(tmp_path / "nowhere.toml")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_settings(tmp_path)


# The environment


def test_the_environment_wins_over_the_file_key_by_key(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERO_BOT__CADENCE", "5m")
    monkeypatch.setenv("HERO_PEOPLE__ADA__SLACK", "U0NEW")

    found = load(file, '[bot]\ncadence = "10m"\ntimezone = "Europe/Berlin"\n[people.ada]\nslack = "U0ADA"\n')

    assert found.bot.cadence == timedelta(minutes=5)
    assert found.bot.timezone == "Europe/Berlin"
    assert [p.slack for p in found.persons if p.name == "ada"] == ["U0NEW"]


@pytest.mark.parametrize("name", ["HERO_BOT__CADENCE", "HERO_BOT__CADENSE"])
def test_a_wrong_variable_is_named_instead_of_the_file(file: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "soon")

    assert problems(file, '[bot]\ncadence = "10m"\n').startswith(f"environment variable {name}: [bot] ")


def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a compose file leaves behind that passes on what is not set."""
    monkeypatch.setenv("HERO_SLACK__BOT_TOKEN", "")
    monkeypatch.setenv("HERO_BOT__CADENCE", "")

    found = load_settings(None)

    assert found.slack.bot_token is None
    assert found.bot.cadence == timedelta(minutes=15)


# Secrets


def test_a_secret_comes_from_a_file_beside_the_settings(file: Path) -> None:
    (file.parent / "token").write_text(f"{SECRET}\n")

    found = load(file, '[github]\ntoken_file = "token"\nrepository = "o/n"\n')

    assert found.github.token is not None
    assert found.github.token.get_secret_value() == SECRET
    assert found.secrets == (SECRET,)
    assert SECRET not in repr(found)


def test_a_secrets_file_may_be_named_by_the_environment(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file.parent / "token").write_text(SECRET)
    monkeypatch.setenv("HERO_GITHUB__TOKEN_FILE", str(file.parent / "token"))

    found = load(file, '[github]\nrepository = "o/n"\n')

    assert found.secrets == (SECRET,)


def test_an_empty_secrets_file_is_no_secret(file: Path) -> None:
    (file.parent / "token").write_text("\n")

    said = problems(file, '[github]\ntoken_file = "token"\nrepository = "o/n"\n')

    assert said.startswith(f"{file}:2: [github] token_file token: is empty")


def test_a_secrets_file_of_a_table_that_is_none_does_not_break_the_reading(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file.parent / "token").write_text(SECRET)
    monkeypatch.setenv("HERO_GITHUB__TOKEN_FILE", str(file.parent / "token"))

    assert "[github]" in problems(file, "github = 5\n")


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("slack", "bot_token"),
        ("slack", "app_token"),
        ("slack", "signing_secret"),
        ("github", "token"),
        ("iris", "token"),
        ("iris", "controller_url"),
    ],
)
def test_every_secret_is_refused_in_the_file_whatever_else_is_wrong(file: Path, section: str, key: str) -> None:
    text = f'[{section}]\n{key} = "{SECRET}"\nnonsense = "{SECRET}"\n'

    said = problems(file, text)

    assert SECRET not in said
    assert ("must not stand in this file" in said) is (key != "controller_url")


def test_finelog_is_looked_for_behind_the_controller_unless_it_is_named() -> None:
    iris = {"controller_url": "http://iris:10000/", "token": "the-controllers"}

    behind = Settings.model_validate({"iris": iris}).finelog_in_use
    named = Settings.model_validate({"iris": iris, "finelog": {"url": "http://finelog:1"}}).finelog_in_use

    assert behind.url == "http://iris:10000/proxy/system.log-server"
    assert behind.token is not None
    assert behind.token.get_secret_value() == "the-controllers"
    assert (named.url, named.token) == ("http://finelog:1", None), "the controller's token is for the controller alone"
    assert Settings().finelog_in_use.url is None
