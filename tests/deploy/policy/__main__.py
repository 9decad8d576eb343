"""Policy check of the Dockerfile and of all rendered manifests of k8s/ with checkov.

    python -m tests.deploy.policy CHECKOV

CHECKOV is the path of the program checkov, which has its own environment. Each finding needs a
correction or an annotation beside the resource. The annotation contains the reason.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from tests.deploy import files, kustomize

# checkov neither downloads rules nor uploads results
OFFLINE = ["--skip-download", "--quiet", "--compact"]


def main() -> int:
    """Print the findings and return the exit status.

    Returns:
        0 without findings, 1 with findings, 2 if a check does not run.
    """
    checkov = [sys.argv[1], *OFFLINE]
    environment = os.environ | {"LOG_LEVEL": "ERROR", "BC_SKIP_MAPPING": "TRUE"}
    found = {root.name: kustomize.rendered(root) for root in kustomize.ROOTS}
    found |= {path.name: kustomize.rendered_with(path) for path in kustomize.COMPONENTS}
    with tempfile.TemporaryDirectory() as scratch:
        for name, objects in found.items():
            Path(scratch, f"{name}.yaml").write_text(yaml.safe_dump_all(objects))
        image = [*checkov, "--framework", "dockerfile", "--file", str(files.DOCKERFILE)]
        manifests = [*checkov, "--framework", "kubernetes", "--directory", scratch]
        statuses = [
            subprocess.run(command, env=environment, check=False).returncode
            for command in (image, manifests)
        ]
    return max(statuses)


if __name__ == "__main__":
    raise SystemExit(main())
