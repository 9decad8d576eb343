"""The loader of models, which reads a bundle, runs its graph and verifies its results."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from fillmask import __version__
from fillmask.bundles.bundle import WEIGHTS_FILE, Bundle, read_bundle
from fillmask.bundles.description import Pooling
from fillmask.bundles.discovery import Fingerprint, fingerprint
from fillmask.bundles.validation import unreadable
from fillmask.engine.batcher import Batcher
from fillmask.engine.probe import Probe
from fillmask.engine.runtime import Runtime
from fillmask.engine.warm_up import warm_up
from fillmask.errors import BundleError, StartupError, safe_traceback
from fillmask.models.graph_choice import GraphChoice, choose_graph, stock_graph
from fillmask.models.limits import limits_of
from fillmask.models.served_model import ModelInfo, ServedModel
from fillmask.models.time_limit import TimeLimit
from fillmask.models.weights_watch import watch_weights
from fillmask.observability.request_context import Tracer, reading_golden_texts
from fillmask.parameters.limits import Limits
from fillmask.settings import Settings
from fillmask.tasks.pipeline import Parts
from fillmask.tasks.task import tasks_of
from fillmask.tokenization.tokenizer import Tokenizer

if TYPE_CHECKING:  # an import of prometheus-client takes 50 ms, and the library has no metrics
    from fillmask.observability.metrics import Metrics

_log = logging.getLogger(__name__)

# the time that the manifests in k8s/ give a start
VERIFICATION_LIMIT_S = 120.0
# the default of max_top_k
_WARM_UP_TOP_K = 100


async def load_model(
    settings: Settings,
    on_failure: Callable[[str], None],
    path: Path | None = None,
    *,
    background: bool = False,
    metrics: "Metrics | None" = None,
    tracer: Tracer | None = None,
) -> ServedModel:
    """Load and verify a model.

    Args:
        settings: limits, number of threads and path of the bundle.
        on_failure: function that the event loop calls with a message when the model stops
            computing.
        path: path of the bundle. None means the bundle of the settings.
        background: whether to read the files on another thread, because the event loop serves
            requests.
        metrics: metrics of the batches, by default none.
        tracer: tracer of tokenization and batches, by default none.

    Returns:
        The loaded model. Its `aclose` finishes the accepted requests and frees the model.

    Raises:
        StartupError: the bundle or a setting is invalid.
    """
    path = path or settings.bundle
    with as_bundle_errors(path):
        # The first load runs on this thread, because another thread keeps memory after the load.
        bundle, seen = await asyncio.to_thread(_read, path) if background else _read(path)
    load = partial(
        _load, settings, on_failure, seen, background=background, metrics=metrics, tracer=tracer
    )
    choice = choose_graph(bundle, settings.native)
    try:
        model = await load(choice)
    except BundleError as error:
        if choice.kind == "stock":
            raise
        choice = stock_graph(bundle, f"the fused graph does not work: {error}")
        model = await load(choice)
    if bundle.precision == "int8":
        _log.info("the model %s has the %s graph (%s)", bundle.name, choice.kind, choice.reason)
    return model


async def _load(
    settings: Settings,
    on_failure: Callable[[str], None],
    seen: Fingerprint,
    choice: GraphChoice,
    *,
    background: bool,
    metrics: "Metrics | None",
    tracer: Tracer | None,
) -> ServedModel:
    """Load and verify a model with one of its graphs.

    Args:
        seen: state of the bundle's files before they were read.
    """
    bundle = choice.bundle
    limit = TimeLimit(VERIFICATION_LIMIT_S)
    async with AsyncExitStack() as closing:
        with as_bundle_errors(bundle.path), limit:
            arguments = (settings, seen, choice, limit)
            loaded = await asyncio.to_thread(_warm, *arguments) if background else _warm(*arguments)
            limits, runtime, tokenizer, throughput = loaded
            closing.push_async_callback(asyncio.to_thread, runtime.close)
            batcher = Batcher(
                runtime.run,
                workers=settings.threads,
                max_batch_tokens=settings.max_batch_tokens,
                max_waiting_tokens=settings.max_waiting_tokens,
                max_bulk_tokens=settings.max_bulk_tokens,
                max_wait_s=settings.max_wait_ms / 1000,
                on_failure=on_failure,
                metrics=None if metrics is None else metrics.for_model(bundle.name),
                tracer=tracer,
            )
            closing.push_async_callback(batcher.close)
            batcher.record_throughput(*throughput)
            if not runtime.weights_copied:
                watching = asyncio.create_task(
                    watch_weights(bundle, seen[WEIGHTS_FILE], on_failure)
                )
                closing.callback(watching.cancel)
            with reading_golden_texts():
                parts = Parts(
                    bundle,
                    tokenizer,
                    batcher,
                    settings.max_masks,
                    settings.max_passes,
                    settings.auto_truncate,
                    tracer,
                )
                pipelines = {task.name: await task.load(parts) for task in tasks_of(bundle.tasks)}
        return ServedModel(
            bundle,
            seen,
            _info(choice, limits, settings),
            pipelines,
            batcher,
            Probe(batcher, bundle.mask_token_id, fills="fill-mask" in bundle.tasks),
            closing.pop_all(),
        )


def _info(choice: GraphChoice, limits: Limits, settings: Settings) -> ModelInfo:
    bundle = choice.bundle
    head = bundle.classification
    return ModelInfo(
        name=bundle.name,
        license=bundle.license,
        description=bundle.description,
        tasks=bundle.tasks,
        pairs=bundle.pairs,
        labels=bundle.labels,
        problem_type=None if head is None else head.problem_type,
        mask_token=bundle.mask_token,
        limits=limits,
        precision=bundle.precision,
        graph=choice.kind,
        architecture=bundle.architecture,
        version=__version__,
        threads=settings.threads,
        model_id=bundle.name,
        model_dtype="float32" if bundle.precision == "fp32" else bundle.precision,
        model_type=_model_type(bundle),
        served_model_name=bundle.name,
        max_concurrent_requests=settings.max_waiting_tokens // limits.max_tokens,
        max_input_length=limits.max_tokens,
        max_batch_tokens=settings.max_batch_tokens,
        max_client_batch_size=limits.max_texts,
        auto_truncate=settings.auto_truncate,
        tokenization_workers=3,  # the event loop, and two threads for long texts
    )


def _model_type(bundle: Bundle) -> dict[str, dict[str, JsonValue]]:
    if bundle.classification is not None:
        labels = bundle.classification.labels
        names: dict[str, JsonValue] = {
            "id2label": {str(index): label for index, label in enumerate(labels)},
            "label2id": {label: index for index, label in enumerate(labels)},
        }
        return {"reranker" if bundle.pairs and len(labels) == 1 else "classifier": names}
    return {} if bundle.sparse is None else {"embedding": {"pooling": "splade"}}


def _read(path: Path) -> tuple[Bundle, Fingerprint]:
    """Return a verified bundle and the state of its files before the verification."""
    seen = fingerprint(path)
    return read_bundle(path), seen


def _warm(
    settings: Settings, seen: Fingerprint, choice: GraphChoice, limit: TimeLimit
) -> tuple[Limits, Runtime, Tokenizer, tuple[int, float]]:
    """Load a graph and the tokenizer, and run the graph for the first time."""
    bundle = choice.bundle
    limits = limits_of(settings, bundle)
    # the model loads before the tokenizer, because loading the model needs the most memory
    threads = settings.threads if settings.intra_op_parallelism else 1
    with ExitStack() as closing:
        runtime = Runtime(choice.path, threads, operators=choice.operators, packed=choice.packed)
        closing.callback(runtime.close)
        _check_tasks(choice, runtime)
        tokenizer = Tokenizer.from_bundle(bundle)
        if fingerprint(bundle.path) != seen:  # the files in memory may not be the verified ones
            raise BundleError(
                "The bundle is invalid: its files change during loading; replace a bundle by "
                "renaming its directory."
            )
        limit.start(runtime.stop)
        throughput = warm_up(
            runtime.run,
            token_id=bundle.mask_token_id,
            max_tokens=bundle.max_tokens,
            max_batch_tokens=settings.max_batch_tokens,
            max_masks=settings.max_masks,
            top_k=min(limits.max_top_k, _WARM_UP_TOP_K),
            pooling=_pooling(bundle),
            fills="fill-mask" in bundle.tasks,
        )
        closing.pop_all()
    return limits, runtime, tokenizer, throughput


def _pooling(bundle: Bundle) -> Pooling | None:
    """Return which tokens the head of a bundle reads. None for a model that only fills masks."""
    if bundle.classification is not None:
        return bundle.classification.pooling
    return None if bundle.tasks == ("fill-mask",) else "mean"


def _check_tasks(choice: GraphChoice, runtime: Runtime) -> None:
    """Check that the graph has the outputs and the pooling of the bundle's tasks."""
    bundle, file = choice.bundle, choice.path.name
    if set(runtime.tasks) != set(bundle.tasks):
        raise BundleError(
            f"The bundle is invalid: tasks must be {', '.join(runtime.tasks)}, as in {file} "
            f"(got {', '.join(bundle.tasks)}); export the bundle again."
        )
    head = bundle.classification
    if head is not None and head.pooling != runtime.pooling:
        raise BundleError(
            f"The bundle is invalid: classification.pooling must be {runtime.pooling}, as in "
            f"{file} (got {head.pooling}); export the bundle again."
        )


# what ends a task or the process and says nothing about a bundle
NOT_FAILURES = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)

_log = logging.getLogger(__name__)


@contextmanager
def as_bundle_errors(path: Path) -> Iterator[None]:
    """Convert any other error than a StartupError into a BundleError.

    A panic of the tokenizers library is a BaseException but not an Exception.

    Args:
        path: directory of the bundle.
    """
    try:
        yield
    except (StartupError, *NOT_FAILURES):
        raise
    except OSError as error:
        raise unreadable(path, error) from error
    except MemoryError as error:
        raise BundleError(
            f"The bundle {path} needs more memory than the process has; raise the memory limit or "
            "use a smaller model."
        ) from error
    except BaseException as error:
        _log.debug("the bundle cannot be loaded:\n%s", safe_traceback(error))
        raise BundleError(
            f"The bundle {path} cannot be loaded ({type(error).__name__}); export the bundle again."
        ) from error
