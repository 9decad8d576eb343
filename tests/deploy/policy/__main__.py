"""Policy check of the Dockerfile and of all rendered manifests of k8s/ with checkov.

    python -m tests.deploy.policy CHECKOV...

CHECKOV is the command that runs checkov. Each finding needs a correction, or an annotation beside
the resource with the reason.
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

if __name__ == "__main__":
    environment = os.environ | {"LOG_LEVEL": "ERROR", "BC_SKIP_MAPPING": "TRUE"}
    with tempfile.TemporaryDirectory() as scratch:
        for path in (*kustomize.ROOTS, *kustomize.COMPONENTS):
            manifest = yaml.safe_dump_all(kustomize.rendered(path))
            Path(scratch, f"{path.name}.yaml").write_text(manifest)
        image = ["--framework", "dockerfile", "--file", str(files.DOCKERFILE)]
        manifests = ["--framework", "kubernetes", "--directory", scratch]
        commands = [[*sys.argv[1:], *OFFLINE, *options] for options in (image, manifests)]
        done = [subprocess.run(each, env=environment, check=False) for each in commands]
    raise SystemExit(max(each.returncode for each in done))
