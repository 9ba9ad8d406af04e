"""The command that would be run, and where. Its rules are the launcher's own; here they are printed and judged."""

import shlex

from bot.model.preflight import Preparation, Weight
from bot.model.value import CheckId
from checks.preflight.item import Item, Told, stated


def judge(prepared: Preparation) -> Told:
    """Print the command and refuse one that may not be submitted."""
    contract = prepared.contract
    file = f"runs/{contract.run_id}.toml"
    values = (
        stated("command", shlex.join(prepared.command), contract.basis_of("command")),
        stated("environment", ", ".join(sorted(contract.environment)) or "none", contract.basis_of("environment")),
        stated("checkout", contract.checkout, contract.basis_of("checkout")),
    )
    findings = tuple(
        COMMAND.finding(Weight.BLOCKS, f"the command may not be submitted: {problem}", f"mend that in {file}")
        for problem in prepared.problems
    )
    return Told(values=values, findings=findings)


COMMAND = Item(
    id=CheckId("launch.command"),
    title="The command, its environment and its directory; --no-wait, and --tpu besides --reserve",
    source='manage-hero-run, "Launch": exact command line, with secrets scrubbed; babysit-job, "Required Info"',
    judge=judge,
)
