"""Two releases in one cluster. The second release is the overlay of docs/deploy.md."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.deploy import files, kustomize, monitoring
from tests.deploy.kustomize import Objects

FIRST = "fillmask"
PRODUCTION = [files.K8S / "overlays" / "production", files.K8S / "monitoring"]
EXAMPLES = [files.K8S / "examples" / name for name in ("whole-file", "pretraining")]
UNAVAILABLE = "FillmaskUnavailable"


class Releases(NamedTuple):
    first: Objects
    second: Objects

    @property
    def in_one_namespace(self) -> bool:
        first, second = ({kustomize.identity(each)[1] for each in objects} for objects in self)
        return bool((first & second) - {""})


def of_production(*, in_one_namespace: bool = False) -> Releases:
    """Return two releases of the overlay `production`, each with the examples."""
    overlay = second_overlay()
    overlay["resources"] += EXAMPLES
    if in_one_namespace:
        overlay = with_one_namespace(overlay)
    return Releases(applied([*PRODUCTION, *EXAMPLES]), kustomize.overlaid(overlay))


def of_directories(*directories: Path) -> Releases:
    """Return two releases of other kustomizations."""
    overlay = second_overlay() | {"resources": directories, "transformers": []}
    return Releases(applied(directories), kustomize.overlaid(overlay))


def applied(directories: Sequence[Path]) -> Objects:
    return [each for path in directories for each in kustomize.applied(path, FIRST)]


def second_overlay() -> dict[str, Any]:
    """Return the overlay of docs/deploy.md."""
    overlays = files.objects_of_the_page("Kustomization")
    (overlay,) = (each for each in overlays if "nameSuffix" in each)
    return files.with_absolute_paths(overlay)


def with_one_namespace(overlay: dict[str, Any]) -> dict[str, Any]:
    """Return the overlay with the changes that docs/deploy.md describes for one namespace."""
    (addition,) = (each for each in files.yaml_blocks(files.DEPLOY_PAGE) if "kind" not in each)
    assert addition.keys() == {"patches"}
    patches = [*overlay["patches"], *addition["patches"]]
    return overlay | {"namespace": FIRST, "patches": patches}


def service_of(objects: Objects) -> dict[str, Any]:
    """Return the Service of the release, not that of an example."""
    label = "app.kubernetes.io/name"
    services = (each for each in objects if each["kind"] == "Service")
    (found,) = (each for each in services if each["metadata"]["labels"][label] == "fillmask")
    return found


def own_labels(objects: Objects) -> dict[str, str]:
    """Return the labels that Prometheus adds to the metrics of a release."""
    service = service_of(objects)["metadata"]
    return {"namespace": service["namespace"], "job": service["name"]}


def alert_of(objects: Objects) -> dict[str, Any]:
    """Return the rule that names the release."""
    (found,) = (rule for rule in monitoring.rules(objects) if rule["alert"] == UNAVAILABLE)
    return found
