"""``hero run`` that kills itself at one boundary of an action: ``mortal_hero.py STEP MOMENT --config FILE``.

MOMENT is ``intent`` (the intent is stored, nothing is done), ``act`` (it is done, and nothing of that is stored),
``quiet`` (the same, once nothing is on its way to people: a post to GitHub that was under way is first looked for for
more than a minute) or ``outcome`` (the outcome is stored, the next step has not begun). The product has no hooks for
this: its own methods are wrapped here.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from bot.actions.cleanup import CleanUp
from bot.actions.executor import Executor
from bot.actions.sealing import Seal
from bot.actions.steps import Steps
from bot.commands.run import run
from bot.model.action import Done, StepName
from bot.store.store import Store
from tests.fakes.waiting import until

STEP, MOMENT = StepName(sys.argv[1]), sys.argv[2]

_commit = Executor._commit


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def is_quiet(store: Store) -> bool:
    return not (await store.counts())["deliveries_due"]


def mortal(take: Any) -> Any:
    async def taken(self: Any, step: StepName, *args: Any, **kwargs: Any) -> Any:
        if step is STEP and MOMENT == "intent":
            die()
        outcome = await take(self, step, *args, **kwargs)
        # What stops a job answers that it was told to, and what deletes, how much is gone; the others act or look once,
        # and then it is done.
        if step is STEP and (isinstance(outcome, Done) or step in {StepName.STOP, StepName.DELETE}):
            if MOMENT == "quiet":
                await until(lambda: is_quiet(self._store), 60, "nothing is on its way to people")
            if MOMENT in {"act", "quiet"}:
                die()
        return outcome

    return taken


async def commit(self: Executor, action: Any) -> Any:
    stored = await _commit(self, action)
    record = stored.record(STEP)
    if MOMENT == "outcome" and record is not None and record.is_done:
        die()
    return stored


for kind in (Steps, CleanUp, Seal):
    kind.take = mortal(kind.take)  # type: ignore[method-assign] # that is the point of this program
Executor._commit = commit  # type: ignore[method-assign] # as above

if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[sys.argv.index("--config") + 1])))
