"""``hero trial …``: from arguments to one call, as ``bot/cli.py`` does for the other commands."""
# ruff: noqa: PLC0415 - start-up time, as said there

from pathlib import Path
from typing import Annotated

import typer

from bot.commands.ending import Config, Json, end

WITH_CONFIG = ("show", "plan", "rehearse")
"""The commands that take ``--config``."""

trial = typer.Typer(no_args_is_help=True, help="The trial of a change to a live run: plan, rehearsal, comparison.")


@trial.command("show")
def trial_show(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN")],
    config: Config = None,
    as_json: Json = False,  # noqa: FBT002 - a flag
) -> None:
    """Show how far the trial of a run is, and what was agreed."""

    def call() -> int:
        from bot.commands.trial_live import show_trial

        return show_trial(config, run, as_json=as_json)

    end(context, call)


@trial.command("plan")
def trial_plan(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN")],
    config: Config = None,
    as_json: Json = False,  # noqa: FBT002 - a flag
) -> None:
    """Show the plan that the contract's [trial] comes to: 0 it can be put to the DRI, 3 it cannot, 4 not known."""

    def call() -> int:
        from bot.commands.trial_live import plan_trial_of

        return plan_trial_of(config, run, as_json=as_json)

    end(context, call)


@trial.command("rehearse")
def trial_rehearse(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN")],
    config: Config = None,
    as_json: Json = False,  # noqa: FBT002 - a flag
) -> None:
    """Run every guard of the trial dry, against the live cluster: 0 all pass, 3 one fails, 4 one cannot tell."""

    def call() -> int:
        from bot.commands.trial_live import rehearse_trial

        return rehearse_trial(config, run, as_json=as_json)

    end(context, call)


@trial.command("compare")
def trial_compare(
    context: typer.Context,
    *,
    control: Annotated[str, typer.Option("--control", metavar="FILE", help="The old run's figures: CSV or JSONL.")],
    child: Annotated[str, typer.Option("--child", metavar="FILE", help="The changed run's.")],
    window: Annotated[
        str | None, typer.Option("--window", metavar="N:STEPS", help="From step N on, 200 steps by default.")
    ] = None,
    gate: Annotated[
        list[str] | None, typer.Option("--gate", metavar="GATE", help='What must hold, as "loss mean <= +0.002".')
    ] = None,
    contract: Annotated[
        Path | None, typer.Option("--contract", metavar="RUN.toml", help="A contract whose [trial] has the gates.")
    ] = None,
    count: Annotated[
        list[str] | None, typer.Option("--count", metavar="NAME=N", help="crash=0, retry=0, watchdog=0, alert=0.")
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", metavar="NAME=COLUMN", help="A column, as loss=train/loss.")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="OUT.png", help="Draw both runs.")] = None,
    as_json: Json = False,
) -> None:
    """Compare a changed run with the run that it was forked off: 0 all gates pass, 3 one failed, 4 cannot tell."""

    def call() -> int:
        from bot.commands.trial import compare_files

        return compare_files(
            control,
            child,
            contract=contract,
            gates=gate or [],
            window=window,
            counts=count or [],
            metrics=metric or [],
            plot=plot,
            as_json=as_json,
        )

    end(context, call)
