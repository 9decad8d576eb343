"""A model whose only fill of a text is the text itself."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Self

from fillmask.tasks.fill_mask.results import Fill, TextFills
from fillmask.tasks.pipeline import Inputs, Size


class FakeModel:
    """Model, with its pipeline and its batcher.

    Args:
        answering: coroutine function that runs for each text, and may refuse it.
    """

    def __init__(self, answering: Callable[[str], Any] | None = None) -> None:
        self.accepted_tokens = 0
        self.json_bytes = 1  # that a text's plan claims
        self.at_work = self.most_at_work = 0
        self.batcher = self
        self._answering = answering

    def pipeline(self, _task: object) -> Self:
        return self

    def check(self, parameters: object) -> None:
        """Accept any targets."""

    async def plan(self, inputs: Inputs[Any]) -> SimpleNamespace:
        [text] = inputs.texts
        return SimpleNamespace(text=text, size=Size(self.json_bytes, 0, ""), is_large=False)

    async def run(self, plan: SimpleNamespace) -> list[TextFills]:
        self.at_work += 1
        self.most_at_work = max(self.most_at_work, self.at_work)
        try:
            if self._answering is not None:
                await self._answering(plan.text)
            return [TextFills([[Fill(0.5, 1, plan.text, "")]])]
        finally:
            self.at_work -= 1

    async def aclose(self) -> None:
        """Close nothing."""
