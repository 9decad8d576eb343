"""Folders of weights: the start of a lease, and what each of its steps returns.

Weights travel as integers with a scale per row, so that they fit through a narrow door. A weight of
8 bits has the precision of the exported model, which is enough to train on from it. A weight of 16
bits is at most a 65,534th of its row's largest magnitude away from the float32 value. Vectors are
small and stay float32. zlib then saves 10 to 15 % of the high bytes, since most weights are small.

Shapes: R rows, C columns.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fillmask_model.checkpoints.assembly import assemble
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.training.lease.folders import MIB, Folder, count_parts, write_folder
from fillmask_model.training.lease.loads import PackFields
from fillmask_model.training.lease.plan import Progress

Shapes = Mapping[str, tuple[int, ...]]

WEIGHTS = "weights"  # kind of the folder and name of its content
START_BITS = 8  # precision of weights on their way to a machine, where rows need the room
PART_BYTES = 15 * MIB  # maximum size of a returned file
_SMALL_BYTES = MIB  # at most, for manifest and log
_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class OutputLimits:
    """Limits on the files that a step may return.

    Attributes:
        part_bytes: maximum size of a file.
        files: maximum number of files.
        total_bytes: maximum size of all files together.
    """

    part_bytes: int = PART_BYTES
    files: int = 8
    total_bytes: int = 60 * MIB

    def check(self, model: TiedEncoder, bits: int) -> None:
        """Check before the training that the weights will fit.

        Raises:
            ValueError: the weights need more files or more bytes.
        """
        weights = plain_bytes(_shapes(model.state_dict()), bits)
        # zlib adds at most 5 bytes per 16 kB to what it cannot compress
        size = weights + weights // 1_000 + _SMALL_BYTES
        files = count_parts(size, self.part_bytes) + 2  # with manifest and log
        if size > self.total_bytes or files > self.files:
            raise ValueError(
                f"the step may return {self.files} files of {self.part_bytes / MIB:g} MiB, "
                f"{self.total_bytes / MIB:g} MiB in all, but weights of {bits} bits need {files} "
                f"files and up to {size / MIB:.1f} MiB; set result_bits of the plan to 8 or take a "
                "smaller encoder"
            )


def write_weights(
    directory: Path,
    model: TiedEncoder,
    fields: PackFields,
    progress: Progress,
    *,
    bits: int,
    part_bytes: int = PART_BYTES,
) -> Folder:
    """Write the weights of a pack's encoder with the progress of the training.

    Args:
        bits: bits of a weight, 8 or 16.
        part_bytes: maximum size of a file.
    """
    tensors = model.state_dict()
    manifest = {
        "pack": fields.to_dict(),
        "progress": progress.to_dict(),
        "shapes": {name: list(shape) for name, shape in _shapes(tensors).items()},
        "bits": bits,
    }
    content = {WEIGHTS: encode_weights(tensors, bits)}
    mark = f"_{progress.step:06}"
    return write_folder(directory, WEIGHTS, manifest, content, part_bytes=part_bytes, mark=mark)


def read_weights(folder: Folder) -> tuple[TiedEncoder, PackFields, Progress]:
    """Return the encoder of a folder of weights, in float32 on the CPU, with pack and progress.

    Raises:
        ValueError: a part is missing or damaged, or the weights are not those of the encoder.
    """
    fields = PackFields.from_dict(folder.fields["pack"])
    shapes = {name: tuple(shape) for name, shape in folder.fields["shapes"].items()}
    tensors = decode_weights(folder.read(WEIGHTS), shapes, folder.fields["bits"])
    model = assemble(fields.encoder, None, tensors, str, head_is_new=False)
    return model, fields, Progress.from_dict(folder.fields["progress"])


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def encode_weights(weights: Mapping[str, Tensor], bits: int) -> bytes:
    """Encode float32 tensors in the order of their names.

    Args:
        bits: 8 or 16, the size of the integers.
    """
    pieces: list[bytes] = []
    for name in sorted(weights):
        weight = weights[name].detach().float().cpu()
        if weight.ndim < 2:
            pieces.append(weight.numpy().tobytes())
            continue
        rows_RC = weight.flatten(1)
        scale_R1 = _scales(rows_RC, bits)
        codes = (rows_RC / scale_R1).round().to(torch.int16 if bits == 16 else torch.int8).numpy()
        pieces += [scale_R1.numpy().tobytes(), _planes(codes)]
    return zlib.compress(b"".join(pieces), level=1)


def decode_weights(content: bytes, shapes: Shapes, bits: int) -> dict[str, Tensor]:
    """Decode the tensors of `encode_weights` to float32.

    Raises:
        ValueError: the content does not have these shapes, or is damaged.
    """
    try:
        plain = zlib.decompress(content)
    except zlib.error as error:
        raise ValueError(f"the weights must be compressed by zlib ({error})") from None
    if len(plain) != plain_bytes(shapes, bits):
        raise ValueError(
            f"the weights must have {plain_bytes(shapes, bits)} bytes for their shapes "
            f"(got {len(plain)})"
        )
    weights, start = {}, 0

    def take(count: int) -> bytes:
        nonlocal start
        start += count
        return plain[start - count : start]

    for name in sorted(shapes):
        shape = shapes[name]
        size = int(np.prod(shape))
        if len(shape) < 2:
            values = np.frombuffer(take(_FLOAT_BYTES * size), np.float32)
        else:
            scales = np.frombuffer(take(_FLOAT_BYTES * shape[0]), np.float32)[:, None]
            codes = _from_planes(take(size * bits // 8), bits).reshape(shape[0], -1)
            values = codes * scales
        weights[name] = torch.from_numpy(values.reshape(shape).copy())
    return weights


def plain_bytes(shapes: Shapes, bits: int) -> int:
    """Return the size of encoded weights before compression, which they hardly exceed after it."""
    total = 0
    for shape in shapes.values():
        size = int(np.prod(shape))
        matrix = _FLOAT_BYTES * shape[0] + size * bits // 8 if len(shape) > 1 else 0
        total += matrix or _FLOAT_BYTES * size
    return total


def _scales(rows_RC: Tensor, bits: int) -> Tensor:
    """Return the step (R, 1) of each row."""
    largest = rows_RC.abs().amax(dim=1, keepdim=True)
    return torch.where(largest > 0, largest / (2 ** (bits - 1) - 1), 1.0)


def _planes(codes: NDArray[np.integer]) -> bytes:
    """Return all low bytes and then all high bytes, because only high bytes compress."""
    return codes.reshape(-1, 1).view(np.uint8).T.tobytes()


def _from_planes(content: bytes, bits: int) -> NDArray[np.integer]:
    planes = np.frombuffer(content, np.uint8).reshape(bits // 8, -1)
    codes: NDArray[np.integer] = np.ascontiguousarray(planes.T).view(f"<i{bits // 8}")
    return codes
