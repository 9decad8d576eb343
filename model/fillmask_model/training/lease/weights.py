"""Folders of weights: the start of a lease, and what each of its steps returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from fillmask_model.checkpoints.assembly import assemble
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.training.lease.codes import decode_weights, encode_weights, plain_bytes
from fillmask_model.training.lease.folders import MIB, Folder, count_parts, write_folder
from fillmask_model.training.lease.loads import PackFields
from fillmask_model.training.lease.plan import Progress

WEIGHTS = "weights"  # kind of the folder and name of its content
START_BITS = 8  # precision of weights on their way to a machine, where rows need the room
PART_BYTES = 15 * MIB  # maximum size of a returned file
_SMALL_BYTES = MIB  # at most, for manifest and log


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
