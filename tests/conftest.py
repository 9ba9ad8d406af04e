"""What every test has: a quiet environment, a clock of its own, golden files, and a repeatable Hypothesis in CI."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.fakes.clock import FakeClock

pytest_plugins = ["tests.fakes.iris_cluster", "tests.fakes.s3"]

GOLDEN = Path(__file__).parent / "golden"

# Variables through which the machine, or the account of whoever runs the tests, would reach into Hero, git or an SDK.
FOREIGN = (
    "ALL_PROXY", "AWS_", "COLUMNS", "DISCORD_", "FORCE_COLOR", "FTP_PROXY", "GH_", "GITHUB_", "GIT_", "GOOGLE_",
    "HERO_", "HTTPS_PROXY", "HTTP_PROXY", "IRIS_", "LINES", "NO_COLOR", "NO_PROXY", "PYTHONDONTWRITEBYTECODE",
    "SLACK_", "UVICORN_", "WANDB_", "XDG_",
)  # fmt: skip

# A time limit per example would measure the machine and not the code.
hypothesis.settings.register_profile("dev", deadline=None)
hypothesis.settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden/ anew; review the diff as prose")


@pytest.fixture(scope="session", autouse=True)
def quiet_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No settings, accounts, proxies or home of the machine, for the tests and for the processes they start."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.upper().startswith(FOREIGN):
                patch.delenv(name)
        patch.setenv("NO_PROXY", "127.0.0.1,localhost,::1")
        patch.setenv("no_proxy", "127.0.0.1,localhost,::1")
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        yield


@pytest.fixture
def fake_clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with tests/golden/NAME, or write it there under --update-golden."""
    update = bool(request.config.getoption("--update-golden"))

    def compare(name: str, text: str) -> None:
        file = GOLDEN / name
        if update:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="")
            return
        if not file.exists():
            pytest.fail(
                f"tests/golden/{name} is missing: write it with pytest --update-golden, and read it", pytrace=False
            )
        with file.open(encoding="utf-8", newline="") as stored:
            expected = stored.read()
        assert text == expected, f"tests/golden/{name} differs; if that is meant: pytest --update-golden"

    return compare
