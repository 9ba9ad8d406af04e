"""No secret gets out, in whatever spelling; ordinary flags and numbers stay readable."""

import base64
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.redaction import WITHHELD, RedactingProcessor, Redactor, redact_or_withhold

SECRET = 'p@ss w/"rd&<ü>-4711'
HEX = "0123456789abcdef0123456789abcdef01234567"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\nxyzsecretbody==\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.s3cr3tsignature"

HIDDEN = {
    "--api-key=s3cr3t --seed 7": "--api-key=[redacted] --seed 7",
    "--api-key s3cr3t --seed 7": "--api-key [redacted] --seed 7",
    "--api-key \\\n  s3cr3t \\\n  --seed 7": "--api-key \\\n  [redacted] \\\n  --seed 7",
    "--key=s3cr3t": "--key=[redacted]",
    "--key s3cr3t": "--key [redacted]",
    "KEY=s3cr3t python train.py": "KEY=[redacted] python train.py",
    "--token 's3 cr3t' x": "--token '[redacted]' x",
    '--token "s3\\"cr3t" x': '--token "[redacted]" x',
    "--password=my\\ s3cr3t x": "--password=[redacted] x",
    "TOKEN=ab'cd ef'\"gh\" x": "TOKEN=[redacted] x",
    "WANDB_API_KEY=s3cr3t,step=5": "WANDB_API_KEY=[redacted],step=5",
    "password=p,w;d": "password=[redacted]",
    "-e WANDB_API_KEY s3cr3t -e SEED 7": "-e WANDB_API_KEY [redacted] -e SEED 7",
    "-e HF_TOKEN=s3cr3t -e SEED=7": "-e HF_TOKEN=[redacted] -e SEED=7",
    "--env HF_TOKEN s3cr3t": "--env HF_TOKEN [redacted]",
    "['-e', 'HF_TOKEN', 's3cr3t', '--steps', '9']": "['-e', 'HF_TOKEN', '[redacted]', '--steps', '9']",
    '["--api-key",\n  "s3cr3t",\n  "x"]': '["--api-key",\n  "[redacted]",\n  "x"]',
    '{"token": "s3cr3t", "step": 5}': '{"token": "[redacted]", "step": 5}',
    "{'bot_token': 's3cr3t'}": "{'bot_token': '[redacted]'}",
    r'{"log": "{\"token\": \"s3\\\"cr3t\", \"step\": 5}"}': r'{"log": "{\"token\": \"[redacted]\", \"step\": 5}"}',
    '{"name": "HF_TOKEN", "value": "s3cr3t"}': '{"name": "HF_TOKEN", "value": "[redacted]"}',
    "- name: HF_TOKEN\n  value: s3cr3t\n": "- name: HF_TOKEN\n  value: [redacted]\n",
    '"line\\nHF_TOKEN=s3cr3t"': '"line\\nHF_TOKEN=[redacted]"',
    "client(key='9f86d081884c7d659a2f')": "client(key='[redacted]')",
    "accessKeyId: s3cr3t": "accessKeyId: [redacted]",
    "connection_string = Server=x;AccountKey=abc==": "connection_string = [redacted];AccountKey=[redacted]",
    "postgresql+asyncpg://hero:s3cr3t@db:5432/hero": "postgresql+asyncpg://hero:[redacted]@db:5432/hero",
    "redis://:s3cr@3t@cache/0": "redis://:[redacted]@cache/0",
    "git clone https://s3cr3t@github.com/o/r": "git clone https://[redacted]@github.com/o/r",
    "https://x/y?step=4&api_key=s3cr3t&z=1#top": "https://x/y?step=4&api_key=[redacted]&z=1#top",
    "https://x/y?key=s3cr3t": "https://x/y?key=[redacted]",
    "https://b/o?X-Amz-Date=1&X-Amz-Credential=s3cr3t%2Fx&X-Amz-Signature=ab12": (
        "https://b/o?X-Amz-Date=1&X-Amz-Credential=[redacted]&X-Amz-Signature=[redacted]"
    ),
    '"https://b/o?se=1\\u0026sig=ab%3D"': '"https://b/o?se=1\\u0026sig=[redacted]"',
    "Authorization: Bearer s3cr3t": "Authorization: [redacted]",
    "curl -H 'Authorization: Basic aGVybzpz' https://x": "curl -H 'Authorization: [redacted]' https://x",
    "{'Authorization': 'Bearer s3cr3t'}": "{'Authorization': '[redacted]'}",
    "sent Bearer abcdef0123456789 to x": "sent Bearer [redacted] to x",
    "Cookie: a=s3; d=cr3t\nHost: x": "Cookie: [redacted]\nHost: x",
    "curl -u hero:s3cr3t https://x": "curl -u hero:[redacted] https://x",
    'os.environ["OPENAI_API_KEY"] = "s3cr3t"': 'os.environ["OPENAI_API_KEY"] = "[redacted]"',
    "cfg['tracker']['password']='s3cr3t'": "cfg['tracker']['password']='[redacted]'",
    "machine api.wandb.ai login user password s3cr3t": "machine api.wandb.ai login user password [redacted]",
    f"wandb login {HEX}": "wandb login [redacted]",
    "train -p 'correct horse' --seed 7": "train -p '[redacted]' --seed 7",
    "docker login -u hero -p s3cr3t ghcr.io && run": "docker login -u hero -p [redacted] ghcr.io && run",
    "sshpass -p s3cr3t ssh -p 22 host": "sshpass -p [redacted] ssh -p 22 host",
    "mysql -u hero -ps3cr3t db": "mysql -u hero -p[redacted] db",
    "aws configure set aws_secret_access_key s3cr3t --profile x": (
        "aws configure set aws_secret_access_key [redacted] --profile x"
    ),
    "gh secret set HF_TOKEN --body s3cr3t": "gh secret set HF_TOKEN --body [redacted]",
    f"AKIAIOSFODNN7EXAMPLE {'wJalrXUtnF/+' * 3}wJal x": "[redacted] x",
    "redis-cli -h cache -a s3cr3t ping": "redis-cli -h cache -a [redacted] ping",
    f"a\n{PEM}\nb": "a\n[redacted]\nb",
    json.dumps({"k": PEM}): '{"k": "[redacted]"}',
    "x -----BEGIN PRIVATE KEY-----\nMIIcut": "x [redacted]",
    f"token ghp_{'a1' * 18}.": "token [redacted].",
    f"github_pat_11AAA_{'b2' * 20}": "[redacted]",
    "xoxb-123-456-abc xapp-1-A0-b": "[redacted] [redacted]",
    f"hf_{'aB' * 17}": "[redacted]",
    f"sk-proj-{'a1' * 12}": "[redacted]",
    "AKIAIOSFODNN7EXAMPLE": "[redacted]",
    f"AIza{'Sy' * 18}": "[redacted]",
    f"jwt {JWT}!": "jwt [redacted]!",
    "https://hooks.slack.com/services/T0/B0/abc": "https://hooks.slack.com/services/[redacted]",
}

SHOWN = [
    "--tokenizer meta-llama/Llama-3 --max-tokens 2048 --keep-last 3",
    "tokens_per_second=51234.5 tokens: 12000000",
    "TOKENIZERS_PARALLELISM=true",
    "--author sam --key-path /etc/k --token-file /run/secrets/t",
    "key_path=/etc/hero/key sort_key=loss key=train/loss",
    "loss per token: 2.31 pad_token_id=128001 eos_token=</s>",
    "--token $(cat /run/token) --seed 7",
    "--api-key $WANDB_API_KEY --token ${HF_TOKEN}",
    'File "bot/auth.py", line 12, in token\nauth.py:12',
    f"source sha {HEX} of wandb run abc123",
    f"wandb login ok\ncommit {HEX}",
    "ssh://git@github.com/o/r https://x/y?step=4&tokens=7",
    "Basic training started; Bearer tokens are used",
    "docker run -u 1000:1000 img",
    "docker run -p 8080:80 img && ssh -p 22 host && serve -p port",
    "mkdir -p '/data/my dir' out/dir && psql -p 5432 && tar -xpf x.tar",
    "sshpass -p $PASSWORD ssh host",
    "use_auth_token=True token=None def f(token: str)",
    "gs://bucket/step-4000/metadata.json 2026-11-29T03:00:00Z",
    '{"key": "loss", "value": 1}',
    "disk-usage risk-adjusted hf_checkpoint_path",
    "",
]


@pytest.mark.parametrize(("text", "scrubbed"), HIDDEN.items())
def test_a_secret_is_taken_out_and_the_rest_stays(text: str, scrubbed: str) -> None:
    assert Redactor().text(text) == scrubbed


@pytest.mark.parametrize("text", SHOWN)
def test_what_only_resembles_a_secret_stays_readable(text: str) -> None:
    assert Redactor().text(text) == text


@pytest.mark.parametrize(
    "spelling",
    [
        str,
        quote,
        lambda s: quote(s, safe="").lower() if s.islower() else quote(s, safe=""),
        lambda s: json.dumps(s)[1:-1],
        lambda s: json.dumps(json.dumps(s)),
        lambda s: repr({"x": s}),
        lambda s: s.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"),
        lambda s: s.encode().hex(),
    ],
)
def test_a_known_secret_is_found_in_every_spelling(spelling: Callable[[str], str]) -> None:
    written = spelling(SECRET)

    scrubbed = Redactor([SECRET]).text(f"before {written} after")

    assert "[redacted]" in scrubbed
    assert "4711" not in scrubbed
    assert "34373131" not in scrubbed
    assert scrubbed.startswith("before ")
    assert scrubbed.endswith(" after")


@pytest.mark.parametrize("before", ["", "u", "us", "user:"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_known_secret_is_found_in_base64_at_every_alignment(before: str, encode: Callable[[bytes], bytes]) -> None:
    blob = encode(f"{before}{SECRET}:more".encode()).decode()

    scrubbed = Redactor([SECRET]).text(f"blob {blob} end")

    left = scrubbed.removeprefix("blob ").removesuffix(" end")
    assert "[redacted]" in left
    assert len(left.replace("[redacted]", "")) <= len(before) + len(":more") + 8


def test_each_line_of_a_known_key_is_found_alone() -> None:
    assert (
        Redactor(["first-line-of-the-key\nsecond-line-of-the-key"]).text("| second-line-of-the-key |")
        == "| [redacted] |"
    )


def test_very_short_secrets_do_not_tear_words_apart() -> None:
    assert Redactor(["", "a", "abc"]).text("abc abacus") == "abc abacus"


def test_a_redactor_does_not_print_its_secrets() -> None:
    assert SECRET not in repr(Redactor([SECRET]))


def test_a_password_behind_a_name_is_scrubbed_in_arguments_too() -> None:
    scrub = Redactor().argv

    assert scrub(("curl", "-u", "hero:s3cr3t", "https://x")) == ("curl", "-u", "hero:[redacted]", "https://x")
    assert scrub(("docker", "run", "--user", "1000:1000")) == ("docker", "run", "--user", "1000:1000")


def test_arguments_are_scrubbed_one_for_one() -> None:
    words = [
        "train",
        "--api-key",
        "my s3cr3t",
        "--token=my s3",
        "-e",
        "HF_TOKEN",
        "-s3",
        "-e",
        "SEED",
        "7",
        "--steps",
        "9",
    ]

    assert Redactor().argv(words) == (
        *("train", "--api-key", "[redacted]", "--token=[redacted]"),
        *("-e", "HF_TOKEN", "[redacted]", "-e", "SEED", "7", "--steps", "9"),
    )
    assert Redactor().argv(["wandb", "login", HEX]) == ("wandb", "login", "[redacted]")
    assert Redactor().argv(["git", "checkout", HEX]) == ("git", "checkout", HEX)
    assert Redactor().argv(["sh", "-c", "TOKEN=x1 run"]) == ("sh", "-c", "TOKEN=[redacted] run")


@pytest.mark.parametrize(
    ("words", "hidden"),
    [
        (["train", "-p", "correct horse", "9"], "correct horse"),
        (["bash", "-c", "train -p 'correct horse'"], "correct horse"),
        (["/usr/bin/mysql", "-ps3cr3t", "db"], "s3cr3t"),
        (["docker", "login", "-u", "hero", "-p", "s3cr3t"], "s3cr3t"),
        (["aws", "configure", "set", "aws_secret_access_key", "s3cr3t"], "s3cr3t"),
        (["gh", "secret", "set", "HF_TOKEN", "--body", "s3cr3t"], "s3cr3t"),
        (["podman", "run", "-p", "8080:80", "img"], ""),
        (["ssh", "-p", "22", "host"], ""),
        (["sshpass", "-p", "s3cr3t", "ssh", "-p", "22", "host"], "s3cr3t"),
        (["serve", "-p", "port"], ""),
        (["mkdir", "-p", "./my dir"], ""),
        (["sshpass", "-p", "$PASSWORD"], ""),
    ],
)
def test_a_password_behind_a_short_flag_is_told_from_a_port_and_a_path(words: list[str], hidden: str) -> None:
    scrubbed = " ".join(Redactor().argv(words))

    assert scrubbed == (" ".join(words).replace(hidden, "[redacted]") if hidden else " ".join(words))


def test_nested_values_keep_their_shape() -> None:
    value = {
        "token": "x1",
        "auth": {"user": "sam", "retries": 3, "on": True},
        "argv": ["run", "--password", "x1"],
        "env": [{"name": "HF_TOKEN", "value": "x1"}, {"name": "SEED", "value": "7"}],
        "headers": [("Authorization", "Bearer x1"), ("Host", "h")],
        "step": 4000,
        "loss": 2.5,
        "none": None,
        "raw": b"TOKEN=x1",
        f"{SECRET}": 1,
    }

    assert Redactor([SECRET]).value(value) == {
        "token": "[redacted]",
        "auth": {"user": "[redacted]", "retries": 3, "on": True},
        "argv": ["run", "--password", "[redacted]"],
        "env": [{"name": "HF_TOKEN", "value": "[redacted]"}, {"name": "SEED", "value": "7"}],
        "headers": [("Authorization", "[redacted]"), ("Host", "h")],
        "step": 4000,
        "loss": 2.5,
        "none": None,
        "raw": "TOKEN=[redacted]",
        "[redacted]": 1,
    }


def test_a_list_of_sentences_is_read_sentence_by_sentence() -> None:
    gaps = ["jobs refused (set [iris] token)", "- see --token", "metrics: no answer in 20 s"]

    assert Redactor().value(gaps[::2]) == gaps[::2]
    assert Redactor().value(gaps[1:]) == gaps[1:]
    assert Redactor().value(["run", "-e", "HF_TOKEN", "x1", "--api-key", "a b"]) == [
        *("run", "-e", "HF_TOKEN", "[redacted]", "--api-key", "[redacted]")
    ]


def test_an_object_whose_print_holds_a_secret_is_replaced() -> None:
    error = RuntimeError("refused: password=x1")

    assert Redactor().value({"error": error}) == {"error": "refused: password=[redacted]"}


def test_cycles_and_depth_end() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: list[Any] = ["x"]
    for _ in range(5000):
        deep = [deep]

    assert Redactor().value(cycle) == ["[redacted]"]
    assert "[redacted]" in str(Redactor().value(deep))


class _Broken(Redactor):
    def text(self, text: str) -> str:
        raise RecursionError(text)


def test_a_text_that_cannot_be_scanned_is_withheld() -> None:
    assert redact_or_withhold(_Broken(), "token=x1") == WITHHELD
    assert RedactingProcessor(_Broken())(None, "info", {"event": "token=x1", "level": "info"}) == {
        "event": WITHHELD,
        "level": "info",
    }
    assert redact_or_withhold(Redactor(), "token=x1") == "token=[redacted]"


@pytest.mark.parametrize(
    "unit",
    [
        *("a", " ", "token=", 'token="', "token='a", "\\", '\\"', "=", "a=b,", "?key=", "-e TOKEN ", "://"),
        *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----\n", "AKIA", "bearer ", "token=["),
        *("Authorization: ", '"Authorization: ', "\\u0026", "name: TOKEN value: ", "wandb ", "token=a,", "M." * 20),
        *("x:y@", "eyJ", "--token \\\n", "login x password ", "a" * 39 + " "),
        *("-u a:", "token=${", "token=$(", "key=", "sk-", "local-", "@", "[", "a\\ "),
        *("-p 'a b", "docker login ", "mysql -p", "config set ", "secret set ", "sshpass -p x "),
    ],
)  # fmt: skip
def test_a_huge_line_takes_linear_time(unit: str) -> None:
    """Quadratic time would be hours here, and is caught by the test's own time limit."""
    line = unit * (300_000 // len(unit))

    began = time.perf_counter()
    Redactor([SECRET]).text(line)

    assert time.perf_counter() - began < 20


PIECES = st.sampled_from(
    [
        *("token", "=", ":", " ", "'", '"', "\\", "\n", ",", "[", "]", "{", "}", "(", ")", "--api-key", "-e ", "KEY"),
        *("u:p", "?sig", "&", "password", "[redacted]", "x1", "Authorization", "Cookie", "`", "name", "value", "$"),
        *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "ghp_abcdef123", "login ", "|", ";", "\\u0026"),
        *("true", "://", "@", "Bearer ", SECRET, "\ud800", "ü", "1.5", "wandb login ", HEX),
        *("-p ", "mysql ", "docker login ", "-pa", "sshpass", "a b"),
    ]
)  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=20).map("".join))
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=12,
)


@given(TEXTS)
def test_scrubbing_twice_changes_nothing_more(text: str) -> None:
    redactor = Redactor([SECRET, "dact", "x1x1"])

    once = redactor.text(text)

    assert redactor.text(once) == once
    assert SECRET not in once


@given(JSONS)
def test_any_value_is_scrubbed_without_raising(value: Any) -> None:
    scrubbed = Redactor([SECRET]).value(value)

    assert isinstance(value, (bytes, float)) or type(scrubbed) is type(value)
    assert SECRET not in repr(scrubbed)


@given(st.lists(TEXTS, max_size=6))
def test_arguments_keep_their_number(words: list[str]) -> None:
    assert len(Redactor([SECRET]).argv(words)) == len(words)


@given(st.lists(st.text(min_size=1, max_size=30), max_size=4), TEXTS)
def test_any_settings_can_be_used(secrets: list[str], text: str) -> None:
    redactor = Redactor(secrets)

    once = redactor.text(text)

    assert redactor.text(once) == once


@given(
    st.text("abcdefXYZ0189!@#%^*+./-", min_size=6, max_size=20).filter(lambda s: s[0].isalnum() and s[-1].isalnum()),
    st.sampled_from(
        [
            "--api-key={}",
            "--api-key {}",
            "API_KEY={}",
            "-e API_KEY {}",
            "-e API_KEY={}",
            '"token": "{}"',
            "password: {}",
        ]
    )
    | st.sampled_from(
        ["Authorization: Bearer {}", "Authorization: Basic {}", "--env PASSWORD {}", "'--token', '{}'", "secret='{}'"]
    ),
)
def test_a_value_behind_a_secret_name_never_shows(secret: str, form: str) -> None:
    scrubbed = Redactor().text(f"run {form.format(secret)} now")

    if not secret.isdigit() and not secret.replace(".", "").isdigit():
        assert secret not in scrubbed
