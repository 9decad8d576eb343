"""What a machine keeps between the steps of a lease: the loads that arrived, and the full state.

A step starts from that state, or on a new machine from weights that travelled with the step.
"""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from fillmask_model.checkpoints.assembly import assemble
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.files import atomic_replace
from fillmask_model.training.lease.folders import MANIFEST, Folder
from fillmask_model.training.lease.loads import LOAD, PackFields
from fillmask_model.training.lease.plan import Progress
from fillmask_model.training.lease.weights import WEIGHTS, read_weights

STATE_NAME = "state.pt"
_LOADS = "loads"


class Machine:
    """Directory of the machine's own disk.

    Args:
        directory: directory outside of everything that travels.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def keep(self, loads: Sequence[Path]) -> None:
        """Check loads that arrived and copy them, because the next step brings others.

        Raises:
            ValueError: a load is damaged.
        """
        for source in loads:
            Folder.open(source, LOAD).check()
            target = self.directory / _LOADS / source.name
            draft = target.with_name(f".{source.name}")
            for path in (draft, target):
                shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(source, draft)
            draft.rename(target)

    def loads(self) -> list[Folder]:
        """Return all loads that have arrived, in their order.

        Raises:
            ValueError: no load has arrived, or the loads belong to different packs.
        """
        found = sorted((self.directory / _LOADS).glob(f"*/{MANIFEST}"))
        paths = [path.parent for path in found if not path.parent.name.startswith(".")]
        if not paths:
            raise ValueError(f"{self.directory} has no load; give the first one with --load")
        loads = [Folder.open(path, LOAD) for path in sorted(paths, key=_in_order)]
        packs = {PackFields.from_dict(load.fields["pack"]).pack for load in loads}
        if len(packs) > 1:
            raise ValueError(
                f"{self.directory} has loads of {len(packs)} packs; choose another --work"
            )
        return loads

    def write_state(self, state: dict[str, Any]) -> None:
        """Replace the full state of the training atomically."""
        with atomic_replace(self.directory / STATE_NAME) as temporary:
            torch.save(state, temporary)

    def read_state(self, fields: PackFields) -> dict[str, Any] | None:
        """Return the full state of the training, with all tensors on the CPU, or None without one.

        Raises:
            ValueError: the state is damaged or belongs to another pack.
        """
        path = self.directory / STATE_NAME
        if not path.exists():
            return None
        try:
            state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        except (RuntimeError, pickle.UnpicklingError, EOFError):
            raise ValueError(
                f"{path} is incomplete or not a state; remove it and give --weights"
            ) from None
        if state["pack"] != fields.pack:
            raise ValueError(f"{path} belongs to another pack; choose another --work")
        return state


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Encoder and progress from which a step starts.

    Attributes:
        state: full state on the machine's disk. None for a start from averaged weights alone.
    """

    model: TiedEncoder
    progress: Progress
    state: dict[str, Any] | None


def newest_start(state: dict[str, Any] | None, weights: Path | None, fields: PackFields) -> Start:
    """Choose the newest of the state of this machine and the given weights.

    Raises:
        ValueError: there is neither, or the weights are damaged or belong to another pack.
    """
    given = None
    if weights is not None:
        model, its_fields, progress = read_weights(Folder.open(weights, WEIGHTS))
        if its_fields.pack != fields.pack:
            raise ValueError(
                f"{weights} must belong to the pack of the loads; give weights that come from it"
            )
        # the optimizer begins again
        given = Start(model, replace(progress, warm_from=progress.step), None)
    if state is None:
        if given is None:
            raise ValueError(
                "the machine has no state of an earlier step; give the start or the last returned "
                "weights with --weights"
            )
        return given
    progress = Progress.from_dict(state["progress"])
    if given is not None and given.progress.step > progress.step:
        return given
    model = assemble(fields.encoder, None, state["model"], str, head_is_new=False)
    return Start(model, progress, state)


def _in_order(path: Path) -> tuple[int, str]:
    """Return a key that sorts load_2 before load_10."""
    return len(path.name), path.name
