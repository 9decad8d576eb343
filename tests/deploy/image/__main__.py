"""Run of a built image with the image's own configuration and minimal rights.

    python -m tests.deploy.image INSPECTED ROOT

INSPECTED is the output of `buildah inspect --type image`. ROOT is the directory of the mounted
image. The checks need Linux and root. The service runs in its own namespaces for processes, mounts
and network, with a read-only root file system, without a shell and without new privileges.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MAX_BYTES = 350_000_000
# Expected user, group, capabilities and no_new_privs in /proc/1/status.
OWNED = "\t".join(["65532"] * 4)
RIGHTS = f"{OWNED}; {OWNED}; {0:016}; 1"
READY_S, STOP_S = 60, 40
# The mounts are private, and the first process has number 1, as in a container.
PREPARE = r"""
set -e
ip link set lo up
mount --bind "$1" "$1"
mount --types proc proc "$1/proc"
mount --rbind /sys "$1/sys"
mount --rbind /dev "$1/dev"
for shell in "$1"/usr/bin/dash "$1"/usr/bin/bash; do mount --bind /dev/null "$shell"; done
mount --options remount,bind,ro "$1"
exec setpriv --no-new-privs chroot --userspec="$2" --groups= "$1" env --ignore-environment "${@:3}"
"""
FILL = """
import http.client, json
connection = http.client.HTTPConnection("127.0.0.1", 8000, timeout=10)
body = json.dumps({"inputs": "Paris is the [MASK] of France."})
connection.request("POST", "/fill-mask", body, {"Content-Type": "application/json"})
answer = connection.getresponse()
print(json.loads(answer.read())[0]["token_str"])
"""
SELF = """
import os, pathlib, subprocess
print("/app holds", *sorted(os.listdir("/app")))
status = dict(line.split(":\\t", 1) for line in open("/proc/1/status") if ":\\t" in line)
print(*(status[name].strip() for name in ("Uid", "Gid", "CapEff", "NoNewPrivs")), sep="; ")
for place in ("/app", "/tmp", "/opt/venv", "/"):
    try:
        pathlib.Path(place, "written").touch()
    except OSError as error:
        print(place, error.strerror)
    else:
        print(place, "can be written")
for python in ("/opt/venv/bin/python", "/usr/local/bin/python"):
    missing = subprocess.run([python, "-c", "import pip"], stderr=subprocess.DEVNULL).returncode
    print(python, "has no pip" if missing else "can be made to install packages")
try:
    os.execv("/bin/sh", ["sh", "-c", "echo a shell can be run"])
except OSError as error:
    print("/bin/sh", error.strerror)
"""


def main() -> None:
    """Check the size and the behaviour of the image.

    The first failed check ends the process with status 1.
    """
    image = json.loads(Path(sys.argv[1]).read_text())
    root = sys.argv[2]
    print_sizes(json.loads(image["Manifest"])["layers"])
    configuration = image["Docker"]["config"]
    started = time.monotonic()
    command = [*prepared(configuration, root), *configuration["Entrypoint"]]
    with subprocess.Popen(command, stderr=subprocess.STDOUT) as container:
        try:
            pid = child_of(container.pid)
            check = [*configuration["Healthcheck"]["Test"][1:]]
            while inside(pid, configuration, check).returncode:
                if container.poll() is not None or time.monotonic() - started > READY_S:
                    raise SystemExit("the health check never passed")
                time.sleep(0.2)
            print(f"healthy {time.monotonic() - started:.1f} s after the start")
            seen = output(inside(pid, configuration, ["python", "-c", SELF]))
            print(seen)
            expect(RIGHTS, seen)
            expect("/bin/sh Permission denied", seen)
            expect("/app holds LICENSE fillmask fillmask_native\n", seen)
            if "can be" in seen:
                raise SystemExit("something can be written, installed or run")
            filled = output(inside(pid, configuration, ["python", "-c", FILL]))
            print(f"Paris is the {filled} of France.")
            expect("capital", filled)
            os.kill(pid, signal.SIGTERM)
            status = container.wait(STOP_S)
            print(f"SIGTERM: exit {status}")
            if status:
                raise SystemExit("SIGTERM did not end the service with exit 0")
        finally:
            container.kill()


def print_sizes(layers: Sequence[dict[str, Any]]) -> None:
    """Print the uncompressed sizes of the layers and of the image.

    Raises:
        SystemExit: the image is larger than MAX_BYTES.
    """
    names = ["base (a stand-in)", "without pip", "packages", "built-in model", "code"]
    names += ["fused operators", "bytecode"]
    for name, layer in zip(names, layers, strict=True):
        print(f"{name:<18} {layer['size'] / 1e6:7.1f} MB")
    total = sum(layer["size"] for layer in layers)
    print(f"{'image':<18} {total / 1e6:7.1f} MB, at most {MAX_BYTES / 1e6:.0f}")
    if total > MAX_BYTES:
        raise SystemExit("the image is too large")


def prepared(configuration: dict[str, Any], root: str) -> list[str]:
    """Return the prefix of a command, which sets up namespaces, mounts, user and environment."""
    unshare = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child"]
    directory = f"--chdir={configuration['WorkingDir']}"
    script = ["bash", "-c", PREPARE, "prepare", root, configuration["User"], directory]
    return [*unshare, *script, *configuration["Env"]]


def inside(
    pid: int, configuration: dict[str, Any], command: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    """Run a command in the container of the service, as `docker exec` does."""
    user, group = configuration["User"].split(":")
    enter = ["nsenter", f"--target={pid}", "--mount", "--pid", "--net", "--root"]
    rights = [f"--setuid={user}", f"--setgid={group}", "--wd=/"]
    line = [*enter, *rights, "env", "--ignore-environment", *configuration["Env"], *command]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def child_of(pid: int) -> int:
    """Return the id of the process that `unshare` started, as seen outside of the namespace."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    while not (text := children.read_text()):
        time.sleep(0.01)
    return int(text)


def output(done: subprocess.CompletedProcess[str]) -> str:
    """Return the output of a command.

    Raises:
        SystemExit: the command failed.
    """
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout.strip()


def expect(words: str, seen: str) -> None:
    """Exit with 1 unless the output contains the words."""
    if words not in seen:
        raise SystemExit(f"expected {words!r}")


if __name__ == "__main__":
    main()
