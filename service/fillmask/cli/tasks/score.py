"""The task score, which scores a text and its tokens."""

import json
from collections.abc import Iterator

from fillmask.bundles.bundle import Bundle
from fillmask.cli.tasks.base import Task
from fillmask.cli.terminal.style import Style
from fillmask.cli.terminal.text_tables import format_scores
from fillmask.parameters.limits import Limits
from fillmask.parameters.score import ScoreOptions, ScoreParameters
from fillmask.parameters.texts import InputText
from fillmask.parameters.validation import ValidationContext
from fillmask.registry.served_model import ServedModel
from fillmask.results.scores import TextScore, scores_to_json

_CHARS_PER_TOKEN, _CHARS_PER_TARGET = 150, 22  # characters of a token's JSON, and of a target


class ScoreTask(Task[ScoreOptions, TextScore]):
    """Task that scores a text and its tokens."""

    name = "score"
    parameters = ("variant", "prefix", "span", "part", "targets")
    field = "score"

    def read_options(self, parameters: object, limits: Limits) -> ScoreOptions:
        """See `Task`."""
        return ScoreParameters.read(parameters, ValidationContext(limits)).options

    async def run(
        self, model: ServedModel, text: InputText, options: ScoreOptions, label: str
    ) -> TextScore:
        """See `Task`."""
        [score] = await model.require_scoring().score([text], [options], label)
        assert isinstance(score, TextScore)  # noqa: S101 - the pipeline raises the errors of texts
        return score

    async def answer(self, result: TextScore) -> bytes:
        """See `Task`. The answer has no rank, because each row is a separate request."""
        score = json.loads(self.response(result))
        del score["rank"]
        return json.dumps(score, ensure_ascii=False, separators=(",", ":")).encode()

    def estimate_chars(
        self,
        bundle: Bundle,  # noqa: ARG002 - for tasks with masks or labels
        text: InputText,
        options: ScoreOptions,
    ) -> int:
        """See `Task`. The estimate counts one token per character."""
        targets = _CHARS_PER_TARGET * len(options.targets or ())
        return len(text) * (1 + _CHARS_PER_TOKEN + targets)

    def response(self, result: TextScore) -> bytes:
        """See `Task`."""
        return scores_to_json([result], single=True)

    def table(
        self,
        bundle: Bundle,  # noqa: ARG002 - for tasks with labels
        text: InputText,  # noqa: ARG002 - the tokens have their own texts
        options: ScoreOptions,  # noqa: ARG002 - all options have the same table
        result: TextScore,
        style: Style,
    ) -> Iterator[str]:
        """See `Task`."""
        return format_scores(result, style)
