"""A run with all that a whole life needs: a repository to be launched from, an owner's shell, secrets everywhere."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Self

from bot.model.chronicle import Entry
from tests.e2e.hero import ROOT, to_toml
from tests.e2e.scene import CHANNEL, HARM_AT, OTHER, STEPS, WANDB_KEY, Scene
from tests.e2e.trainer import save
from tests.fakes.iris_cluster import IrisCluster
from tests.fakes.repositories import Origin, Repository

MILESTONE = 20
PLANTED = {
    "command": WANDB_KEY,
    "environment": "planted-in-the-environment-5f1c",
    "command_url": "planted-in-a-url-77aa",
    "dataset_url": "planted-in-a-dataset-90bd",
    "log": "hf_plantedInTheLogOfTheTrainer0001",
    "traceback": "planted-in-a-traceback-31ce",
    "notice": "planted-in-a-quoted-line-c02d",
}
"""Secrets, by where a careless owner has left them. Nobody may ever see one of them again."""
LAST_WORDS = f"""INFO downloading with HF_TOKEN={PLANTED["log"]}
Traceback (most recent call last):
  File "train.py", line 7, in <module>
    read("https://reader:{PLANTED["traceback"]}@data.example.org/corpus")
Received preemption notice from https://agent:{PLANTED["notice"]}@metadata.example.org: reclaimed now"""


class Life(Scene):
    """A scene whose run is a commit of a real repository, launched by Hero alone."""

    def __init__(self, directory: Path, cluster: IrisCluster, run_id: str) -> None:
        super().__init__(directory, cluster, run_id)
        # Jobs run in the cluster's directory; the checkout lies below it so that they find their program.
        self.origin = Origin(cluster.work / f"{run_id}-git")
        self.checkout: Repository = self.origin.clone("checkout")
        self.checkout.commit("config.json", json.dumps({"trainer": {"num_train_steps": STEPS, "seed": 17}}))
        self.sha = self.checkout.commit("train.py", Path(__file__).with_name("trainer.py").read_text())
        self.datasets = (f"https://reader:{PLANTED['dataset_url']}@data.example.org/corpus-v3",)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.slack.allow_mentions(f"<@{OTHER}>")  # who becomes the DRI
        return self

    def contract(self) -> str:
        program = (self.checkout.path / "train.py").relative_to(self.cluster.work)
        command = [
            *map(str, self._submit_with),
            *("job", "run", "--no-wait", "--no-sync", "--user", "me", "--job-name", self.run_id),
            *("-e", "WANDB_API_KEY", PLANTED["command"]),
            *("--", "python", str(program), self.run_id, str(STEPS), str(HARM_AT)),
            f"--data=https://reader:{PLANTED['command_url']}@data.example.org/corpus-v3",
        ]
        top = {
            "dri": '"dana"',
            "model_flops": "3e22",
            "command": json.dumps(command),
            "checkout": json.dumps(str(self.checkout.path)),
            "source_sha": json.dumps(self.sha),
            "output_root": json.dumps(str(self.home)),
            "datasets": json.dumps(self.datasets),
            "final_step": str(STEPS),
        }
        tables = {
            "environment": {"DATA_TOKEN": json.dumps(PLANTED["environment"])},
            "orchestrator": {"kind": '"iris"', "job_id": f'"{self.job_id}"'},
            "config": {"launch": '"config.json"'},
            "retention": {"milestones": f"[{MILESTONE}]"},
            "milestones": {"steps": f"[{MILESTONE}]"},
            "cadence": {"check": '"1s"', "after_submit": '"1s"', "stabilise": '"1s"'},
            'thresholds."artifacts.missing"': {"settle": '"1s"'},
            'thresholds."monitor.stale"': {"cadences": "60"},
        }
        return "\n".join(f"{key} = {value}" for key, value in top.items()) + "\n\n" + to_toml(tables)

    # What its owner does

    def mend(self) -> None:
        """Push the commit, and take the password out of the dataset's address."""
        self.checkout.push()
        self.github.push(self.sha)
        self.datasets = ("https://data.example.org/corpus-v3",)
        self.hero.write_contract(self.run_id, self.contract())

    async def command(self, user: str, text: str) -> None:
        """Somebody types ``/hero …``; Slack delivers that once, to a Hero that listens, or never."""
        await self.hero.until(lambda: self.slack.open_sockets, 30, "Hero listens to Slack")
        ack = await self.slack.slash(user, CHANNEL, "/hero", text)
        assert ack.acked, ack

    async def shell(self, *words: str) -> tuple[int, str]:
        """Run ``hero …`` beside the bot; return the exit code and what was printed, errors included."""
        ended = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "bot", *words],
            cwd=self.hero.directory,
            env={**os.environ, "PYTHONPATH": str(ROOT), **self.secrets, **self.cluster.env},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.printed += ended.stdout + ended.stderr
        return ended.returncode, ended.stdout + ended.stderr

    printed = ""
    """Everything that the program has printed in the owner's shell."""

    def save_at_last(self) -> None:
        """Write the final checkpoint that the trainer forgot."""
        save(self.home / "checkpoints", STEPS)

    # What there is

    @property
    def checkpoints(self) -> list[int]:
        found = (self.home / "checkpoints").glob("step-*")
        return sorted(int(each.name.removeprefix("step-")) for each in found)

    @property
    def issue_body(self) -> str:
        (issue,) = self.github.issues()
        return issue.body

    def record(self) -> list[Entry]:
        names = ("run_id", "seq", "at", "kind", "payload", "prev", "hash")
        rows = self.ask_database(f"SELECT {', '.join(names)} FROM chronicle ORDER BY seq")
        return [Entry.model_validate(dict(zip(names, row, strict=True))) for row in rows]

    def shown_anywhere(self) -> dict[str, bytes]:
        """Everything that Hero has said, printed, logged or stored, by where."""
        return {
            "Slack": repr((self.posts, self.slack.ephemerals)).encode(),
            "GitHub": repr([(each.title, each.body, each.comments) for each in self.github.issues()]).encode(),
            "tags": repr(self.github.tags).encode(),
            "log": self.hero.log.encode(),
            "terminal": self.printed.encode(),
            "files": self.stored_bytes(),
        }
