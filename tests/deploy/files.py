"""The deployment files, read."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from service.settings import ENV_PREFIX, Settings

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
DOCKERIGNORE = ROOT / ".dockerignore"
COMPOSE = ROOT / "compose.yaml"
K8S = ROOT / "k8s"
BASE = K8S / "base"

DEFAULT_PORT: int = Settings.model_fields["port"].default
DEFAULT_GRACE_S: int = Settings.model_fields["shutdown_grace_s"].default
VARIABLES = {ENV_PREFIX + name.upper() for name in Settings.model_fields}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a Dockerfile: `COPY` and all that follows it."""

    name: str
    value: str


def stages(dockerfile: str) -> list[list[Instruction]]:
    """The instructions of each stage of a Dockerfile, in order."""
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
    """What follows each instruction of that name in a stage."""
    return [instruction.value for instruction in stage if instruction.name == name]


def assignments(stage: Sequence[Instruction], name: str) -> dict[str, str]:
    """The `key=value` pairs of a stage's `ENV` or `LABEL`."""
    pairs = re.findall(r'([\w.]+)=("[^"]*"|\S+)', " ".join(values(stage, name)))
    return {key: value.strip('"') for key, value in pairs}


def read_yaml(path: Path) -> Any:
    """The one document of a YAML file."""
    return yaml.safe_load(path.read_text())


def health_check_command() -> list[str]:
    """The words of the image's HEALTHCHECK, which is in exec form."""
    (check,) = values(stages(DOCKERFILE.read_text())[-1], "HEALTHCHECK")
    words: list[str] = json.loads(check.partition("CMD ")[2])
    return words


def image_user() -> tuple[int, int]:
    """The numbers of the user and the group that the image runs as."""
    user, group = values(stages(DOCKERFILE.read_text())[-1], "USER")[-1].split(":")
    return int(user), int(group)
