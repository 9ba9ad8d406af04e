"""Contracts on disk: a good one is read whole, and whatever is wrong names the file, the key and the fix."""

import os
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.contracts import LARGEST_BYTES, BadContract, Contracts
from bot.model.contract import Basis, Contract, IrisContract, RunKind
from bot.model.value import PersonName, RunId
from bot.redaction import Redactor
from bot.run_contracts import contracts_of
from bot.settings import load_settings
from checks import CHECKS
from checks.check import threshold_problems

RUN = RunId("hero-1")
PEOPLE = frozenset({PersonName("ada"), PersonName("bob")})
GOOD = """\
dri = "ada"
command = "IRIS_USER=ada iris job run --no-wait -- python -m train --name 'a run'"
output_root = "gs://bucket/hero-1/"
final_step = 10000

[orchestrator]
kind = "iris"
job_id = "/ada/hero-1"
"""


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    directory = tmp_path / "runs"
    directory.mkdir()
    return directory


def contracts(runs: Path) -> Contracts:
    return Contracts(runs, PEOPLE, (partial(threshold_problems, CHECKS),))


def read(runs: Path, text: str | bytes, name: str = "hero-1") -> Contract | BadContract:
    file = runs / f"{name}.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return contracts(runs).load(RunId(name))


def good(runs: Path, extra: str = "", replace: tuple[str, str] = ("", "")) -> Contract:
    found = read(runs, extra + GOOD.replace(*replace))
    assert isinstance(found, Contract), found
    return found


def problem(runs: Path, text: str | bytes, name: str = "hero-1") -> str:
    found = read(runs, text, name)
    assert isinstance(found, BadContract), found
    assert found.run_id == name
    assert all(each.startswith(str(runs / f"{name}.toml")) for each in found.problems)
    return "\n".join(found.problems)


def test_a_good_contract_is_read_with_its_defaults(runs: Path) -> None:
    found = good(runs)

    assert found.run_id == RUN
    assert found.command == ("iris", "job", "run", "--no-wait", "--", "python", "-m", "train", "--name", "a run")
    assert found.environment == {"IRIS_USER": "ada"}
    assert found.checkout == str(runs.parent)
    assert found.roots == ("gs://bucket/hero-1/checkpoints",)
    assert isinstance(found.orchestrator, IrisContract)
    assert found.effective_kind is RunKind.PRODUCTION
    assert found.basis_of("final_step") is Basis.STATED


def test_an_edit_counts_at_once(runs: Path) -> None:
    first = good(runs)

    second = good(runs, replace=("10000", "20000"))

    assert (first.final_step, second.final_step) == (10_000, 20_000)


def test_all_runs_are_listed_readable_or_not_and_what_editors_leave_is_none(runs: Path) -> None:
    good(runs)
    (runs / "broken.toml").write_text("= 1")
    (runs / ".hero-1.toml").write_text("")
    (runs / ".#hero-1.toml").symlink_to("nobody@host.1234")
    (runs / "hero-1.toml~").write_text("")

    assert contracts(runs).run_ids() == ("broken", "hero-1")
    assert contracts(runs / "nowhere").run_ids() == ()


def test_every_problem_is_said_at_once(runs: Path) -> None:
    text = GOOD.replace('dri = "ada"\n', "").replace("10000", "-1") + '\nfoo = "bar"\n'

    said = problem(runs, text)

    assert "dri: is missing; write it as dri = " in said
    assert "final_step" in said
    assert "foo" in said
    assert "docs/contract.md" in said


def test_what_is_well_formed_and_wrong_is_said_beside_what_is_not(runs: Path) -> None:
    text = 'owner = "zoe"\n' + GOOD.replace("10000", "-1").replace('"ada"\n', '"bob"\n')
    text += '[basis]\nsteps = "inferred"\n[thresholds."no.such"]\nx = 1\n'

    said = problem(runs, text).splitlines()

    assert [int(line.split(":")[1]) for line in said] == [5, 1, 11, 12]


@pytest.mark.parametrize(
    ("stated", "found"),
    [(None, "."), (".", "."), ("src", "src"), ("../src", "../src"), ("/srv/src", "/srv/src"), ("runs", "runs")],
)
def test_a_relative_checkout_lies_beside_the_contracts(runs: Path, stated: str | None, found: str) -> None:
    extra = "" if stated is None else f'checkout = "{stated}"\n'

    assert good(runs, extra).checkout == str((runs.parent / found).resolve())


def test_the_checkout_of_a_contract_that_lies_elsewhere_is_relative_to_its_own_directory(runs: Path) -> None:
    file = runs.parent / "elsewhere" / "hero-1.toml"
    file.parent.mkdir()
    file.write_text('checkout = "src"\n' + GOOD)

    found = contracts(runs).read(file)

    assert isinstance(found, Contract)
    assert found.checkout == str(file.parent / "src")


def test_a_field_of_a_table_may_be_inferred(runs: Path) -> None:
    found = read(runs, GOOD + '[basis]\nfinal_step = "inferred"\n"retention.resume" = "measured"\n')

    assert isinstance(found, Contract), found
    assert found.basis_of("retention.resume") is Basis.MEASURED


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "command: is missing; write it as command = "),
        ("dri = ada", "is no TOML"),
        (b"\xff\xfe", "cannot be read"),
        ("[" * 5_000, "is no TOML"),
        (
            GOOD.replace("ada", "zoe", 1),
            "hero-1.toml:1: dri: 'zoe' is nobody in [people] of hero.toml (there: ada, bob)",
        ),
        ('deputies = ["zoe"]\n' + GOOD, "deputies: 'zoe' is nobody"),
        ('owner = "zoe"\n' + GOOD, "owner: 'zoe' is nobody"),
        ('run_id = "other"\n' + GOOD, "run_id: 'other' must be the file's name without .toml, 'hero-1'"),
        (GOOD.replace("/ada/hero-1", "hero-1"), "write it as /USER/JOB"),
        (
            GOOD.replace('"iris"\n', '"slurm"\n'),
            'hero-1.toml:7: [orchestrator] kind: must be "iris" or "local"; choose one of them',
        ),
        (GOOD.replace('"iris"\n', "7\n"), '[orchestrator] kind: must be "iris" or "local"; write it in quotes'),
        (GOOD.replace("10000", '"10000"'), "final_step: must be a whole number; write it without quotes, e.g. 10000"),
        ("checkpoint_bytes = true\n" + GOOD, "checkpoint_bytes: must be a whole number; write it without quotes"),
        ('dirty_approved = "false"\n' + GOOD, "dirty_approved: must be true or false; write it without quotes"),
        ('params = "8e9"\n' + GOOD, "params: must be a number; write it without quotes, e.g. 0.5"),
        (GOOD + '[retention]\nresume = "1"\n', "[retention] resume: must be a whole number; write it without quotes"),
        (GOOD + '[retention]\nmilestones = [1, "2"]\n', "[retention] milestones: must be a whole number"),
        (GOOD + '[thresholds."job.repeated"]\ncause = "5"\n', "cause: must be a whole number"),
        (
            "command = 7\n" + GOOD.replace("command", "#"),
            'command: must be a line or a list; write it as "python train',
        ),
        (GOOD.replace('kind = "iris"\n', ""), 'hero-1.toml:6: [orchestrator] kind: is missing; write kind = "iris"'),
        (GOOD.replace('job_id = "/ada/hero-1"\n', ""), "hero-1.toml:6: [orchestrator] job_id: is missing; write it as"),
        (GOOD.partition("[")[0], 'orchestrator: is missing; write a table [orchestrator] with kind = "iris" or'),
        (GOOD.partition("[")[0] + "orchestrator = 5\n", "orchestrator: must be a table; write [orchestrator]"),
        (GOOD + "hardware = 'v5p'\n", "hero-1.toml:9: [orchestrator] hardware: is no field of a contract; it stands"),
        ("final_stepp = 1\n" + GOOD, 'final_stepp: is no field of a contract; did you mean "final_step"?'),
        (
            GOOD + '[basis]\nfinal_stop = "inferred"\n',
            "[basis] final_stop: there is no field of this name; did you mean",
        ),
        (GOOD + '[thresholds."progress.stalled"]\nquiet = "long"\n', "hero-1.toml:10: [thresholds."),
        (GOOD.replace("-- python", "&& python"), "the shell operator '&&'"),
        (GOOD.replace("'a run'", "'a run"), "cannot be split into arguments"),
        ("command = []\n" + "\n".join(GOOD.splitlines()[2:]), "command"),
        (GOOD + '\n[cadence]\ncheck = "soon"\n', "'soon' is no duration; write it as 15m"),
        (GOOD + '\n[cadence]\ncheck = "0s"\n', "[cadence] check: must be longer than zero"),
        (GOOD + '\n[cadence]\ncheck = "99999999999d"\n', "longer than any duration"),
        (GOOD + '\n[thresholds."no.such"]\nx = 1\n', "no such check"),
        (GOOD + '\n[thresholds."progress.stalled"]\nnonsense = 1\n', "nonsense"),
        ("environment = 5\n" + GOOD, "environment"),
        ('environment = "A=1"\n' + GOOD, "environment"),
        ("environment = {A = 1}\n" + GOOD, "[environment] A: must be a text"),
        ('checkout = "~nobody-of-this-name/src"\n' + GOOD, "checkout: is no usable path"),
        ('checkout = "a\\u0000b"\n' + GOOD, "checkout"),
        ("checkout = 5\n" + GOOD, "checkout"),
        ('hardware = "a\\u0000b"\n' + GOOD, "hero-1.toml:1: hardware: holds a NUL character (\\u0000); take it out"),
        ('command = ["a", "\\u0000"]\n' + GOOD.replace("command", "#"), "command[1]: holds a NUL"),
        (GOOD + '[metrics]\nfile = "a\\u0000"\n', "[metrics] file: holds a NUL"),
        (GOOD + "[channels]\ngithub_issue = 0\n", "[channels] github_issue: must be at least 1"),
        (GOOD + '[channels]\nslack_thread = "p1712345678000100"\n', 'write it as slack_thread = "1712345678.000100"'),
        ("checkpoint_bytes = -1\n" + GOOD, "checkpoint_bytes: must be more than 0"),
        ("#" * LARGEST_BYTES + "\n" + GOOD, "too large"),
    ],
)
def test_what_is_wrong_is_said_with_the_key_and_the_fix(runs: Path, text: str | bytes, says: str) -> None:
    assert says in problem(runs, text)


def test_a_sample_is_read_under_the_name_that_it_will_have(runs: Path) -> None:
    (runs / "hero-2.toml.sample").write_text(GOOD)

    found = contracts(runs).read(runs / "hero-2.toml.sample")

    assert isinstance(found, Contract), found
    assert found.run_id == "hero-2"


def test_a_secret_in_a_contract_is_in_no_problem(runs: Path) -> None:
    secret = "hunter2-is-the-password"
    text = f'command = ["train", "--token={secret}", 5]\nenvironment = {{TOKEN = ["{secret}"]}}\n' + "\n".join(
        GOOD.splitlines()[2:]
    )

    assert secret not in problem(runs, text)


def test_a_file_that_is_not_there_says_what_writes_one(runs: Path) -> None:
    found = contracts(runs).load(RunId("nobody"))

    assert isinstance(found, BadContract)
    assert "no such file; `hero init` writes an example" in found.problems[0]


def test_a_directory_of_that_name_is_no_contract(runs: Path) -> None:
    (runs / "hero-1.toml").mkdir()

    found = contracts(runs).load(RUN)

    assert isinstance(found, BadContract)
    assert "cannot be read" in found.problems[0]


def test_a_pipe_of_that_name_is_refused_and_hangs_nobody(runs: Path) -> None:
    os.mkfifo(runs / "hero-1.toml")

    found = contracts(runs).load(RUN)

    assert isinstance(found, BadContract)
    assert "it is no regular file" in found.problems[0]
    assert contracts(runs).run_ids() == ("hero-1",)


def test_an_unchanged_contract_is_not_read_again_and_an_edit_still_counts(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good(runs)
    file, ours = runs / "hero-1.toml", contracts(runs)
    monkeypatch.setattr("bot.contracts._RACY_NS", -(10**18))  # as if it had been written long ago
    first = ours.load(RUN)
    with monkeypatch.context() as patched:
        patched.delattr("bot.contracts.open_regular")
        again = ours.load(RUN)
    file.write_text(GOOD.replace("10000", "9000"))
    edited = ours.load(RUN)

    assert isinstance(edited, Contract)
    assert again == first
    assert edited.final_step == 9000


def test_a_slack_thread_may_lie_in_another_channel(runs: Path) -> None:
    found = read(runs, GOOD + '[channels]\nslack_thread = "C0123ABCD:1712345678.000100"\n')

    assert isinstance(found, Contract), found


def test_a_name_with_room_for_mischief_is_no_run(runs: Path) -> None:
    assert "run_id: must be the file's name" in problem(runs, GOOD, "<!channel>")


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)
KEYS = st.sampled_from([*Contract.model_fields, "nonsense"])


def as_toml(value: object) -> str:  # noqa: PLR0911 - one a type
    match value:
        case None:
            return '""'
        case bool():
            return "true" if value else "false"
        case float() if value != value:  # noqa: PLR0124 - only a NaN is not itself
            return "nan"
        case float():
            return repr(value)
        case int():
            return str(value)
        case list():
            return "[" + ", ".join(map(as_toml, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{as_toml(str(k))} = {as_toml(v)}" for k, v in value.items()) + "}"
        case _:
            return '"' + "".join(c if c.isalnum() else f"\\U{ord(c):08x}" for c in str(value)) + '"'


@given(table=st.dictionaries(KEYS, VALUES, max_size=5))
def test_whatever_stands_in_a_contract_is_a_contract_or_a_list_of_problems(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, object]
) -> None:
    """A malformed contract blocks its own run: it must not raise among the others."""
    runs = tmp_path_factory.getbasetemp() / "fuzzed"
    runs.mkdir(exist_ok=True)
    lines = [line for line in GOOD.splitlines()[:4] if line.split(" = ")[0] not in table]
    lines += [f"{key} = {as_toml(value)}" for key, value in table.items()]
    rest = [] if "orchestrator" in table else GOOD.splitlines()[5:]

    found = read(runs, "\n".join([*lines, *rest]).encode("utf-8", "replace"))

    assert isinstance(found, Contract | BadContract)
    if isinstance(found, BadContract):
        assert found.problems


def test_what_a_contracts_own_variables_keep_secret_is_hidden_everywhere_once_it_was_read(tmp_path: Path) -> None:
    (tmp_path / "hero.toml").write_text("[people.ada]\nconsole = true\n")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "toy.toml").write_text(
        'dri = "ada"\ncommand = "WANDB_API_KEY=hunter2-is-the-password LEVEL=verbose python train.py"\n'
        'output_root = "out"\n[orchestrator]\nkind = "local"\ndirectory = "jobs"\n'
    )
    redactor = Redactor()
    contracts = contracts_of(load_settings(tmp_path / "hero.toml"), redactor=redactor)
    before = redactor.text("it said hunter2-is-the-password")

    loaded = contracts.load(RunId("toy"))

    assert isinstance(loaded, Contract)
    assert "hunter2" in before
    assert redactor.text("it said hunter2-is-the-password, verbose") == "it said [redacted], verbose"
