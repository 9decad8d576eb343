"""Checks and files of a release.

    python .github/release.py check TAG
    python .github/release.py notes [IMAGE]
    python .github/release.py manifests IMAGE OUTPUT

IMAGE is the name of the pushed image with its digest: NAME@sha256:DIGEST.
"""

import os
import re
import shutil
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGE = re.compile(r"(?P<name>[a-z0-9][a-z0-9.:/_-]*)@(?P<digest>sha256:[0-9a-f]{64})")
# an entry of `images` in a kustomization.yaml of k8s/
ENTRY = re.compile(r"(  - name: fillmask\n)(?:    new(?:Name|Tag): \S+\n)+")


class ReleaseError(Exception):
    """Error of a release, whose message says what to change."""


def version() -> str:
    """Return the version of the package.

    Raises:
        ReleaseError: the package has no version.
    """
    text = (ROOT / "service" / "fillmask" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    if found is None:
        raise ReleaseError("service/fillmask/__init__.py must have a line `__version__ = ...`")
    return found[1]


def section(changelog: str, number: str) -> str:
    """Return the text of a version in the changelog, without its heading.

    Raises:
        ReleaseError: the version has no heading with a date, or no text.
    """
    heading = rf"^## {re.escape(number)} - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)"
    found = re.search(heading, changelog, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise ReleaseError(f"CHANGELOG.md must have the section `## {number} - YYYY-MM-DD`")
    return found[1].strip()


def check(tag: str) -> None:
    """Check that a tag, the two packages and the changelog have the same version.

    Raises:
        ReleaseError: they differ.
    """
    number = version()
    if tag != f"v{number}":
        raise ReleaseError(f"the tag of version {number} must be v{number} (got {tag!r})")
    native = tomllib.loads((ROOT / "native" / "pyproject.toml").read_text(encoding="utf-8"))
    if (found := native["project"]["version"]) != number:
        raise ReleaseError(f"native/pyproject.toml must have version {number} (got {found})")
    section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), number)


def notes(image: str | None = None) -> str:
    """Return the release notes: the changelog's section, and how to get the image.

    PROJECT_URL is the address of the repository, which relative links need outside of it.
    """
    text = section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version())
    if url := os.environ.get("PROJECT_URL"):
        text = re.sub(r"\]\((?!https?:|#)", f"]({url}/blob/v{version()}/", text)
    if image is not None:
        parse(image)
        text += f"""

### Image

`{image}`, for linux/amd64 and linux/arm64, with an SBOM, its provenance and a signature of cosign.
The attached `fillmask-{version()}-k8s.tar.gz` contains `k8s/`, whose manifests pull this image."""
    # GitHub shows each line break of a release
    return re.sub(r"(?<=\S)\n *(?=[^\s#-])", " ", text)


def parse(image: str) -> re.Match[str]:
    """Return the name and the digest of an image.

    Raises:
        ReleaseError: the image has another form.
    """
    found = IMAGE.fullmatch(image)
    if found is None:
        raise ReleaseError(f"the image must be NAME@sha256:DIGEST (got {image!r})")
    return found


def manifests(image: str, output: Path) -> None:
    """Write an archive of k8s/ in which every manifest of the service pulls one image.

    The overlay `local` runs an image that you build, so it stays in the checkout.
    """
    parts = parse(image)
    pinned = rf"\1    newName: {parts['name']}\n    digest: {parts['digest']}\n"
    with tempfile.TemporaryDirectory() as scratch:
        k8s = Path(scratch) / "k8s"
        shutil.copytree(ROOT / "k8s", k8s, ignore=shutil.ignore_patterns("local"))
        for path in k8s.rglob("kustomization.yaml"):
            text = path.read_text(encoding="utf-8")
            path.write_text(ENTRY.sub(pinned, text), encoding="utf-8")
        with tarfile.open(output, "w:gz") as archive:
            archive.add(k8s, "k8s")


def main(arguments: list[str]) -> int:
    """Run a command and return the exit code."""
    try:
        match arguments:
            case ["check", tag]:
                check(tag)
            case ["notes", *image] if len(image) <= 1:
                print(notes(*image))
            case ["manifests", image, output]:
                manifests(image, Path(output))
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except ReleaseError as error:
        print(f"Error: {error}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
