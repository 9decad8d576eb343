"""Contenders over HTTP with the CPU settings that their own documentation recommends."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from benchmarks.comparison.engines.ctranslate2_engine import HEADS
from benchmarks.comparison.workspace import Workspace
from fillmask.registry.graph_choice import Native

# With the default of 350 ms the service rejects some requests of 32 clients to a large fp32 model.
# The other contenders reject none.
MAX_WAIT_MS = 60_000
OURS_INT8, OURS_FP32 = "fillmask int8", "fillmask fp32"
OURS_FUSED = "fillmask int8, fused operators"
# precision and the setting `native` by name
OURS: dict[str, tuple[str, Native]] = {
    OURS_INT8: ("int8", "off"),
    OURS_FUSED: ("int8", "auto"),
    OURS_FP32: ("fp32", "off"),
}
ONNXRUNTIME = "onnxruntime, all logits"


@dataclass(frozen=True, slots=True)
class Setting:
    """Setting of a contender.

    Attributes:
        label: description for docs/performance.md.
        arguments: arguments that follow the command of the contender.
    """

    label: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Contender:
    """Contender in the comparison, with its own row in the tables of docs/performance.md.

    Attributes:
        name: label of the row.
        command: command without settings and port.
        settings: possible settings. A trial with 8 clients selects the fastest one.
        environment: kind of installation (`installed_size`).
        exact: whether the contender computes in fp32 and must agree with transformers on every
            mask.
        ready_path: path that returns 200 when the contender is ready.
        note: description of the contender for docs/performance.md.
    """

    name: str
    command: tuple[str, ...]
    settings: tuple[Setting, ...]
    environment: str
    exact: bool
    note: str
    ready_path: str = "/health/ready"


def contenders(workspace: Workspace, cpus: int) -> list[Contender]:
    """Return all contenders in the order of measurement.

    Args:
        cpus: number of CPUs of a server.
    """
    return [
        *(_ours(workspace, name) for name in OURS),
        Contender(
            name="transformers pipeline",
            command=module_command("pipeline", "--checkpoint", str(workspace.checkpoint)),
            settings=runs_by_threads(cpus),
            environment="transformers",
            exact=True,
            note="The fill-mask pipeline. transformers' guides advise one run at a time with all "
            "threads, and one text per run on CPUs.",
        ),
        Contender(
            name="LitServe + transformers",
            command=module_command("litserve_batches", "--checkpoint", str(workspace.checkpoint)),
            settings=tuple(
                Setting(
                    f"{_split_threads('worker', workers, cpus)} and batches of up to 8 requests",
                    (
                        *("--workers", str(workers), "--threads", str(cpus // workers)),
                        *("--max-batch-size", "8"),
                    ),
                )
                for workers in sorted({1, cpus})
            ),
            environment="litserve",
            exact=True,
            ready_path="/health",
            note="The fill-mask pipeline. Up to 8 requests that arrive within 5 ms share a padded "
            "run.",
        ),
        Contender(
            name=ONNXRUNTIME,
            command=_session(workspace, "onnxruntime", str(workspace.full_logits)),
            settings=runs_by_threads(cpus),
            environment="onnxruntime",
            exact=True,
            note="The graph of torch.onnx.export(dynamo=True), with default optimizations and no "
            "spinning threads.",
        ),
        *(_openvino(workspace, precision, cpus) for precision in ("fp32", "bf16", "int8")),
        Contender(
            name="CTranslate2 int8",
            command=_session(
                workspace, "ctranslate2", str(workspace.ctranslate2), "--runs", str(cpus)
            ),
            settings=tuple(
                Setting(f"{_split_threads('run', cpus, cpus)}, head in {head}", ("--head", head))
                for head in HEADS
            ),
            environment="ctranslate2",
            exact=False,
            note="The encoder. CTranslate2 has no masked-language-model head, so another library "
            "computes the head at the masks.",
        ),
    ]


def _ours(workspace: Workspace, name: str) -> Contender:
    precision, native = OURS[name]
    return Contender(
        name=name,
        command=our_command(workspace, name),
        settings=(
            Setting(f"a maximum wait of {MAX_WAIT_MS // 1000} s and otherwise default values"),
        ),
        environment="fillmask",
        exact=precision == "fp32",
        note=f"`fillmask-serve --native {native}` with the {precision} bundle.",
    )


def our_command(workspace: Workspace, name: str) -> tuple[str, ...]:
    """Return the command that serves a bundle of this project.

    Args:
        name: name in OURS.
    """
    precision, native = OURS[name]
    service = (sys.executable, "-m", "fillmask", "--max-wait-ms", str(MAX_WAIT_MS))
    return (*service, "--native", native, "--bundle", str(workspace.bundle(precision)))


def _openvino(workspace: Workspace, precision: str, cpus: int) -> Contender:
    streams = f"{cpus} streams"
    if precision == "int8":
        graph = workspace.full_logits_int8
        settings = tuple(
            Setting(f"{streams} with {label} between int8 operations", ("--precision", hint))
            for label, hint in (("fp32", "f32"), ("bf16", "bf16"))
        )
        weights = "after NNCF's post-training quantization for transformers"
    else:
        graph = workspace.full_logits
        hint = "f32" if precision == "fp32" else "bf16"
        settings = (Setting(streams, ("--precision", hint)),)
        weights = f"with the inference precision hint {hint}"
    return Contender(
        name=f"OpenVINO {precision}, all logits",
        command=_session(workspace, "openvino", str(graph), "--runs", str(cpus)),
        settings=settings,
        environment="openvino",
        exact=precision == "fp32",
        note=f'The graph of "{ONNXRUNTIME}" {weights}, the throughput hint, one stream per CPU '
        "and one inference request per thread.",
    )


def runs_by_threads(cpus: int) -> tuple[Setting, ...]:
    """Return the settings with one run on all CPUs and with one run per CPU."""
    return tuple(
        Setting(
            _split_threads("run", runs, cpus),
            ("--runs", str(runs), "--threads", str(cpus // runs)),
        )
        for runs in sorted({1, cpus})
    )


def _split_threads(unit: str, count: int, cpus: int) -> str:
    """Describe a number of runs or workers and the number of threads of each."""
    threads = f"{cpus // count} thread{'s' if cpus > count else ''}"
    return (
        f"1 {unit} with {threads}"
        if count == 1
        else f"{count} concurrent {unit}s with {threads} each"
    )


def _session(workspace: Workspace, engine: str, graph: str, *more: str) -> tuple[str, ...]:
    return module_command(
        "session", "--size", workspace.size, "--engine", engine, "--graph", graph, *more
    )


def module_command(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that starts a module of `benchmarks.comparison.servers`."""
    return (sys.executable, "-m", f"benchmarks.comparison.servers.{name}", *arguments)
