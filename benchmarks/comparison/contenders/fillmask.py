"""fillmask, from the checkpoint's bundles."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from benchmarks.comparison.contenders.contender import Contender, Job, Setting, Variant
from benchmarks.comparison.texts import TOP_K
from benchmarks.comparison.workspace import ROOT, Workspace
from fillmask.bundles.bundle import read_bundle
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.engine.request_queue import LaneQueue
from fillmask.engine.runtime import Runtime
from fillmask.models.graph_choice import Native, choose_graph
from fillmask.settings import Settings
from fillmask.tokenization.encoded_text import EncodedText

# With the default of 350 ms the service rejects some requests of 32 clients to a large fp32 model.
# The other contenders reject none.
MAX_WAIT_MS = 60_000
INT8, FP32, FUSED = "fillmask int8", "fillmask fp32", "fillmask int8, fused operators"
# precision and the setting `native` by name
OURS: dict[str, tuple[str, Native]] = {
    INT8: ("int8", "off"),
    FUSED: ("int8", "auto"),
    FP32: ("fp32", "off"),
}


def busy(workspace: Workspace, _cpus: int) -> list[Contender]:
    """Return a row for each graph."""
    rows = []
    for name, (precision, native) in OURS.items():
        service = (sys.executable, "-m", "fillmask", "--max-wait-ms", str(MAX_WAIT_MS))
        command = (*service, "--native", native, "--bundle", str(workspace.bundle(precision)))
        label = f"a maximum wait of {MAX_WAIT_MS // 1000} s and otherwise default values"
        rows.append(
            Contender(
                name=name,
                settings=(Setting(label, command),),
                requirements=(str(ROOT),),
                exact=precision == "fp32",
                note=f"`fillmask-serve --native {native}` with the {precision} bundle.",
            )
        )
    return rows


alone = busy


def variants(workspace: Workspace) -> list[Variant]:
    """Return a row for each graph, in batches up to the service's token budget."""

    def jobs(name: str, texts: Sequence[EncodedText], _threads: int) -> list[Job]:
        runtime = load(workspace, name)

        def pack_run_split(passes: Sequence[ModelPass]) -> object:
            batch = Batch.pack(passes)
            return batch.unpack(runtime.run(batch))

        special = len(workspace.tokenizer().special_token_ids)
        passes = (_pass(text, TOP_K + special) for text in texts)
        return [(len(group), partial(pack_run_split, group)) for group in by_tokens(passes)]

    return [Variant(name, {"batches by tokens": partial(jobs, name)}) for name in OURS]


def load(workspace: Workspace, name: str) -> Runtime:
    """Load a graph by its name in OURS.

    Raises:
        RuntimeError: the graph must be fused, and this machine or the bundle has none.
    """
    precision, native = OURS[name]
    choice = choose_graph(read_bundle(workspace.bundle(precision)), native)
    if name == FUSED and choice.kind == "stock":
        raise RuntimeError(choice.reason)
    return Runtime(choice.path, operators=choice.operators, packed=choice.packed)


def by_tokens(passes: Iterable[ModelPass]) -> Iterator[list[ModelPass]]:
    """Yield batches up to the service's token budget in order of arrival, from its own queue."""
    budget: int = Settings.model_fields["max_batch_tokens"].default
    waiting: LaneQueue[ModelPass] = LaneQueue(lambda one: one.tokens)
    waiting.extend(passes, bulk=False)
    while waiting:
        yield waiting.next_batch(budget)


def _pass(text: EncodedText, top_k: int) -> ModelPass:
    """Return the pass that fills all masks of a text."""
    targets = no_targets(len(text.mask_positions))
    return ModelPass(text.input_ids, text.mask_positions, top_k, targets)
