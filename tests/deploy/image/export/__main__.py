"""Run of the export image as the service `export` of compose.yaml.

    python -m tests.deploy.image.export CONTAINER BUILDAH...

CONTAINER is a container of buildah. BUILDAH is the command of buildah with its global flags. The
run restores a checkpoint from the built-in bundle and exports this checkpoint.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.deploy import files

EXPORT = files.read_yaml(files.COMPOSE)["services"]["export"]
# an owner that neither the image nor this machine knows
OWNER = 12345
# Capabilities of buildah's containers. `--cap-drop=all` would also drop those of `--cap-add`.
CAPABILITIES = {
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
    *("NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
}
# bits of CAP_SETGID and CAP_SETUID in /proc/self/status
EXPECTED_CAPABILITIES = f"CapEff:\t{1 << 6 | 1 << 7:016x}"
RESTORE = ["python", "-m", "fillmask_export.restore", "/built-in", "/checkpoints/built-in"]
CACHE = ["python", "-c", "import os, pathlib; pathlib.Path(os.environ['HF_HOME'], 'x').touch()"]
FILL = ["python", "-m", "fillmask.cli", "--bundle"]
# the variables of the service that have a value
ENVIRONMENT = [each for each in EXPORT["environment"] if "=" in each]
TEXT = "Paris is the [MASK] of France."


def main() -> None:
    """Export the built-in model.

    Raises:
        SystemExit: a command of the container fails, the container has other capabilities than in
            compose.yaml, the bundle belongs to another user than its directory, or its model fills
            a mask differently.
    """
    with tempfile.TemporaryDirectory(dir=files.ROOT / "build" / "image") as scratch:
        checkpoints, bundles = Path(scratch, "checkpoints"), Path(scratch, "bundles")
        for directory in (checkpoints, bundles):
            directory.mkdir()
            os.chown(directory, OWNER, OWNER)
        mounts = [
            f"{files.ROOT}/service/fillmask/bundles/default:/built-in:ro",
            f"{checkpoints}:/checkpoints",
            f"{bundles}:/bundles",
        ]
        owner = f"{OWNER}:{OWNER}"
        status = run(["cat", "/proc/self/status"], mounts, EXPORT["user"])
        if EXPECTED_CAPABILITIES not in status:
            raise SystemExit(f"expected {EXPECTED_CAPABILITIES!r}")
        run(RESTORE, mounts, owner)
        run(CACHE, mounts, owner)
        # compose replaces $$ by $
        entrypoint = [word.replace("$$", "$") for word in EXPORT["entrypoint"]]
        _, *options = EXPORT["command"]
        run([*entrypoint, "/checkpoints/built-in", *options], mounts, EXPORT["user"])
        (bundle,) = (bundles / "fillmask").iterdir()
        for path in (bundle, *bundle.iterdir()):
            if path.stat().st_uid != OWNER:
                raise SystemExit(f"{path.name} belongs to user {path.stat().st_uid}, not {OWNER}")
        filled = run([*FILL, f"/bundles/fillmask/{bundle.name}", TEXT], mounts, owner)
        if "capital" not in filled:
            raise SystemExit(f"expected 'capital', got {filled!r}")


def run(command: list[str], mounts: list[str], user: str) -> str:
    """Run a command in the container and return its output.

    Raises:
        SystemExit: the command fails.
    """
    container, *buildah = sys.argv[1:]
    volumes = [f"--volume={mount}" for mount in mounts]
    drop = [f"--cap-drop=CAP_{name}" for name in sorted(CAPABILITIES - {*EXPORT["cap_add"]})]
    variables = [f"--env={each}" for each in ENVIRONMENT]
    done = subprocess.run(
        [*buildah, "run", *drop, f"--user={user}", *volumes, *variables, container, "--", *command],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(done.stdout)
    if done.returncode:
        raise SystemExit(f"exit {done.returncode}: {' '.join(command)}")
    return done.stdout


if __name__ == "__main__":
    main()
