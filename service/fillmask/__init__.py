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
    from fillmask.results.fills import Fill, JointFill, RejectedTarget, TargetFill, WordFill
    from fillmask.results.labels import LabelScore
    from fillmask.results.ranks import RankedText
    from fillmask.results.rejected import RejectedText
    from fillmask.results.scores import TextScore, TokenScore
    from fillmask.results.sparse import SparseEmbedding

__version__ = "0.1.0"

_MODULES = {
    "BundleError": "errors",
    "Fill": "results.fills",
    "FillMask": "library",
    "FillMaskError": "errors",
    "InvalidRequestError": "errors",
    "JointFill": "results.fills",
    "LabelScore": "results.labels",
    "RankedText": "results.ranks",
    "RejectedTarget": "results.fills",
    "RejectedText": "results.rejected",
    "SparseEmbedding": "results.sparse",
    "TargetFill": "results.fills",
    "TextPair": "parameters.texts",
    "TextScore": "results.scores",
    "TokenScore": "results.scores",
    "WordFill": "results.fills",
}

__all__ = [
    "BundleError",
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
