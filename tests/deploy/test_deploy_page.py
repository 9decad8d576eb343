"""docs/deploy.md says what the files do: commands, settings, names and figures are theirs."""

import json
import re
from pathlib import Path
from typing import Any

import yaml
from fastapi.testclient import TestClient

from benchmarks import generated_block
from benchmarks.load import capacity, overload, pod_size
from service import __version__
from service.app import create_app
from service.settings import Settings
from tests.deploy import files, kustomize

PAGE = pod_size.PAGE.read_text(encoding="utf-8")
BASE = kustomize.rendered(files.BASE)
PRODUCTION = kustomize.rendered(files.K8S / "overlays" / "production")
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
COMMANDS = "\n".join(code for language, code in BLOCK.findall(PAGE) if language == "sh")


def asked_for(what: str) -> str:
    """The value in the table of what the base asks for."""
    table = PAGE.split("What the base asks for:\n\n")[1].split("\n\n")[0]
    (value,) = re.findall(rf"^\| {re.escape(what)} \| ([^|]+) \|", table, re.MULTILINE)
    return str(value).strip()


def settings() -> dict[str, str]:
    """The settings of the base's ConfigMap."""
    data: dict[str, str] = kustomize.one(BASE, "ConfigMap")["data"]
    return data


def scaled() -> dict[str, Any]:
    """What production scales by."""
    spec: dict[str, Any] = kustomize.one(PRODUCTION, "ScaledObject")["spec"]
    return spec


def test_every_setting_exists() -> None:
    """No setting was renamed or removed."""
    named = set(re.findall(r"FILLMASK_[A-Z0-9_]*[A-Z0-9]", PAGE))
    assert named
    assert named <= files.VARIABLES


def test_every_link_leads_somewhere() -> None:
    """Files of this repository, and titles of this page."""
    titles = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)]+)\)", PAGE):
        if target.startswith("#"):
            assert target[1:] in titles, target
        else:
            assert (pod_size.PAGE.parent / target).exists(), target


def test_every_kustomization_of_a_command_renders() -> None:
    """What is applied is there."""
    applied = set(re.findall(r"apply --kustomize (\S+)", COMMANDS))
    assert applied
    for directory in applied:
        assert kustomize.rendered(files.ROOT / directory)


def test_every_kustomization_is_on_the_page() -> None:
    """The base, each overlay and each component are linked to."""
    for path in kustomize.KUSTOMIZATIONS:
        if path.parent in {files.BASE, *(files.K8S / "overlays").iterdir()} | set(
            kustomize.COMPONENTS
        ):
            assert f"(../{path.relative_to(files.ROOT)})" in PAGE


def test_every_make_target_and_module_exists() -> None:
    """What a reader is told to run can be run."""
    makefile = (files.ROOT / "Makefile").read_text()
    for target in re.findall(r"`make ([\w-]+)`", PAGE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for module in re.findall(r"python -m ([\w.]+)", PAGE):
        assert Path(files.ROOT, *module.split(".")).with_suffix(".py").exists()


def test_image_is_of_this_version() -> None:
    """Wherever the page names it."""
    assert set(re.findall(r"fillmask:([\d.]+\d)", PAGE)) == {__version__}


def test_docker_waits_longer_than_the_service() -> None:
    """The command shown does not cut off accepted requests."""
    stop_timeout_s = re.search(r"--stop-timeout (\d+)", COMMANDS)
    assert stop_timeout_s
    assert int(stop_timeout_s[1]) > files.DEFAULT_GRACE_S


def test_overlay_of_the_page_renders(tmp_path: Path) -> None:
    """It takes production, a component, an image by its digest and a setting."""
    (overlay,) = (code for language, code in BLOCK.findall(PAGE) if language == "yaml")
    (tmp_path / "fillmask").symlink_to(files.ROOT)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kustomization.yaml").write_text(overlay)
    objects = kustomize.render(tmp_path / "mine")
    image = yaml.safe_load(overlay)["images"][0]
    (pod,) = kustomize.pods(objects)
    (container,) = pod["containers"]
    assert container["image"] == f"{image['newName']}@{image['digest']}"
    chosen = kustomize.one(objects, "ConfigMap")["data"]
    assert chosen.items() >= {**settings(), "FILLMASK_MAX_WAIT_MS": "250"}.items()
    assert pod["volumes"][0]["image"]


def test_table_of_the_base_is_the_base() -> None:
    """CPUs, memory, pods and seconds."""
    (pod,) = kustomize.pods(BASE)
    limits = pod["containers"][0]["resources"]["limits"]
    assert (asked_for("CPUs"), asked_for("memory")) == (limits["cpu"], limits["memory"])
    scaler = kustomize.one(BASE, "HorizontalPodAutoscaler")["spec"]
    assert asked_for("pods") == f"{scaler['minReplicas']} to {scaler['maxReplicas']}"
    assert asked_for("drain") == f"{settings()['FILLMASK_DRAIN_DELAY_S']} s"
    assert asked_for("grace") == f"{settings()['FILLMASK_SHUTDOWN_GRACE_S']} s"
    assert asked_for("until the kubelet kills") == f"{pod['terminationGracePeriodSeconds']} s"


def test_prose_has_the_manifests_figures() -> None:
    """Of production, of the route, of reloading, of the formula."""
    words = " ".join(PAGE.split())
    assert f"from {scaled()['minReplicaCount']} pods to {scaled()['maxReplicaCount']}" in words
    (rule,) = kustomize.one(PRODUCTION, "HTTPRoute")["spec"]["rules"]
    assert f"the route waits {rule['timeouts']['request'].removesuffix('s')} s" in words
    assert f"every {settings()['FILLMASK_RELOAD_EVERY_S']} s" in words
    (waiting,) = (each for each in scaled()["triggers"] if each["type"] == "prometheus")
    assert f"{int(waiting['metadata']['threshold']):,} tokens waiting" in words
    formula = (
        "pods = ceil(requests/s x tokens a request / "
        f"(tokens/s of a pod x {capacity.UTILISATION})) + {capacity.SPARE}"
    )
    assert formula in words
    scaler = kustomize.one(BASE, "HorizontalPodAutoscaler")["spec"]
    target = scaler["metrics"][0]["resource"]["target"]["averageUtilization"]
    assert target == 100 * capacity.UTILISATION
    assert f"texts of {pod_size.tokens_per_request():.0f} tokens" in words


def test_requests_and_limits_come_from_the_measurement() -> None:
    """The pod is of a size that was measured, and has twice its memory and not much more."""
    (pod,) = kustomize.pods(BASE)
    limits = pod["containers"][0]["resources"]["limits"]
    measured = [size for size in pod_size.read_sizes() if size.cpus == int(limits["cpu"])]
    assert measured
    memory_mb = int(limits["memory"].removesuffix("Mi")) * 2**20 / 1e6
    peak_mb = max(size.peak_mb for size in measured)
    assert 2 * peak_mb < memory_mb < 4 * peak_mb


def test_queue_that_scales_is_a_fraction_of_a_seconds_work() -> None:
    """What the page says of the threshold is so at the measured speed."""
    (waiting,) = (each for each in scaled()["triggers"] if each["type"] == "prometheus")
    seconds = float(waiting["metadata"]["threshold"]) / capacity.pod_tokens_per_s()
    assert 1 / 8 < seconds < 1 / 5
    assert Settings().max_wait_ms == 350


def test_readme_has_the_figures_of_an_overload() -> None:
    """Those that the page was given by the script."""
    page = generated_block.read(pod_size.PAGE, overload.NAME)
    goodput = re.search(r"goodput (\d+) % of capacity", page)
    p99 = re.search(r"\| 5 times as many, 60 s \|.* (\d+) \|$", page, flags=re.MULTILINE)
    assert goodput is not None
    assert p99 is not None
    readme = (pod_size.PAGE.parents[1] / "README.md").read_text(encoding="utf-8")
    assert (
        f"| {goodput[1]} % of capacity and {p99[1]} ms | `benchmarks/load/overload.py` |" in readme
    )


def test_first_rows_of_the_simulation_are_its_own() -> None:
    """The page's table is what the simulation makes of the page's figures."""
    rate = capacity.RATES[0]
    assert capacity.HEAD in PAGE
    assert "\n".join(capacity.rows(rate)) in PAGE
    for other in capacity.RATES[1:]:
        assert f"| {other:,} |" in PAGE


def test_request_of_the_page_is_answered() -> None:
    """The body shown for KServe is one that the service takes."""
    (body,) = re.findall(r"-d '(\{.*?\})'", COMMANDS, re.DOTALL)
    (path,) = re.findall(r"example\.com(/v2\S+)", COMMANDS)
    with TestClient(create_app(Settings())) as client:
        assert client.post(path, json=json.loads(body)).status_code == 200
