"""Secrets in a contract's words: an address or a command that holds one shows it to whoever may look."""

from collections.abc import Iterator

from bot.model.preflight import PreflightFinding, Preparation, Weight
from bot.model.value import CheckId
from bot.redaction import Redactor, shows_secret
from checks.preflight.item import Item, Told

_REDACTOR = Redactor()
_ADDRESSES = (
    "output_root",
    "resume_root",
    "export_root",
    "traces_root",
    "session_root",
    "initialize_from",
    "bundle",
    "spill",
)


def judge(prepared: Preparation) -> Told:
    """Refuse addresses with credentials, and note a command that shows a secret to everybody on its machine."""
    return Told(findings=tuple(_findings(prepared)))


def _findings(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract = prepared.contract
    file = f"runs/{contract.run_id}.toml"
    named = [(field, getattr(contract, field)) for field in _ADDRESSES]
    named += [(f"checkpoint_roots[{n}]", each) for n, each in enumerate(contract.checkpoint_roots)]
    named += [(f"datasets.{n}", each) for n, each in enumerate(contract.datasets)]
    for field, address in named:
        if address is not None and shows_secret(address):
            message = f"{field} holds credentials (not shown here): it is printed, recorded and told as it stands"
            fix = f"take them out of {field} in {file}; storage is reached with the machine's own credentials"
            yield CREDENTIALS.finding(Weight.BLOCKS, message, fix)
    if _REDACTOR.argv(contract.command) != contract.command:
        message = "the command holds a secret (not shown here): everybody on the machine that runs it can see it"
        fix = f"put it into [environment] of {file}, or let the program read a file"
        yield CREDENTIALS.finding(Weight.NOTE, message, fix)


CREDENTIALS = Item(
    id=CheckId("launch.credentials"),
    title="No secrets in addresses, and none in the command that need not be there",
    source='manage-hero-run, "Launch": exact command line, with secrets scrubbed',
    judge=judge,
)
