"""The models that are served: loaded at the start, and anew when their bundles change."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from service.bundles.discovery import find_bundles, fingerprint
from service.errors import BundleError, NotFoundError, SettingsError, StartupError, quote
from service.observability.metrics import ModelState
from service.observability.statistics import ProcessStatistics
from service.observability.tracing import Tracer
from service.registry.loader import load_model
from service.registry.served_model import ModelInfo, ServedModel
from service.settings import Settings

_log = logging.getLogger(__name__)


class ModelRegistry:
    """Models by name, one of which is the default. For one event loop.

    Args:
        settings: where the bundles are, which of them is the default, and the limits.
        on_failure: called with a sentence when a model cannot answer any more.
        on_change: called when the models are others than before.
        statistics: where their batches are counted, and how often they are loaded anew.
        spans: told of the parts of requests, where they are traced.
    """

    def __init__(
        self,
        settings: Settings,
        on_failure: Callable[[str], None],
        on_change: Callable[[], None],
        statistics: ProcessStatistics,
        spans: Tracer | None = None,
    ) -> None:
        self._settings = settings
        self._on_failure = on_failure
        self._on_change = on_change
        self._statistics = statistics
        self._spans = spans
        self._by_path: dict[Path, ServedModel] = {}
        self._by_name: dict[str, ServedModel] = {}
        self._reloading = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def by_name(self) -> Mapping[str, ServedModel]:
        """All of them, in the order of their directories."""
        return self._by_name

    @property
    def default(self) -> ServedModel:
        """That of requests that name none: the one of the settings, or else the first."""
        return self._by_name.get(self._settings.model) or next(iter(self._by_name.values()))

    @property
    def states(self) -> list[ModelState]:
        """How each of them is, for who watches them."""
        return [
            ModelState(one.info.name, _about(one.info), one.batcher.load, one.probe.last_failure)
            for one in self._by_name.values()
        ]

    def get(self, name: str | None = None) -> ServedModel:
        """A model by its name, or the default.

        Raises:
            NotFoundError: there is none of that name.
        """
        if name is None:
            return self.default
        if name not in self._by_name:
            served = ", ".join(map(quote, self._by_name))
            verb = "are" if len(self._by_name) > 1 else "is"
            raise NotFoundError(f"There is no model {quote(name)} here; {served} {verb} served.")
        return self._by_name[name]

    async def open(self) -> None:
        """Load all of them.

        Raises:
            StartupError: one is no good, two have the same name, or the default is missing.
        """
        for path in find_bundles(self._settings.bundle):
            self._add(path, await self._load(path, background=False))
        if self._settings.model and self._settings.model not in self.by_name:
            raise SettingsError(
                f"model is {quote(self._settings.model)}; allowed is one of "
                f"{', '.join(map(quote, self.by_name))}."
            )
        self._on_change()

    async def reload(self) -> None:
        """Load what is new or has changed; who is being answered by the old ones still is.

        What cannot be loaded is logged, and the old one stays. So does one whose bundle is gone.
        """
        async with self._reloading:
            try:
                paths = find_bundles(self._settings.bundle)
            except StartupError as error:
                self._statistics.reloads["refused"] += 1
                _log.error("nothing is reloaded: %s", error)
                return
            for path in paths:
                await self._reload(path)

    def reload_soon(self) -> None:
        """Reload, and do not wait for it."""
        self._keep(asyncio.create_task(self.reload()))

    def reload_every(self, seconds: float) -> None:
        """Reload again and again, until they are closed."""

        async def repeat() -> None:
            while True:
                await asyncio.sleep(seconds)
                await self.reload()

        self._keep(asyncio.create_task(repeat()))

    async def close(self) -> None:
        """Answer what was accepted, and close all of them."""
        for task in self._tasks:
            task.cancel()
        for one in self._by_path.values():
            await one.aclose()

    async def _reload(self, path: Path) -> None:
        old = self._by_path.get(path)
        try:
            if old is not None and old.fingerprint == fingerprint(path):
                return
            new = await self._load(path, background=True)
            try:
                self._add(path, new)
            except StartupError:
                await new.aclose()
                raise
        except StartupError as error:
            self._statistics.reloads["refused"] += 1
            _log.error("%s is not reloaded, and the old model stays: %s", path.name, error)
            return
        self._statistics.reloads["taken"] += 1
        _log.info("%s is loaded anew: %s", path.name, new.name)
        self._on_change()
        if old is not None:
            self._keep(asyncio.create_task(old.retire()))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)  # the event loop itself does not hold on to tasks
        task.add_done_callback(self._tasks.discard)

    def _add(self, path: Path, one: ServedModel) -> None:
        for other, known in self._by_path.items():
            if other != path and known.name == one.name:
                raise BundleError(
                    f"The bundle is refused: {path} and {other} have the same name, "
                    f"{quote(one.name)}."
                )
        self._by_path[path] = one
        self._by_name = {each.name: each for each in self._by_path.values()}

    async def _load(self, path: Path, *, background: bool) -> ServedModel:
        return await load_model(
            self._settings,
            self._on_failure,
            path,
            background=background,
            statistics=self._statistics,
            spans=self._spans,
        )


def _about(info: ModelInfo) -> dict[str, str]:
    return {
        "precision": info.precision,
        "max_tokens": str(info.limits.max_tokens),
        "num_layers": str(info.architecture.num_layers),
        "d_model": str(info.architecture.d_model),
        "vocab_size": str(info.architecture.vocab_size),
    }
