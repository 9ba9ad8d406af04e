"""The program ``hero``: from arguments to one call, and from errors to exit codes. It decides nothing.

Each command lives in ``bot/commands/``. It is imported when it is called: Slack, GitHub, the database and Iris take a
second to import, and ``hero --help`` and ``hero classify`` need none of them.
"""
# ruff: noqa: PLC0415 - start-up time, as said above

import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from bot.cli_trial import WITH_CONFIG as TRIAL_WITH_CONFIG
from bot.cli_trial import trial
from bot.commands.ending import CONFIG_HELP, Config, Json, end
from bot.commands.exits import Exit

app = typer.Typer(
    name="hero",
    help="Watches training runs, tells the people who own them, and changes nothing without the DRI's yes.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    # A traceback with the values of local variables would print secrets.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_WITH_CONFIG = (
    *("run", "status", "runs", "log", "audit", "catchup", "plot", "doctor", "explain", "plan"),
    *("export-state", "import-state"),
)


def main() -> NoReturn:
    """Run the program, and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # a real stream, whatever its encoding
    app(prog_name="hero")
    raise SystemExit(Exit.DONE)


def _say_version(is_asked: bool) -> None:  # noqa: FBT001 - Typer calls it with the flag
    if not is_asked:
        return
    try:
        version = metadata.version("hero-bot")
    except metadata.PackageNotFoundError:
        version = "from a checkout"
    typer.echo(f"hero {version}")
    raise typer.Exit


@app.callback()
def program(
    context: typer.Context,
    config: Annotated[Path | None, typer.Option("--config", envvar="HERO_CONFIG", help=CONFIG_HELP)] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,  # noqa: FBT002 - a flag
    _version: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_say_version)
    ] = False,
) -> None:
    """Take what is said before the command."""
    context.obj = debug
    # The same option may stand after the command; what is said there counts before this.
    given = {"config": config}
    below = dict.fromkeys(TRIAL_WITH_CONFIG, given)
    context.default_map = {**dict.fromkeys(_WITH_CONFIG, given), "trial": below}


@app.command()
def run(context: typer.Context, config: Config = None) -> None:
    """Run the bot until SIGTERM."""

    def call() -> int:
        from bot.commands.run import run

        return run(config)

    end(context, call)


@app.command()
def demo(
    context: typer.Context,
    auto: Annotated[bool, typer.Option("--auto", help="Answer as the DRI would.")] = False,  # noqa: FBT002 - a flag
    deny: Annotated[bool, typer.Option("--deny", help="Answer no instead.")] = False,  # noqa: FBT002 - a flag
    directory: Annotated[Path | None, typer.Option("--directory", help="Keep the demo's files here.")] = None,
) -> None:
    """See a run fail, be asked, and be relaunched: on this machine, without any account, in under 90 seconds."""

    def call() -> int:
        from bot.commands.demo import demo

        return demo(is_auto=auto, is_denied=deny, directory=directory)

    end(context, call)


@app.command()
def init(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(help="Where to write.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Write a commented hero.toml, an example contract and a Slack app manifest."""

    def call() -> None:
        from bot.commands.init import init

        init(directory, is_forced=force)

    end(context, call)


@app.command()
def doctor(context: typer.Context, config: Config = None, as_json: Json = False) -> None:  # noqa: FBT002 - a flag
    """Check every connection that is configured, and say the fix of what is wrong."""

    def call() -> int:
        from bot.commands.doctor import show_diagnosis

        return show_diagnosis(config, as_json=as_json)

    end(context, call)


@app.command()
def status(
    context: typer.Context,
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="One run; all when not given.")] = None,
    config: Config = None,
    as_json: Json = False,  # noqa: FBT002 - a flag
) -> None:
    """Show how the runs stand; works while the bot runs and when it does not."""

    def call() -> None:
        from bot.commands.status import show_status

        show_status(config, run, as_json=as_json)

    end(context, call)


@app.command()
def runs(context: typer.Context, config: Config = None, as_json: Json = False) -> None:  # noqa: FBT002 - a flag
    """List the runs."""

    def call() -> None:
        from bot.commands.status import show_runs

        show_runs(config, as_json=as_json)

    end(context, call)


@app.command()
def log(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN")],
    config: Config = None,
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many of the newest lines of the audit log.")] = 200,
    audit: Annotated[bool, typer.Option("--audit", help="The audit log; what is shown without other options.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Compute the hashes of the record anew.")] = False,
    head: Annotated[
        str | None, typer.Option("--head", metavar="HASH", help="A head that the record must hold.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The record, as the run's issue shows it.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="The record, an entry a line; --audit: the audit log.")
    ] = False,
) -> None:
    """Show the audit log of a run, who did what and on what grounds; or its record, and whether that is whole."""

    def call() -> int | None:
        from bot.commands.log import show_log
        from bot.commands.record import show_record, verify_record

        if audit + markdown + (verify or head is not None) > 1:
            raise typer.BadParameter("--audit, --markdown and --verify each show something else; give one of them")
        if markdown and as_json:
            raise typer.BadParameter("--markdown and --json are two forms of the record; give one of them")
        if verify or head is not None:
            return verify_record(config, run, head=head, as_json=as_json)
        if markdown or (as_json and not audit):
            show_record(config, run, as_markdown=markdown)
        else:
            show_log(config, run, limit=limit, as_json=as_json)
        return None

    end(context, call)


@app.command()
def audit(
    context: typer.Context,
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="One run; all when not given.")] = None,
    config: Config = None,
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many of the newest attempts.")] = 200,
    as_json: Json = False,
) -> None:
    """Show every attempt at a decision: who, what, why it was refused, for which plan, and where the message stands."""

    def call() -> None:
        from bot.commands.look_back import show_audit

        show_audit(config, run, limit=limit, as_json=as_json)

    end(context, call)


@app.command()
def catchup(
    context: typer.Context,
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="One run; all when not given.")] = None,
    config: Config = None,
    *,
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", help="Of so long, as 8h; not noted.")] = None,
    as_json: Json = False,
) -> None:
    """Say what is new since you last looked, the gravest first, in 25 lines at most."""

    def call() -> None:
        from bot.commands.look_back import show_catchup

        show_catchup(config, run, since=since, as_json=as_json)

    end(context, call)


@app.command()
def plot(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN")],
    config: Config = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="OUT.png", help="Draw it into this file.")] = None,
) -> None:
    """Show a run's loss and throughput with what is wrong marked; without --out as lines of text."""

    def call() -> None:
        from bot.commands.look_back import draw_plot

        draw_plot(config, run, out)

    end(context, call)


@app.command()
def export_state(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN")],
    config: Config = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write a new file instead of printing.")] = None,
) -> None:
    """Write the state file with which a run is handed over: job, tracker, how to resubmit; without secrets."""

    def call() -> None:
        from bot.commands.state import export_state as export

        export(config, run, out)

    end(context, call)


@app.command()
def import_state(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    config: Config = None,
    run: Annotated[str | None, typer.Option("--run", help="Whose it is; by default the run with its job.")] = None,
) -> None:
    """Take a state file in as a claim: shown against the contract, put on the run's record, never believed blindly."""

    def call() -> int:
        from bot.commands.state import import_state as take_in

        return take_in(config, file, run)

    end(context, call)


@app.command()
def explain(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN")],
    only: Annotated[str | None, typer.Argument(metavar="[CHECK]", help="Only this check.")] = None,
    config: Config = None,
    check: Annotated[str | None, typer.Option("--check", metavar="ID", help="The same.")] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="A past minute; by default now.")] = None,
    as_json: Json = False,  # noqa: FBT002 - a flag
) -> None:
    """Say what each check saw and concluded, and why it told you or did not."""

    def call() -> None:
        from bot.commands.explain import explain as explain_run

        if only is not None and check is not None and only != check:
            raise typer.BadParameter(f"{only} and --check {check} are two checks; give one of them")
        explain_run(config, run, check=only or check, at=at, as_json=as_json)

    end(context, call)


@app.command()
def plan(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN.toml", help="A contract's file, or a run's id.")],
    config: Config = None,
    as_json: Json = False,  # noqa: FBT002 - a flag
) -> None:
    """Go through the launch checklist, and say what a launch would do. Changes nothing."""

    def call() -> int:
        from bot.commands.plan import show_plan

        return show_plan(config, run, as_json=as_json)

    end(context, call)


@app.command()
def classify(
    context: typer.Context,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Crash logs, also gzipped; - is standard input.")
    ],
    exit_code: Annotated[int | None, typer.Option("--exit-code", help="Of the task, where it is known.")] = None,
    as_json: Json = False,  # noqa: FBT002 - a flag
) -> None:
    """Say why a run crashed, from its log."""

    def call() -> int:
        from bot.commands.classify import classify_files

        return classify_files(files, exit_code=exit_code, as_json=as_json)

    end(context, call)


@app.command()
def replay(
    context: typer.Context,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="CSV or JSONL, also gzipped; - is standard input.")
    ],
    *,
    every: Annotated[int, typer.Option("--every", min=1, help="Look after so many rows.")] = 50,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", metavar="NAME=COLUMN", help="A column, as loss=train/loss.")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="OUT.png", help="Draw the file's series.")] = None,
    as_json: Json = False,
) -> None:
    """Say what Hero would have told about a run, from a file of its figures."""

    def call() -> int:
        from bot.commands.replay import replay_files

        return replay_files(files, every=every, metrics=metric or [], plot=plot, as_json=as_json)

    end(context, call)


app.add_typer(trial, name="trial")


@app.command()
def checks(
    context: typer.Context,
    check: Annotated[str | None, typer.Argument(metavar="[CHECK]", help="One check; all when not given.")] = None,
    as_json: Json = False,  # noqa: FBT002 - a flag
) -> None:
    """List what Hero checks, with every threshold."""

    def call() -> None:
        from bot.commands.checks import show_checks

        show_checks(check, as_json=as_json)

    end(context, call)
