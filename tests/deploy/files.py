"""Readers of the deployment files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fillmask.settings import ENV_PREFIX, Settings

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
DOCKERIGNORE = ROOT / ".dockerignore"
COMPOSE = ROOT / "compose.yaml"
K8S = ROOT / "k8s"
BASE = K8S / "base"
DEPLOY_PAGE = ROOT / "docs" / "deploy.md"
OPERATIONS_PAGE = ROOT / "docs" / "operations.md"

DEFAULT_GRACE_S: int = Settings.model_fields["shutdown_grace_s"].default
# fields of a kustomization.yaml that name directories
DIRECTORIES = {"resources", "components", "transformers"}


@dataclass(frozen=True, slots=True)
class Instruction:
    """Instruction of a Dockerfile, e.g. `COPY`, with its value."""

    name: str
    value: str


def stages(dockerfile: str) -> list[list[Instruction]]:
    """Return the instructions of each stage of a Dockerfile, in order."""
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    logical = re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()
    found: list[list[Instruction]] = []
    for line in filter(str.strip, logical):
        name, _, value = line.partition(" ")
        if name == "FROM":
            found.append([])
        found[-1].append(Instruction(name, value.strip()))
    return found


def values(stage: Sequence[Instruction], name: str) -> list[str]:
    """Return the values of all instructions of one name in a stage."""
    return [instruction.value for instruction in stage if instruction.name == name]


def assignments(stage: Sequence[Instruction], name: str) -> dict[str, str]:
    """Return the `key=value` pairs of a stage's `ENV` or `LABEL`."""
    pairs = re.findall(r'([\w.]+)=("[^"]*"|\S+)', " ".join(values(stage, name)))
    return {key: value.strip('"') for key, value in pairs}


STAGES = stages(DOCKERFILE.read_text())
IMAGE = STAGES[-1]  # the serving image


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def overlays(page: Path) -> list[dict[str, Any]]:
    """Return the overlays of a page, with absolute paths."""
    blocks = (each for each in yaml_blocks(page) if each.get("kind") == "Kustomization")
    return [with_absolute_paths(each) for each in blocks]


def with_absolute_paths(overlay: dict[str, Any]) -> dict[str, Any]:
    """Return an overlay of a page, beside the checkout `fillmask`, with absolute paths."""
    return overlay | {
        key: [ROOT / Path(path).relative_to("../fillmask") for path in overlay[key]]
        for key in DIRECTORIES & overlay.keys()
    }


def yaml_blocks(page: Path) -> list[dict[str, Any]]:
    """Return the contents of the YAML blocks of a page."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [yaml.safe_load(block) for block in blocks]


def image_settings() -> Settings:
    return settings_of(assignments(IMAGE, "ENV"))


def settings_of(variables: Mapping[str, str]) -> Settings:
    """Return the settings from FILLMASK_ variables, with defaults for the other settings."""
    chosen = {
        name.removeprefix(ENV_PREFIX).lower(): value
        for name, value in variables.items()
        if name.startswith(ENV_PREFIX)
    }
    return Settings.model_validate(chosen)


def image_user() -> tuple[int, int]:
    """Return the ids of the image's user and group."""
    user, group = values(IMAGE, "USER")[-1].split(":")
    return int(user), int(group)
