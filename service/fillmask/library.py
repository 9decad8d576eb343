"""fillmask as a Python library: a model that runs its tasks in this process.

What HTTP and the command accept, refuse and answer is the same here, because the same code decides
it. Only the limits that protect a server from its clients are missing.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, Unpack, overload

from fillmask.calls import Calls
from fillmask.concurrency import BackgroundLoop
from fillmask.errors import InvalidRequestError
from fillmask.models.limits import local_settings
from fillmask.models.loader import load_model
from fillmask.models.served_model import ServedModel
from fillmask.parameters.texts import TextPair
from fillmask.parameters.values import describe
from fillmask.tasks.classify.parameters import ClassifyKeywords
from fillmask.tasks.classify.results import LabelScore
from fillmask.tasks.classify_tokens.parameters import ClassifyTokensKeywords
from fillmask.tasks.fill_mask.parameters import FillMaskKeywords
from fillmask.tasks.rerank.parameters import RerankKeywords
from fillmask.tasks.rerank.results import RankedText
from fillmask.tasks.score.parameters import ScoreKeywords
from fillmask.tasks.score.results import TextScore, target_table
from fillmask.tasks.sparse.parameters import SparseKeywords
from fillmask.tasks.sparse.results import SparseEmbedding
from fillmask.tasks.task import CLASSIFY, CLASSIFY_TOKENS, FILL_MASK, SCORE, SPARSE, TASKS

Text = str | TextPair | Mapping[str, str]


class FillMask:
    """A model that fills masks, scores texts, classifies texts or makes sparse vectors.

    Any number of threads and event loops may use an instance at the same time. A pickle holds only
    the arguments, so each worker process opens the bundle again.

    A text is a string, a TextPair or a dict with the keys "text" and "text_pair". Every method also
    takes many texts, in a list or another iterable, and then returns one result per text. For many
    texts, `parameters` has one dict or None per text, which overrides the keyword arguments for
    this text, and `on_error="report"` returns a RejectedText for an invalid text instead of raising
    its error.

    The methods raise InvalidRequestError, a ValueError, for a text or a parameter that they refuse.
    They raise RuntimeError after `close`, and in a process that was forked after the start.

    Args:
        bundle: directory of a bundle from `fillmask-export`. None opens the built-in model.
        threads: number of threads that compute, from 1 to 1024. None means all usable CPUs.

    Raises:
        BundleError: the bundle is invalid. BundleError is a ValueError.
        InvalidRequestError: `threads` is invalid.
    """

    def __init__(
        self, bundle: str | os.PathLike[str] | None = None, *, threads: int | None = None
    ) -> None:
        path = None if bundle is None else Path(bundle).absolute()
        self._reopen = partial(type(self), path, threads=threads)
        settings = local_settings(path, threads)
        self._loop = BackgroundLoop("fillmask")
        try:
            self._model = self._loop.run(load_model(settings, lambda _: None))
            self._calls = Calls(self._model, settings.threads * settings.max_batch_tokens)
        except BaseException:
            self._loop.close()
            raise
        self._forgotten = weakref.finalize(self, _close_elsewhere, self._loop, self._model)
        self._forgotten.atexit = False  # the end of the process frees everything

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._model.name

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks of the model. A model with the task fill-mask also scores texts."""
        return self._model.info.tasks

    @property
    def mask_token(self) -> str:
        """Text that marks a mask, such as [MASK]."""
        return self._model.info.mask_token

    @property
    def max_tokens(self) -> int:
        """Maximum length of a text in tokens, including special tokens."""
        return self._model.info.limits.max_tokens

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Labels of a model that classifies texts, None for other models."""
        return self._model.info.labels

    def fill(self, inputs: Text | Iterable[Text], **options: Unpack[FillMaskKeywords]) -> list[Any]:
        """Return the fills of each mask, best first.

        Args:
            inputs: a text with at least one mask, or many texts.
            options: parameters of POST /fill-mask, which are top_k, targets, granularity,
                max_word_tokens, strategy, order and on_long_text.

        Returns:
            A list of Fill for a text with one mask or with strategy "joint", and one such list per
            mask for a text with several masks. A list of these for many texts.
        """
        return self._loop.run(self._calls.run(FILL_MASK, inputs, options))

    async def afill(
        self, inputs: Text | Iterable[Text], **options: Unpack[FillMaskKeywords]
    ) -> list[Any]:
        """Do the same as `fill` without blocking the caller's event loop."""
        return await self._loop.run_async(self._calls.run(FILL_MASK, inputs, options))

    @overload
    def score(  # type: ignore[overload-overlap] # a string is also an iterable of strings
        self, inputs: Text, **options: Unpack[ScoreKeywords]
    ) -> TextScore: ...
    @overload
    def score(self, inputs: Iterable[Text], **options: Unpack[ScoreKeywords]) -> list[Any]: ...
    def score(self, inputs: Text | Iterable[Text], **options: Unpack[ScoreKeywords]) -> Any:
        """Return the TextScore of a text, or a list of them with their ranks.

        Args:
            inputs: a text without masks, or many texts.
            options: parameters of POST /score, which are variant, prefix, span, part and targets.
        """
        return self._loop.run(self._calls.run(SCORE, inputs, options))

    def marginals(
        self, inputs: Text | Iterable[Text], targets: Sequence[str], **options: Any
    ) -> Any:
        """Return log-probabilities (S, K) float32 of K targets in place of each of S tokens.

        A text has one pass per token, with a mask in its place (masked marginals, Meier et al.
        2021, section 2). Many texts have a list of arrays.

        Args:
            targets: texts of one token each, such as the 20 amino acids.
            options: further parameters of POST /score.
        """
        scores = self.score(inputs, targets=() if targets is None else targets, **options)
        return list(map(target_table, scores)) if isinstance(scores, list) else target_table(scores)

    async def ascore(self, inputs: Text | Iterable[Text], **options: Unpack[ScoreKeywords]) -> Any:
        """Do the same as `score` without blocking the caller's event loop."""
        return await self._loop.run_async(self._calls.run(SCORE, inputs, options))

    @overload
    def classify(self, inputs: Text, **options: Unpack[ClassifyKeywords]) -> list[LabelScore]: ...
    @overload
    def classify(
        self, inputs: Iterable[Text], **options: Unpack[ClassifyKeywords]
    ) -> list[Any]: ...
    def classify(
        self, inputs: Text | Iterable[Text], **options: Unpack[ClassifyKeywords]
    ) -> list[Any]:
        """Return the labels of a text, best first, or such a list for each of many texts.

        Args:
            inputs: a text, or many texts.
            options: parameters of POST /classify, which are top_k, function_to_apply and
                on_long_text.
        """
        return self._loop.run(self._calls.run(CLASSIFY, inputs, options))

    async def aclassify(
        self, inputs: Text | Iterable[Text], **options: Unpack[ClassifyKeywords]
    ) -> list[Any]:
        """Do the same as `classify` without blocking the caller's event loop."""
        return await self._loop.run_async(self._calls.run(CLASSIFY, inputs, options))

    def classify_tokens(
        self, inputs: Text | Iterable[Text], **options: Unpack[ClassifyTokensKeywords]
    ) -> list[Any]:
        """Return the entities of a text in their order, or such a list for each of many texts.

        Args:
            inputs: a text, or many texts.
            options: parameters of POST /classify-tokens, which are aggregation_strategy,
                ignore_labels and on_long_text.
        """
        return self._loop.run(self._calls.run(CLASSIFY_TOKENS, inputs, options))

    async def aclassify_tokens(
        self, inputs: Text | Iterable[Text], **options: Unpack[ClassifyTokensKeywords]
    ) -> list[Any]:
        """Do the same as `classify_tokens` without blocking the caller's event loop."""
        return await self._loop.run_async(self._calls.run(CLASSIFY_TOKENS, inputs, options))

    def rerank(
        self, query: str, texts: Iterable[str], **options: Unpack[RerankKeywords]
    ) -> list[RankedText]:
        """Return texts by their relevance to a query, best first, from a model with one label.

        Args:
            options: top_n, raw_scores and truncate, as in POST /rerank and POST /v2/rerank.
        """
        return self._loop.run(self._calls.rerank(query, texts, options))

    async def arerank(
        self, query: str, texts: Iterable[str], **options: Unpack[RerankKeywords]
    ) -> list[RankedText]:
        """Do the same as `rerank` without blocking the caller's event loop."""
        return await self._loop.run_async(self._calls.rerank(query, texts, options))

    @overload
    def embed_sparse(  # type: ignore[overload-overlap] # a string is also an iterable of strings
        self, inputs: str, **options: Unpack[SparseKeywords]
    ) -> SparseEmbedding: ...
    @overload
    def embed_sparse(
        self, inputs: Iterable[str], **options: Unpack[SparseKeywords]
    ) -> list[Any]: ...
    def embed_sparse(self, inputs: str | Iterable[str], **options: Unpack[SparseKeywords]) -> Any:
        """Return the SparseEmbedding of a text, or a list of them.

        Args:
            options: input_type, top_n, min_weight, as in POST /embed_sparse, and on_long_text.
        """
        return self._loop.run(self._calls.run(SPARSE, inputs, options))

    async def aembed_sparse(
        self, inputs: str | Iterable[str], **options: Unpack[SparseKeywords]
    ) -> Any:
        """Do the same as `embed_sparse` without blocking the caller's event loop."""
        return await self._loop.run_async(self._calls.run(SPARSE, inputs, options))

    def run(self, task: str, inputs: Any, **options: Any) -> Any:
        """Return the results of any task of the model, as the method of the task does.

        Args:
            task: name of the task for the command, such as "fill-mask".
            options: parameters of the task, with `parameters` and `on_error` for many texts.
        """
        if task not in TASKS:
            raise InvalidRequestError(f"task must be {' or '.join(TASKS)} (got {describe(task)}).")
        return self._loop.run(self._calls.run(TASKS[task], inputs, options))

    def close(self) -> None:
        """Finish the running calls and free the model. A second call has no effect."""
        if self._loop.is_current:  # of an object that the garbage collector has found there
            self._forgotten()
        elif self._forgotten.detach() is not None:
            self._loop.close(self._model.retire())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        return self._reopen, ()

    def __repr__(self) -> str:
        return f"<FillMask {self.name}>"


def _close_elsewhere(loop: BackgroundLoop, model: ServedModel) -> None:
    """Close the model on a new thread, because a thread that it waits for may drop it last."""

    def close() -> None:
        # the process may end meanwhile, which refuses work for threads and frees everything
        with suppress(RuntimeError):
            loop.close(model.retire())

    threading.Thread(target=close, name="fillmask-close").start()
