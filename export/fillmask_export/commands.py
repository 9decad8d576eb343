"""Conversion of a checkpoint, in a directory or on a hub, to a verified bundle or a graph."""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import onnx

from fillmask.bundles.bundle import DESCRIPTION_FILE, FILES, read_bundle
from fillmask.bundles.cache import cached_bundle, is_current
from fillmask.bundles.validation import check_name
from fillmask.engine.machine.native_operators import OperatorsUnavailableError
from fillmask.errors import StartupError
from fillmask_export.fused_bundle import add_fused_graph
from fillmask_export.graph.reference import reference_graph
from fillmask_export.graph.weights import encoder_weights
from fillmask_export.progress import ExportProgress
from fillmask_export.verification.golden import renew_golden_results
from fillmask_export.write_bundle import BundleMetadata, SampleTexts, check_output, write_bundle
from fillmask_model.checkpoints.checkpoint import Checkpoint, load_checkpoint
from fillmask_model.checkpoints.modules import ENCODER_FILE, check_encoder_file, read_modules
from fillmask_model.checkpoints.sparse import with_sparse_settings
from fillmask_model.files import printable, read_text
from fillmask_model.output_files import reject_inputs

VERIFICATION_TEXTS = Path(__file__).parent / "verification_texts.txt"
SPARSE = "sparse"
CALIBRATION_TEXTS = Path(__file__).parent / "calibration_texts.txt"


class Source(NamedTuple):
    """Directory of a checkpoint.

    Attributes:
        origin: id and commit of a downloaded checkpoint. None for a directory of the user.
    """

    directory: Path
    origin: str | None


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    outputs = [
        options.output, options.bundles, options.cache, options.reference, options.renew_golden,
        options.fuse,
    ]  # fmt: skip
    if sum(map(bool, outputs)) != 1:
        parser.error(
            "exactly one of --output BUNDLE, --bundles DIR, --cache, --reference FILE.onnx, "
            f"--renew-golden and --fuse must be set (got {sum(map(bool, outputs))})"
        )
    try:
        if options.reference:
            _write_reference(options)
        elif options.renew_golden:
            _renew_golden_results(options)
        elif options.fuse:
            _fuse(options)
        else:
            _write_bundle(options)
    except (
        ValueError,
        OSError,
        StartupError,
        MemoryError,
        OperatorsUnavailableError,
    ) as error:
        reason = str(error) or "the process needs more memory than it has"
        print(f"fillmask-export: {printable(reason)}", file=sys.stderr)
        return 2
    return 0


def _write_bundle(options: argparse.Namespace) -> None:
    # the last part of the id or path, also of a link to a directory
    name = Path(os.path.abspath(options.checkpoint)).name  # noqa: PTH100 - resolve follows links
    model_name = check_name(options.name or name)  # before a download
    if options.cache:
        output = cached_bundle(options.checkpoint)
        if is_current(output, options.checkpoint) and not options.overwrite:
            print(f"in the cache: {output}; add --overwrite to export it again")
            return
        overwrite = True
    else:
        output, overwrite = options.output or options.bundles / name, options.overwrite
    check_output(output, overwrite=overwrite)
    calibration = _read_lines(options.calibrate)
    if options.rounding == "nearest":
        # only smoothing needs them: with all 210, agreement is the same and the export takes 16 %
        # longer (BERT-base, measured on 2026-11-26)
        calibration = calibration[::2]
    texts = SampleTexts(_read_lines(options.texts), calibration)
    source = _find_checkpoint(options)
    names = (*FILES, DESCRIPTION_FILE)
    inputs = [*(source.directory / name for name in names), options.texts, options.calibrate]
    reject_inputs(inputs, [output / name for name in names])
    metadata = BundleMetadata(
        name=model_name,
        license=options.license,
        description=options.description or source.origin or "",
        max_tokens=options.max_tokens,
        precision=options.precision,
    )
    with closing(ExportProgress(sys.stderr)) as progress:
        # without a variable for the checkpoint, so that `write_bundle` can free the model
        figures = write_bundle(
            _load(options, source),
            output,
            metadata,
            texts,
            compensate=options.rounding == "gptq",
            overwrite=overwrite,
            report=progress.report,
        )
    print(json.dumps(figures, indent=2))
    if int8 := figures.get("int8"):
        share = f"{100 * int8['top_1_agreement']:.1f} % of {int8['masks']} masks"
        print(f"int8 has the top token of fp32 at {share}")
        if "not_fused" in figures:
            print(f"without a fused graph, because {figures['not_fused']}")
    size_bytes = sum(file.stat().st_size for file in output.iterdir())
    print(f"verified and written: {output} ({size_bytes / 1e6:.1f} MB)")
    if not options.cache:
        print(f"to serve it, set FILLMASK_BUNDLE={output}")


def _load(options: argparse.Namespace, source: Source) -> Checkpoint:
    modules = read_modules(source.directory)
    directory = source.directory / ("" if modules is None else modules.encoder)
    check_encoder_file(directory / ENCODER_FILE)
    checkpoint = load_checkpoint(directory, options.checkpoint)
    if options.task == SPARSE or (options.task is None and modules is not None):
        return with_sparse_settings(checkpoint, source.directory, modules)
    return checkpoint


def _find_checkpoint(options: argparse.Namespace) -> Source:
    """Return the checkpoint in an existing directory, or download it."""
    path = Path(options.checkpoint)
    if path.exists():
        _reject_download_options(options)
        return Source(path, None)
    # imported here, because a checkpoint in a directory needs no download
    from fillmask_export.hub.download import download_checkpoint, is_repository_id  # noqa: PLC0415

    if not is_repository_id(options.checkpoint):
        raise ValueError(
            f"{path} does not exist; name the directory of a checkpoint, or the id of a repository "
            "on the hub, such as google-bert/bert-base-uncased"
        )
    snapshot = download_checkpoint(
        options.checkpoint, options.revision, sys.stderr, allow_pickle=options.allow_pickle
    )
    origin = f"{options.checkpoint} at commit {snapshot.commit}"
    print(f"checkpoint: {origin}")
    return Source(snapshot.directory, origin)


def _reject_download_options(options: argparse.Namespace) -> None:
    if options.revision is not None or options.allow_pickle:
        raise ValueError(
            "--revision and --allow-pickle need the id of a repository (got the path "
            f"{options.checkpoint}); remove them, or name the path differently from the repository"
        )


def _renew_golden_results(options: argparse.Namespace) -> None:
    _reject_download_options(options)
    bundle = Path(options.checkpoint)
    texts = _read_lines(options.texts)
    count = renew_golden_results(bundle, texts)
    renewed = read_bundle(bundle)
    if renewed.fused is not None:
        add_fused_graph(renewed, texts)
    print(f"written: {count} golden results in {bundle}")


def _fuse(options: argparse.Namespace) -> None:
    _reject_download_options(options)
    bundle = Path(options.checkpoint)
    figures = add_fused_graph(read_bundle(bundle), _read_lines(options.texts))
    if figures is None:
        raise ValueError(f"{bundle} has no int8 layers; export it with --precision int8")
    print(json.dumps(asdict(figures), indent=2))
    print(f"verified and written: the fused graph in {bundle}")


def _read_lines(path: Path) -> list[str]:
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    if not lines:
        raise ValueError(f"{path} has no text; write one text per line")
    return lines


def _write_reference(options: argparse.Namespace) -> None:
    file = options.reference
    if file.exists() and not options.overwrite:
        raise ValueError(f"{file} exists; add --overwrite to replace it, or choose another file")
    checkpoint = load_checkpoint(_find_checkpoint(options).directory, options.checkpoint)
    checkpoint.require_head()
    model = checkpoint.model
    graph = reference_graph(model.config, encoder_weights(model))
    onnx.checker.check_model(graph, full_check=True)
    onnx.save(graph, file)
    print(f"written: {file} ({file.stat().st_size / 1e6:.1f} MB)")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fillmask-export", description=__doc__)
    parser.add_argument(
        "checkpoint",
        help="directory of the checkpoint, or id of a repository on the hub, such as "
        "google-bert/bert-base-uncased; docs/models.md lists the families",
    )
    parser.add_argument(
        "--revision", help="branch, tag or commit of the repository (default: main)"
    )
    parser.add_argument(
        "--allow-pickle",
        action="store_true",
        help="download pytorch_model.bin from a repository without safetensors files",
    )
    parser.add_argument(
        "--output", type=Path, metavar="BUNDLE", help="directory of the bundle to write"
    )
    parser.add_argument(
        "--bundles",
        type=Path,
        metavar="DIR",
        help="directory of bundles; the new bundle gets the last part of the id or directory as "
        "its name",
    )
    parser.add_argument(
        "--cache",
        action="store_true",
        help="write the bundle to the cache of fillmask-serve --checkpoint, unless it is there",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace an existing bundle after verification, or an existing reference graph",
    )
    parser.add_argument("--reference", type=Path, help="file of the reference graph to write")
    parser.add_argument(
        "--renew-golden",
        action="store_true",
        help="replace the golden prompts and golden texts of a bundle, whose directory takes the "
        "place of the checkpoint",
    )
    parser.add_argument(
        "--fuse",
        action="store_true",
        help="add the graph for fillmask-native to a bundle in int8, whose directory takes the "
        "place of the checkpoint. An export adds it by itself, where fillmask-native is installed",
    )
    parser.add_argument(
        "--precision",
        choices=("fp32", "int8"),
        default="fp32",
        help="precision of weights and arithmetic (default: %(default)s)",
    )
    parser.add_argument(
        "--rounding",
        choices=("gptq", "nearest"),
        default="gptq",
        help="method that rounds weights to int8: gptq compensates for rounding errors, nearest is "
        "faster and less accurate (default: %(default)s)",
    )
    parser.add_argument(
        "--task",
        choices=("fill-mask", SPARSE),
        help="task of a masked-language-model head: filling masks, or sparse vectors for search "
        "(default: sparse for a checkpoint with SPLADE's pooling)",
    )
    parser.add_argument("--name", help="name of the model (default: name of its directory)")
    parser.add_argument(
        "--license", default="unknown", help="licence of the weights (default: %(default)s)"
    )
    parser.add_argument(
        "--description",
        help="one sentence about the model (default: id and commit of a downloaded checkpoint)",
    )
    parser.add_argument(
        "--max-tokens",
        type=int,
        help="maximum length of an input in tokens (default: all positions of the model)",
    )
    parser.add_argument(
        "--texts",
        type=Path,
        default=VERIFICATION_TEXTS,
        help="file of sentences for verification, one per line (default: 130 English texts)",
    )
    parser.add_argument(
        "--calibrate",
        type=Path,
        default=CALIBRATION_TEXTS,
        help="file of sentences for int8 calibration, one per line (default: 210 English texts). "
        "The rounding nearest reads every other sentence. The file has no effect on checkpoints "
        "trained with --round-weights.",
    )
    return parser
