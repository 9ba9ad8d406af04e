"""What every command of the program has: the two common options, and how a call becomes an exit code."""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from bot.commands.exits import Exit, exit_of
from bot.errors import HeroError

CONFIG_HELP = "The configuration file; HERO_CONFIG names it too. Default: ./hero.toml."
Config = Annotated[Path | None, typer.Option("--config", help=CONFIG_HELP)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def end(context: typer.Context, call: Callable[[], int | None]) -> NoReturn:
    """Make the call, and end the program with the exit code that its result or its error has."""
    try:
        code = call() or Exit.DONE
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has gone; Python would stumble over the same pipe once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = Exit.BROKEN_PIPE
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    except HeroError as error:
        if context.obj:
            traceback.print_exc()
        for line in str(error).splitlines():
            typer.echo(f"hero: {line}", err=True)
        code = exit_of(error)
    raise typer.Exit(code)
