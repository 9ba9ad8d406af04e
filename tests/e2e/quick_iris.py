"""``iris --controller-url URL job run … -- PROGRAM …`` in a tenth of a second, against a real controller.

It prints what the real one prints. While there is a file ``NAME.late`` it waits with that: the job is accepted, and
nobody has heard of it.
"""

import contextlib
import http.client
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit


def submit(url: str, request: dict[str, object]) -> dict[str, str]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    with contextlib.closing(connection):
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/iris.cluster.ControllerService/LaunchJob", json.dumps(request), headers)
        answer = connection.getresponse()
        told = json.load(answer)
        if answer.status != 200:
            sys.exit(f"connectrpc.errors.ConnectError: {told.get('message')}")
        return dict(told)


def main() -> None:
    before, program = sys.argv[1 : sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1 :]
    name, user = before[before.index("--job-name") + 1], before[before.index("--user") + 1]
    told = submit(
        before[before.index("--controller-url") + 1],
        {
            "name": f"/{user}/{name}",
            "entrypoint": {"runCommand": {"argv": program}},
            "environment": {},
            "resources": {"cpuMillicores": 100, "memoryBytes": str(256 * 2**20)},
            "replicas": 1,
            "clientRevisionDate": f"{datetime.now(UTC):%Y-%m-%d}",
        },
    )
    while Path(f"{name}.late").exists():
        time.sleep(0.02)
    sys.stderr.write(f"I20261129 15:09:31 1 iris.cli.job Job submitted: {told['jobId']}\n")
    sys.stdout.write(f"{told['jobId']}\n")


if __name__ == "__main__":
    main()
