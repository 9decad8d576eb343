"""The registry of served models, which loads models and reloads changed bundles."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fillmask.bundles.description import Task
from fillmask.bundles.discovery import directory_to_load, find_bundles, fingerprint
from fillmask.errors import (
    BundleError,
    InvalidRequestError,
    NotFoundError,
    SettingsError,
    StartupError,
    escape_unprintable,
    quote,
    safe_traceback,
)
from fillmask.models.loader import NOT_FAILURES, load_model
from fillmask.models.served_model import ServedModel
from fillmask.observability.metrics import Metrics
from fillmask.observability.request_context import Tracer
from fillmask.settings import Settings

_log = logging.getLogger(__name__)


class ModelRegistry:
    """Registry of the served models by name. All calls must come from one event loop.

    Args:
        settings: paths of the bundles, name of the default model, aliases, and limits.
        on_failure: function that receives a message when a model stops computing.
        on_change: function to call after a load or a replacement of models.
        metrics: metrics of batches and reloads.
        tracer: tracer of tokenization and batches, by default none.

    Attributes:
        by_name: all models by name, in the order of the first load of their directories.
        by_served_name: all models by name, followed by the models by alias.
    """

    def __init__(
        self,
        settings: Settings,
        on_failure: Callable[[str], None],
        on_change: Callable[[], None],
        metrics: Metrics,
        tracer: Tracer | None = None,
    ) -> None:
        self._settings = settings
        self._on_change = on_change
        self._metrics = metrics
        self._load = partial(load_model, settings, on_failure, metrics=metrics, tracer=tracer)
        self._by_path: dict[Path, ServedModel] = {}
        self._default_path = Path()
        self.by_name: Mapping[str, ServedModel] = {}
        self.by_served_name: Mapping[str, ServedModel] = {}
        self._reloading = asyncio.Lock()
        # the event loop has only weak references to tasks
        self._reloads: set[asyncio.Task[None]] = set()
        self._retiring: set[asyncio.Task[None]] = set()

    @property
    def default(self) -> ServedModel:
        """Model for requests without a model name, by default the first model.

        The default model is always from the same bundle, even if a reload changes its name.
        """
        return self._by_path[self._default_path]

    def get(self, name: str | None = None, task: Task | None = None) -> ServedModel:
        """Return a model by its name or alias, and by its task.

        Args:
            name: name or alias of the model. Without a name, the function returns the default
                model. If the default model lacks the task, the function returns the first model
                with the task.
            task: task that the model must have. None accepts models of any task.

        Raises:
            NotFoundError: no model has the given name.
            InvalidRequestError: the model does not have the task. The message names the models
                with the task.
        """
        if name is not None and name not in self.by_served_name:
            served = ", ".join(map(quote, self.by_served_name))
            raise NotFoundError(f"Unknown model {quote(name)}; use a served model: {served}.")
        model = self.default if name is None else self.by_served_name[name]
        if task is None or task in model.bundle.tasks:
            return model
        able = [one for one in self.by_name.values() if task in one.bundle.tasks]
        if name is None and able:
            return able[0]
        if name is None or not able:
            model.refuse(task)
        raise InvalidRequestError(
            f"Model {quote(name)} does not have the task {task}; use a model with this task: "
            f"{', '.join(quote(one.name) for one in able)}."
        )

    def names_of(self, model: ServedModel) -> list[str]:
        return [name for name, other in self.by_served_name.items() if other is model]

    async def load_all(self) -> None:
        """Load the models of all bundles.

        Raises:
            StartupError: a bundle is invalid, two models have the same name, the default model of
                the settings is missing, or an alias is invalid.
        """
        for path in find_bundles(self._settings.bundle):
            self._add(path, await self._load(directory_to_load(path)))
        if self._settings.model and self._settings.model not in self.by_name:
            raise SettingsError(
                f"model must be one of {', '.join(map(quote, self.by_name))} "
                f"(got {quote(self._settings.model)})."
            )
        name = self._settings.model or next(iter(self.by_name))
        self._default_path = next(p for p, model in self._by_path.items() if model.name == name)
        self.by_served_name = self._with_aliases(self._by_path)
        self._on_change()

    async def reload(self) -> None:
        """Load new and changed bundles.

        Running requests finish with the old model. The registry logs an invalid bundle and keeps
        the models, also after the removal of their bundles.
        """
        async with self._reloading:
            with self._refusing("the registry does not reload any bundle"):
                # on another thread, because the directory may be large or on another machine
                paths = await asyncio.to_thread(find_bundles, self._settings.bundle)
                for path in paths:
                    bundle = f"the bundle {escape_unprintable(path.name)}"
                    with self._refusing(
                        f"the registry does not reload {bundle}, so the models do not change"
                    ):
                        await self._reload(path, bundle)

    def start_reload(self) -> None:
        _run_in(self._reloads, self.reload())

    def start_periodic_reload(self, interval_s: float) -> None:
        """Start periodic reloads in the background, which run until `close`."""

        async def repeat() -> None:
            while True:
                await asyncio.sleep(interval_s)
                await self.reload()

        _run_in(self._reloads, repeat())

    async def close(self) -> None:
        """Finish the accepted requests and close all models."""
        for task in self._reloads:
            task.cancel()
        for model in self._by_path.values():
            await model.aclose()
        if self._retiring:  # a cancelled one would free its model during a batch
            await asyncio.wait(self._retiring)

    async def _reload(self, path: Path, bundle: str) -> None:
        old = self._by_path.get(path)
        directory = directory_to_load(path)
        if old is not None and old.fingerprint == fingerprint(directory):
            return
        new = await self._load(directory, background=True)
        try:
            self._add(path, new)
        except BaseException:
            await new.aclose()
            raise
        self._metrics.reloads.labels("taken").inc()
        _log.info("the registry has loaded %s as the model %s", bundle, new.name)
        self._on_change()
        if old is not None:
            _run_in(self._retiring, old.retire())

    @contextmanager
    def _refusing(self, text: str) -> Iterator[None]:
        """Count and log any failure, so that periodic reloads go on."""
        try:
            yield
        except NOT_FAILURES:
            raise
        except BaseException as error:  # noqa: BLE001 - a panic is no Exception
            self._metrics.reloads.labels("refused").inc()
            known = isinstance(error, StartupError)
            _log.error("%s. %s", text, error if known else f"\n{safe_traceback(error)}")

    def _add(self, path: Path, model: ServedModel) -> None:
        for other_path, other in self._by_path.items():
            if other_path != path and other.name == model.name:
                raise BundleError(
                    f"The bundles {path} and {other_path} have the same name "
                    f"{quote(model.name)}; export one with another --name."
                )
        by_path = self._by_path | {path: model}
        by_name = {each.name: each for each in by_path.values()}
        if self.by_served_name:  # `load_all` resolves the aliases after the last bundle
            self.by_served_name = self._with_aliases(by_path)
        self._by_path, self.by_name = by_path, by_name

    def _with_aliases(self, by_path: Mapping[Path, ServedModel]) -> dict[str, ServedModel]:
        by_name = {model.name: model for model in by_path.values()}
        return with_aliases(self._settings.served_name, by_name, by_path[self._default_path])


def _run_in(tasks: set[asyncio.Task[None]], coroutine: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(coroutine)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


_RESERVED = {"stats"}  # of Triton's path /v2/models/stats


def with_aliases(
    served_name: str, by_name: Mapping[str, ServedModel], default: ServedModel
) -> dict[str, ServedModel]:
    """Return the models by name, followed by the models by alias.

    Args:
        served_name: the setting, a comma-separated list of ALIAS or ALIAS=MODEL. An alias without a
            model is an alias of the default model.
        by_name: all models by the names of their bundles.
        default: the default model.

    Raises:
        SettingsError: a model of the list does not exist, two models have the same name, or an
            alias is a part of a path.
    """
    served = dict(by_name)
    for entry in filter(None, map(str.strip, served_name.split(","))):
        alias, _, name = entry.partition("=")
        if alias in _RESERVED:
            raise SettingsError(
                f"served_name has the alias {quote(alias)}, which is a part of a path of the Open "
                "Inference Protocol; use another alias."
            )
        model = by_name.get(name) if name else default
        if model is None:
            raise SettingsError(
                f"The model of {quote(alias)} in served_name must be one of "
                f"{', '.join(map(quote, by_name))} (got {quote(name)})."
            )
        # An alias may repeat the name of its own model, because the name of a KServe
        # InferenceService may be the name of the bundle.
        other = served.setdefault(alias, model)
        if other is not model:
            raise SettingsError(
                f"served_name has the alias {quote(alias)} of the model {quote(model.name)}, but "
                f"{quote(alias)} is a name of the model {quote(other.name)}; use another alias."
            )
    return served
