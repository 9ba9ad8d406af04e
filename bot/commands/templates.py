"""The files that ``hero init`` writes: a commented ``hero.toml`` and a commented contract.

Prose begins with ``# ``; a line that begins with ``#`` and a key is a setting that only needs its ``#`` taken away.
What is shown is the default, so that a file left as it is changes nothing; where there is no default, an example.
"""

import textwrap
from collections.abc import Iterable, Mapping

from bot.commands.reference import Entry, Table, contract_tables, settings_tables
from bot.commands.toml_values import toml_value

PERSON = "alice"
"""Who stands in both files as an example."""

_WIDTH = 110

_SETTINGS_HEAD = """\
The configuration of Hero. Every setting is here with its meaning and its default; take away the # to change one.
The environment wins over this file: HERO_SECTION__KEY, e.g. HERO_BOT__CADENCE=10m.
Secrets never stand here: they come from the environment or from files of their own.
Durations are written as 15m, 570s, 1h30m or a number of seconds. `hero doctor` checks all of it."""

_CONTRACT_HEAD = """\
The contract of one run: what its owner promises at launch. Hero reads every runs/RUN_ID.toml, at once when it changes.
This example ends in .sample, so that it is not taken for a run. Copy it to RUN_ID.toml, where RUN_ID is your run's id,
and let `hero doctor` check it. `checkout` is relative to the directory that holds runs/, every other path to
`checkout`. Only what has no # is needed; the rest shows the default, or an example where there is none. A run that
nobody has launched yet is launched by `/hero launch RUN_ID` and the DRI's `approve`."""

_EXAMPLES: Mapping[str, object] = {
    "bot.public_url": "https://hero.example.org",
    "slack.bot_token_file": "secrets/slack-bot-token",
    "slack.app_token_file": "secrets/slack-app-token",
    "slack.signing_secret_file": "secrets/slack-signing-secret",
    "slack.channel": "C0123456789",
    "github.token_file": "secrets/github-token",
    "discord.token_file": "secrets/discord-token",
    "discord.guild": "112233445566778899",
    "discord.channel": "112233445566778899",
    "github.app_id": 123456,
    "github.app_private_key_file": "secrets/github-app.pem",
    "github.app_installation": 12345678,
    "github.webhook_secret_file": "secrets/github-webhook-secret",
    "github.issue_template": "issue.md",
    "github.repository": "OWNER/NAME",
    "github.source_repository": "OWNER/NAME",
    "iris.controller_url": "http://localhost:10000",
    "iris.config": "cluster.yaml",
    "iris.cluster": "CLUSTER",
    "iris.token_file": "secrets/iris-token",
    "finelog.url": "http://localhost:10001",
    "finelog.token_file": "secrets/finelog-token",
    "wandb.entity": "ENTITY",
    "wandb.project": "PROJECT",
    "wandb.api_key_file": "secrets/wandb-key",
    "kubernetes.api_url": "https://10.0.0.1:6443",
    "kubernetes.token_file": "secrets/kubernetes-token",
    "kubernetes.ca_file": "secrets/kubernetes-ca.pem",
    "kubernetes.kubeconfig": "secrets/kubeconfig",
    "kubernetes.context": "CONTEXT",
    "kubernetes.namespace": "iris",
    "heartbeat.url": "https://hc-ping.com/UUID",
    "email.host": "smtp.example.org",
    "email.ca_file": "secrets/mail-ca.pem",
    "email.username": "hero",
    "email.password_file": "secrets/email-password",
    "email.sender": "hero@example.org",
    "email.to": ["training-oncall@example.org"],
    "email.kinds": ["failed", "completed"],
    "pager.routing_key_file": "secrets/pager-routing-key",
    "pager.url_file": "secrets/pager-url",
    "pager.authorization_file": "secrets/pager-authorization",
    "pager.headers": {"X-Scope-OrgID": "TENANT"},
    "escalation.warning.deputies": "off",
    "escalation.warning.pager": "off",
    f"people.{PERSON}.timezone": "Europe/Zurich",
    f"people.{PERSON}.working_hours": "09:00-18:00",
    f"people.{PERSON}.slack": "U0123456789",
    f"people.{PERSON}.discord": "80351110224678912",
    f"people.{PERSON}.github": "alice",
    f"people.{PERSON}.github_id": 583231,
    f"people.{PERSON}.email": "alice@example.org",
    "run_id": "RUN_ID",
    "kind": "production",
    "model_flops": 3e22,
    "params": 8e9,
    "tokens": 1e12,
    "deputies": [PERSON],
    "owner": PERSON,
    "environment": {"IRIS_USER": PERSON},
    "source_sha": "0123456789abcdef0123456789abcdef01234567",
    "bundle": "gs://BUCKET/bundles/BUNDLE.zip",
    "hardware": "v5p-64",
    "hardware_tasks": 8,
    "checkpoint_roots": ["out/checkpoints"],
    "resume_root": "out/resume",
    "export_root": "out/export",
    "traces_root": "out/traces",
    "session_root": "out/session",
    "spill": "/mnt/spill",
    "datasets": ["DATASET"],
    "checkpoint_bytes": 96_000_000_000,
    "initialize_from": "gs://BUCKET/OTHER-RUN/checkpoints/step-1000",
    "final_step_source": "config trainer.num_train_steps",
    "basis": {"final_step": "inferred"},
    "thresholds": {"progress.stalled": {"quiet": "30m"}},
    "tracker.entity": "TEAM",
    "tracker.project": "PROJECT",
    "tracker.id": "RUN_ID",
    "tracker.name": "RUN_ID",
    "tracker.resume": "allow",
    "orchestrator.iris.kind": "iris",
    "orchestrator.iris.job_id": f"/{PERSON}/RUN_ID",
    "channels.github_issue": 1,
    "channels.slack_thread": "1712345678.000100",
    "channels.discord_thread": "1098765432109876543",
    "cadence.check": "15m",
    "milestones.every": 10_000,
    "milestones.steps": [1000, 5000],
    "metrics.file": "out/metrics.jsonl",
    "config.file": "{output_root}/config.yaml",
    "config.launch": "configs/RUN_ID.yaml",
    "config.final_step_command": ["python", "train.py", "--print-final-step"],
    "config.reference": "OTHER-RUN",
    "trial.child_run_id": "OTHER-RUN",
    "trial.child_root": "gs://BUCKET/OTHER-RUN/checkpoints",
    "trial.handoff_step": 12_000,
    "trial.fork_step": 12_345,
    "trial.gates": ["loss mean <= +0.002", "tokens_per_second mean >= -1%"],
    "trial.coverage_gaps": ["evaluations fall outside the window"],
    "trial.starts_at": "2026-11-30T09:00:00+01:00",
    "trial.rollback_by": "2026-11-30T16:00:00+01:00",
    "trial.first_step": 12_000,
    "trial.startup_limit": "45m",
    "trial.submitter": PERSON,
    "trial.issue": 2,
    "trial.thread": "1712345678.000100",
}
"""What is shown for a key without a default."""

_FILLED_IN: Mapping[str, object] = {
    "dri": PERSON,
    "command": "python train.py --run-id RUN_ID",
    "output_root": "out",
    "final_step": 10_000,
    "orchestrator.local.kind": "local",
    "orchestrator.local.directory": "jobs",
}
"""What stands in the example contract without a ``#``."""

_BEHIND_HASH = frozenset({"orchestrator.iris", "escalation", "escalation.critical", "escalation.warning"})
"""The tables whose very names change something: they stand behind ``#`` as well."""


def settings_template() -> str:
    """Return ``hero.toml`` as ``hero init`` writes it."""
    return _file(_SETTINGS_HEAD, (_named_person(table) for table in settings_tables()))


def contract_template() -> str:
    """Return the example contract."""
    return _file(_CONTRACT_HEAD, contract_tables())


def _named_person(table: Table) -> Table:
    return table._replace(name=table.name.replace("NAME", PERSON))


def _file(head: str, tables: Iterable[Table]) -> str:
    parts = [*(f"# {line}" for line in head.splitlines()), ""]
    for table in tables:
        parts.extend(_table(table))
    return "\n".join(parts).rstrip() + "\n"


def _table(table: Table) -> list[str]:
    kind = next((entry.kind.strip('"') for entry in table.entries if entry.key == "kind" and entry.is_required), "")
    place = f"{table.name}.{kind}" if kind else table.name
    lines: list[str] = []
    if table.name:
        lines += ["", *_prose(table.meaning)]
        lines += [f"#[{table.name}]" if place in _BEHIND_HASH else f"[{table.name}]"]
    for entry in table.entries:
        lines += _entry(entry, f"{place}.{entry.key}".strip("."), table.name)
    return lines


def _entry(entry: Entry, place: str, section: str) -> list[str]:
    if entry.is_secret:
        variable = f"HERO_{section}__{entry.key}".upper()
        never = f"{entry.key} is a secret and never stands here: set {variable}, or {entry.key}_file below."
        return [*_prose(entry.meaning), *_prose(never)]
    if place in _FILLED_IN:
        return [*_prose(entry.meaning), f"{entry.key} = {toml_value(_FILLED_IN[place])}", ""]
    shown = _EXAMPLES.get(place, entry.default)
    return [*_prose(entry.meaning), f"#{entry.key} = {toml_value(shown)}", ""]


def _prose(text: str) -> list[str]:
    plain = text.replace("``", "`")
    return textwrap.wrap(plain, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_long_words=False)
