"""The tasks of the Open Inference Protocol, with the tensors of their results.

Each tensor for fills has one row per mask, in the order of the texts. With joint filling and for
labels, each tensor has one row per text. For labels of tokens, it has one element per entity.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fillmask.api.wire.open_inference.tensors import WireTensor
from fillmask.arrays import check_finite
from fillmask.bundles.description import Task as BundleTask
from fillmask.tasks.classify.results import LabelScore
from fillmask.tasks.classify_tokens.results import Entity
from fillmask.tasks.fill_mask.results import NO_SINGLE_TOKEN, Fill, TextFills
from fillmask.tasks.task import CLASSIFY, CLASSIFY_TOKENS, FILL_MASK, Task

# name of an output tensor -> (datatype, number of axes)
Outputs = Mapping[str, tuple[str, int]]
_FILLS: Outputs = {
    "text_index": ("INT64", 1),
    "token": ("INT64", 2),
    "token_str": ("BYTES", 2),
    "score": ("FP32", 2),
    "sequence": ("BYTES", 2),
}
_LABELS: Outputs = {"label": ("BYTES", 2), "score": ("FP32", 2)}
_ENTITIES: Outputs = {
    "text_index": ("INT64", 1),
    "label": ("BYTES", 1),
    "word": ("BYTES", 1),
    "score": ("FP32", 1),
    "start": ("INT64", 1),
    "end": ("INT64", 1),
}
# padding for masks with fewer fills than other masks
_PADDING = Fill(score=0.0, token=NO_SINGLE_TOKEN, token_str="", sequence="")


class ProtocolTask(NamedTuple):
    """A task of the protocol.

    Attributes:
        work: what a request asks for, for the documentation.
        text: the text of an example.
        outputs: output tensors.
        tensors: function that returns them for the results of the texts of a request.
    """

    task: Task
    work: str
    text: str
    outputs: Outputs
    tensors: Callable[[Sequence[Any]], Iterator[WireTensor]]


def fill_tensors(fills: Sequence[TextFills]) -> Iterator[WireTensor]:
    masks = [(index, mask) for index, text in enumerate(fills) for mask in text.masks]
    width = max(len(mask) for _, mask in masks)  # with whole words, some masks may have fewer fills
    padded = [fill for _, mask in masks for fill in (*mask, *[_PADDING] * (width - len(mask)))]
    check_finite([fill.score for fill in padded])
    by_mask, by_fill = (len(masks),), (len(masks), width)
    for name, (datatype, axes) in _FILLS.items():
        if axes == 1:
            yield WireTensor(name, datatype, by_mask, [index for index, _ in masks])
        else:
            yield WireTensor(name, datatype, by_fill, [getattr(fill, name) for fill in padded])


def label_tensors(labels: Sequence[Sequence[LabelScore]]) -> Iterator[WireTensor]:
    shape = (len(labels), len(labels[0]))
    for name, (datatype, _) in _LABELS.items():
        yield WireTensor(
            name, datatype, shape, [getattr(one, name) for row in labels for one in row]
        )


def entity_tensors(entities: Sequence[Sequence[Entity]]) -> Iterator[WireTensor]:
    found = [(index, one) for index, text in enumerate(entities) for one in text]
    for name, (datatype, _) in _ENTITIES.items():
        values = [index if name == "text_index" else getattr(one, name) for index, one in found]
        yield WireTensor(name, datatype, (len(found),), values)


_TASKS = (
    ProtocolTask(
        FILL_MASK,
        "fill the masks of a tensor of texts",
        "Paris is the [MASK] of France.",
        _FILLS,
        fill_tensors,
    ),
    ProtocolTask(
        CLASSIFY, "classify a tensor of texts", "I loved this film.", _LABELS, label_tensors
    ),
    ProtocolTask(
        CLASSIFY_TOKENS,
        "find the entities of a tensor of texts",
        "Ada Lovelace was born in London.",
        _ENTITIES,
        entity_tensors,
    ),
)
PROTOCOL_TASKS: dict[BundleTask, ProtocolTask] = {one.task.of_bundle: one for one in _TASKS}
