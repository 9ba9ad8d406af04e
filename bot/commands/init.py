"""``hero init``: the files to begin with, every line of them explained."""

import json
from pathlib import Path

from bot.channels.slack.manifest import slack_manifest
from bot.commands.printing import say
from bot.commands.templates import PERSON, contract_template, settings_template
from bot.errors import ConfigurationError, HeroError

SETTINGS = Path("hero.toml")
# Only *.toml below runs/ is taken for a run: an example that is watched by accident would alarm people about nothing.
CONTRACT = Path("runs/example.toml.sample")
MANIFEST = Path("slack-manifest.json")


def init(directory: Path, *, is_forced: bool) -> None:
    """Write the files into a directory, and say what to do next.

    Raises:
        ConfigurationError: one of the files is there already; none was written.
        HeroError: a file cannot be written.
    """
    texts = {
        SETTINGS: settings_template(),
        CONTRACT: contract_template(),
        MANIFEST: json.dumps(slack_manifest(), indent=2) + "\n",
    }
    there = [directory / name for name in texts if (directory / name).exists()]
    if there and not is_forced:
        raise ConfigurationError(
            tuple(f"{path}: is there already; move it away, or overwrite it with --force" for path in there)
        )
    for name, text in texts.items():
        _write(directory / name, text)
    _say_next_steps(directory)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        msg = f"{error.filename or path}: cannot be written ({error.strerror}); choose a directory that you may write"
        raise HeroError(msg) from error


def _say_next_steps(directory: Path) -> None:
    where = "" if directory == Path() else f" --config {directory / SETTINGS}"
    contract = directory / CONTRACT
    say(
        f"""Written: {directory / SETTINGS}, {contract}, {directory / MANIFEST}

Next:
 1. People: in {directory / SETTINGS}, rename [people.{PERSON}] and give the accounts of whoever answers for a run.
    For one box and no account: console = true there, for whoever sits at Hero's terminal; then go on with 4.
 2. Slack: create the app at https://api.slack.com/apps from {directory / MANIFEST}, install it, /invite it into the
    channel of the runs; set HERO_SLACK__BOT_TOKEN and HERO_SLACK__APP_TOKEN, and [slack] channel.
    GitHub: set HERO_GITHUB__TOKEN and [github] repository. Either will do; without both, Hero speaks in its terminal.
 3. Iris: set [iris] controller_url, config or cluster. A run on this machine needs nothing.
 4. The run: copy {contract} to {contract.parent}/RUN_ID.toml and fill it in.
 5. hero doctor{where}
 6. hero run{where}
 7. A run that nobody has launched yet: say /hero launch RUN_ID where Hero talks. It asks the DRI, and launches on
    their `approve`."""
    )
