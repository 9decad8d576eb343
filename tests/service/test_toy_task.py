"""A task from outside of the package: how uncertain the model is at each mask."""

import json
from typing import NamedTuple

import numpy as np
import pytest
from pydantic import Field

from fillmask import FillMask
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.parameters.texts import InputText
from fillmask.parameters.validation import TaskParameters
from fillmask.tasks.pipeline import Inputs, Parts, Pipeline, Size
from fillmask.tasks.result import RejectedText, accepted
from fillmask.tasks.task import TASKS, Endpoint, Task
from fillmask.tokenization.reader import TextReader
from tests.service.cli.command_line import fillmask
from tests.service.serving import serving
from tests.service.tiny import Tiny
from tests.service.tiny_calls import make_tokenizer

TEXT = "the [MASK] barked at the [MASK]"


# --- the task
class EntropyParameters(TaskParameters):
    bits: bool | None = Field(default=None, description="Whether the unit is bits, not nats.")


class Planned(NamedTuple):
    passes: list[ModelPass]
    scales: list[float]
    is_large: bool = False
    size: Size = Size(100, 1_000, "Use fewer texts.")


class Entropies(Pipeline[EntropyParameters, Planned, list[float]]):
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._texts = TextReader(parts.tokenizer, parts.bundle.max_tokens)

    async def plan(self, inputs: Inputs[EntropyParameters]) -> Planned:
        size = self._parts.bundle.architecture.vocab_size

        def read(text: InputText, _: EntropyParameters, label: str) -> ModelPass:
            one = self._texts.read_masked(text, label)
            masks = one.mask_positions
            return ModelPass(one.input_ids, masks, size, no_targets(len(masks)), one.token_types)

        passes = accepted(inputs.each(read))
        return Planned(passes, [np.log(2) if own.bits else 1.0 for own in inputs.parameters])

    async def run(self, plan: Planned) -> list[list[float] | RejectedText]:
        outputs = await self._parts.batcher.submit(plan.passes)
        return [
            (-(np.exp(one.top_log_probs) * one.top_log_probs).sum(axis=1) / scale).tolist()
            for one, scale in zip(outputs, plan.scales, strict=True)
        ]


async def load(parts: Parts) -> Entropies:
    return Entropies(parts)


ENTROPY = Task(
    name="entropy",
    of_bundle="fill-mask",
    parameters=EntropyParameters,
    load=load,
    to_json=lambda result: [json.dumps(result).encode()],
    endpoint=Endpoint("/entropy", "Measure uncertainty", "Fills", "A text.", (), list[float]),
)
# --- its end


@pytest.fixture(autouse=True)
def _row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "entropy", ENTROPY)


def test_a_row_is_all_that_a_task_needs(tiny: Tiny) -> None:
    # float64 oracle
    with FillMask(tiny.path, threads=1) as model:
        found = model.run("entropy", [TEXT, "a [MASK]"], bits=True)
        expected = model.run("entropy", TEXT)
        assert model.run("entropy", TEXT, bits=False) == expected
        with pytest.raises(ValueError, match="bits must be true or false"):
            model.run("entropy", TEXT, bits=3)
        with pytest.raises(ValueError, match="inputs has no mask"):
            model.run("entropy", "the dog")
    np.testing.assert_allclose(found[0], np.array(expected) / np.log(2), rtol=1e-6)
    tokenizer = make_tokenizer(tiny)
    encoded = tokenizer.encode(TEXT)
    for mask, position in enumerate(encoded.mask_positions.tolist()):
        log_probs = tiny.log_probs(encoded.input_ids.tolist(), position)
        assert expected[mask] == pytest.approx(-(np.exp(log_probs) * log_probs).sum(), abs=1e-4)

    with serving(tiny.path) as client:
        body = {"inputs": TEXT, "parameters": {"bits": True}}
        for path in ("/entropy", f"/models/{client.get('/info').json()['name']}/entropy"):
            assert client.post(path, json=body).json() == pytest.approx(found[0])
        refused = client.post("/entropy", json={"inputs": TEXT, "parameters": {"bit": True}})
        assert refused.json()["error"] == 'Unknown field "bit" in parameters; allowed: bits.'
        assert "EntropyRequest" in client.get("/openapi.json").json()["components"]["schemas"]

    done = fillmask(
        TEXT, "--task=entropy", "--bits=true", "--json", "--bundle", tiny.path, "--threads=1"
    )
    assert json.loads(done.out) == pytest.approx(found[0])
