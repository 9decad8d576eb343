"""Read a bundle and verify that its files are the ones it was made with. Standard library only."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from service.bundles.fields import BundleFields, refuse
from service.errors import BundleError, quote

SCHEMA_VERSION = 2
MODEL_FILE = "model.onnx"
WEIGHTS_FILE = "weights.bin"  # beside the graph: mapped, not read, and it may be above 2 GB
TOKENIZER_FILE = "tokenizer.json"
DESCRIPTION_FILE = "bundle.json"
FILES = (MODEL_FILE, WEIGHTS_FILE, TOKENIZER_FILE)
# what is read into memory whole: the largest known have 3 KB, 150 KB and 20 MB
MAX_BYTES = {DESCRIPTION_FILE: 2**24, MODEL_FILE: 2**26, TOKENIZER_FILE: 2**28}
PRECISIONS = ("fp32", "int8")


@dataclass(frozen=True, slots=True)
class Architecture:
    """The encoder's sizes; `parameters` counts a tied table once."""

    d_model: int
    num_layers: int
    num_heads: int
    d_ff: int
    vocab_size: int
    max_positions: int
    parameters: int
    tied: bool


@dataclass(frozen=True, slots=True)
class GoldenFill:
    """A token and its natural log-probability over the whole vocabulary."""

    token: int
    log_prob: float


@dataclass(frozen=True, slots=True)
class GoldenPrompt:
    """A text and, for each of its masks, the expected fills, best first."""

    text: str
    fills: tuple[tuple[GoldenFill, ...], ...]


@dataclass(frozen=True, slots=True)
class Golden:
    """Prompts with the answers they must have on every machine, within the tolerance."""

    log_prob_tolerance: float
    prompts: tuple[GoldenPrompt, ...]


@dataclass(frozen=True, slots=True)
class Bundle:
    """A verified bundle; max_tokens is the longest input, special tokens included."""

    path: Path
    name: str
    license: str
    description: str
    created_with: str
    architecture: Architecture
    max_tokens: int
    mask_token: str
    mask_token_id: int
    special_token_ids: tuple[int, ...]
    precision: str
    verification: Mapping[str, Any]
    golden: Golden

    @property
    def model_path(self) -> Path:
        """The served graph."""
        return self.path / MODEL_FILE

    @property
    def tokenizer_path(self) -> Path:
        """The tokenizer, in Hugging Face's format."""
        return self.path / TOKENIZER_FILE


def default_bundle_path() -> Path:
    """The directory of the built-in model."""
    return Path(__file__).parent / "default"


def read_bundle(path: Path) -> Bundle:
    """Read bundle.json and verify the size and SHA-256 of every file it names.

    Raises:
        BundleError: anything is missing, unknown, of the wrong type or not as recorded.
    """
    if not path.is_dir():
        refuse(f"{path} is not a directory")
    fields = BundleFields(_read_json(_inside(path, DESCRIPTION_FILE)), "")
    version = fields.integer("schema_version")
    if version != SCHEMA_VERSION:
        refuse(f"schema_version is {version}, and this fillmask reads {SCHEMA_VERSION} only")
    _verify_files(path, fields.object("files"))
    bundle = Bundle(
        path=path,
        name=fields.text("name"),
        license=fields.text("license"),
        description=fields.text("description"),
        created_with=fields.text("created_with"),
        architecture=_read_architecture(fields.object("architecture")),
        max_tokens=fields.integer("max_tokens", least=1),
        mask_token=fields.text("mask_token"),
        mask_token_id=fields.integer("mask_token_id"),
        special_token_ids=tuple(
            BundleFields({"id": i}, "special_token_ids").integer("id")
            for i in fields.array("special_token_ids")
        ),
        precision=fields.text("precision"),
        verification=fields.object("verification").values,
        golden=_read_golden(fields.object("golden")),
    )
    fields.end()
    _check_consistency(bundle)
    return bundle


def _check_consistency(bundle: Bundle) -> None:
    if bundle.precision not in PRECISIONS:
        refuse(f"precision is {quote(bundle.precision)}; it is one of {', '.join(PRECISIONS)}")
    if bundle.max_tokens > bundle.architecture.max_positions:
        refuse("max_tokens is more than architecture.max_positions")
    if bundle.mask_token_id not in bundle.special_token_ids:
        refuse("special_token_ids lacks mask_token_id, so the mask could fill itself")
    if max(bundle.special_token_ids) >= bundle.architecture.vocab_size:
        refuse("special_token_ids holds an id that is not below architecture.vocab_size")


def _read_architecture(fields: BundleFields) -> Architecture:
    sizes = {
        name: fields.integer(name, least=1)
        for name in Architecture.__dataclass_fields__
        if name != "tied"
    }
    architecture = Architecture(**sizes, tied=fields.boolean("tied"))
    fields.end()
    return architecture


def _read_golden(fields: BundleFields) -> Golden:
    tolerance = fields.number("log_prob_tolerance")
    if tolerance <= 0:
        refuse("golden.log_prob_tolerance must be more than 0")
    prompts = []
    for index, value in enumerate(fields.array("prompts")):
        where = f"golden.prompts[{index}]"
        prompt = BundleFields(value, where)
        masks = tuple(_read_fills(fills, f"{where}.fills") for fills in prompt.array("fills"))
        prompts.append(GoldenPrompt(text=prompt.text("text"), fills=masks))
        prompt.end()
    if not prompts:
        refuse("golden.prompts is empty, so nothing can be verified")
    fields.end()
    return Golden(log_prob_tolerance=tolerance, prompts=tuple(prompts))


def _read_fills(values: object, where: str) -> tuple[GoldenFill, ...]:
    if not isinstance(values, list) or not values:
        refuse(f"{where} must hold a list of at least one fill for each mask")
    fills = []
    for value in values:
        fill = BundleFields(value, where)
        fills.append(GoldenFill(token=fill.integer("token"), log_prob=fill.number("log_prob")))
        fill.end()
    return tuple(fills)


def _verify_files(path: Path, files: BundleFields) -> None:
    for name in files.values:
        if Path(name).name != name or "\\" in name or name in {".", ".."}:
            refuse(f"files names {quote(name)}, which has a path in it")
    for name in FILES:
        recorded = files.object(name)
        size_bytes, sha256 = recorded.integer("bytes"), recorded.text("sha256")
        recorded.end()
        file = _inside(path, name)
        actual_bytes = file.stat().st_size
        if actual_bytes != size_bytes:
            refuse(f"{name} has {actual_bytes} bytes, and bundle.json says {size_bytes}")
        with file.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != sha256.lower():
                refuse(f"{name} is not the file bundle.json describes: its SHA-256 differs")
    files.end()


def _inside(path: Path, name: str) -> Path:
    """The bundle's file of this name, which must not lie elsewhere."""
    file = path / name
    if not file.is_file():
        refuse(f"{name} is missing from {path}")
    most = MAX_BYTES.get(name)
    if most is not None and file.stat().st_size > most:
        refuse(f"{name} has {file.stat().st_size} bytes; at most {most} are allowed")
    if not file.resolve().is_relative_to(path.resolve()):
        refuse(f"{name} is a link to a file outside of the bundle")
    return file


def _read_json(file: Path) -> object:
    try:
        return json.loads(file.read_bytes(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"The bundle is refused: {file.name} is not valid JSON.") from error


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(text)
