"""Fill in the blanks with BERT: a Python library, an HTTP server and a command.

`from fillmask import FillMask` opens a model in this process. Everything is loaded at its first
use, so that the import itself costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fillmask.errors import BundleError, FillMaskError, InvalidRequestError
    from fillmask.library import FillMask
    from fillmask.parameters.texts import TextPair
    from fillmask.tasks.classify.results import LabelScore
    from fillmask.tasks.classify_tokens.results import Entity
    from fillmask.tasks.fill_mask.results import (
        Fill,
        JointFill,
        RejectedTarget,
        TargetFill,
        WordFill,
    )
    from fillmask.tasks.rerank.results import RankedText
    from fillmask.tasks.result import RejectedText
    from fillmask.tasks.score.results import TextScore, TokenScore
    from fillmask.tasks.sparse.results import SparseEmbedding

__version__ = "0.1.0"

_MODULES = {
    "BundleError": "errors",
    "Fill": "tasks.fill_mask.results",
    "FillMask": "library",
    "FillMaskError": "errors",
    "InvalidRequestError": "errors",
    "JointFill": "tasks.fill_mask.results",
    "LabelScore": "tasks.classify.results",
    "RankedText": "tasks.rerank.results",
    "RejectedTarget": "tasks.fill_mask.results",
    "RejectedText": "tasks.result",
    "Entity": "tasks.classify_tokens.results",
    "SparseEmbedding": "tasks.sparse.results",
    "TargetFill": "tasks.fill_mask.results",
    "TextPair": "parameters.texts",
    "TextScore": "tasks.score.results",
    "TokenScore": "tasks.score.results",
    "WordFill": "tasks.fill_mask.results",
}

__all__ = [
    "BundleError",
    "Entity",
    "Fill",
    "FillMask",
    "FillMaskError",
    "InvalidRequestError",
    "JointFill",
    "LabelScore",
    "RankedText",
    "RejectedTarget",
    "RejectedText",
    "SparseEmbedding",
    "TargetFill",
    "TextPair",
    "TextScore",
    "TokenScore",
    "WordFill",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value  # the next use finds it without this function
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
