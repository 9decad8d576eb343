"""Readers of the deployment files."""

import json
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

DEFAULT_PORT: int = Settings.model_fields["port"].default
DEFAULT_GRACE_S: int = Settings.model_fields["shutdown_grace_s"].default
VARIABLES = {ENV_PREFIX + name.upper() for name in Settings.model_fields}


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


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def objects_of_the_page(kind: str) -> list[dict[str, Any]]:
    """Return the objects of one kind in the YAML blocks of docs/deploy.md."""
    return [each for each in yaml_blocks(DEPLOY_PAGE) if each.get("kind") == kind]


def overlay_of_the_page() -> dict[str, Any]:
    """Return the first overlay of docs/deploy.md, with absolute paths."""
    return with_absolute_paths(objects_of_the_page("Kustomization")[0])


def with_absolute_paths(overlay: dict[str, Any]) -> dict[str, Any]:
    """Return an overlay of a page, beside the checkout `fillmask`, with absolute paths."""
    return overlay | {
        key: [ROOT / Path(path).relative_to("../fillmask") for path in overlay[key]]
        for key in ("resources", "components", "transformers")
        if key in overlay
    }


def yaml_blocks(page: Path) -> list[dict[str, Any]]:
    """Return the contents of the YAML blocks of a page."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [yaml.safe_load(block) for block in blocks]


def health_check_command() -> list[str]:
    """Return the words of the image's HEALTHCHECK, which is in exec form."""
    (check,) = values(stages(DOCKERFILE.read_text())[-1], "HEALTHCHECK")
    words: list[str] = json.loads(check.partition("CMD ")[2])
    return words


def compose_health_check() -> list[str]:
    """Return the words of the service's health check in compose.yaml, which is in exec form."""
    words: list[str]
    form, *words = read_yaml(COMPOSE)["services"]["fillmask"]["healthcheck"]["test"]
    assert form == "CMD"
    return words


def image_settings() -> Settings:
    variables = assignments(stages(DOCKERFILE.read_text())[-1], "ENV")
    return settings_of(variables)


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
    user, group = values(stages(DOCKERFILE.read_text())[-1], "USER")[-1].split(":")
    return int(user), int(group)
