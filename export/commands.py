"""Conversion of a checkpoint to a verified bundle or to the reference graph."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing
from pathlib import Path

import onnx

from export.golden import renew_golden_results
from export.progress import ExportProgress
from export.reference import reference_graph
from export.weights import encoder_weights
from export.write_bundle import BundleMetadata, SampleTexts, write_bundle
from model.checkpoints.checkpoint import load_checkpoint
from model.files import read_text
from service.errors import StartupError

VERIFICATION_TEXTS = Path(__file__).parent / "verification_texts.txt"
CALIBRATION_TEXTS = Path(__file__).parent / "calibration_texts.txt"


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    outputs = [options.output, options.reference, options.renew_golden]
    if sum(map(bool, outputs)) != 1:
        parser.error(
            "exactly one of --output BUNDLE, --reference FILE.onnx and --renew-golden must be set "
            f"(got {sum(map(bool, outputs))})"
        )
    try:
        if options.reference:
            _write_reference(options)
        elif options.output:
            _write_bundle(options)
        else:
            _renew_golden_results(options)
    except (ValueError, OSError, StartupError) as error:
        print(f"fillmask-export: {error}", file=sys.stderr)
        return 2
    return 0


def _write_bundle(options: argparse.Namespace) -> None:
    metadata = BundleMetadata(
        name=options.name or options.checkpoint.resolve().name,
        license=options.license,
        description=options.description,
        max_tokens=options.max_tokens,
        precision=options.precision,
    )
    texts = SampleTexts(_read_lines(options.texts), _read_lines(options.calibrate))
    with closing(ExportProgress(sys.stderr)) as progress:
        # without a variable for the checkpoint, so that `write_bundle` can free the model
        figures = write_bundle(
            load_checkpoint(options.checkpoint),
            options.output,
            metadata,
            texts,
            compensate=options.rounding == "gptq",
            report=progress.report,
        )
    print(json.dumps(figures, indent=2))
    if int8 := figures.get("int8"):
        share = f"{100 * int8['top_1_agreement']:.1f} % of {int8['masks']} masks"
        print(f"int8 has the top token of fp32 at {share}")
    size_bytes = sum(file.stat().st_size for file in options.output.iterdir())
    print(f"verified and written: {options.output} ({size_bytes / 1e6:.1f} MB)")


def _renew_golden_results(options: argparse.Namespace) -> None:
    bundle = options.checkpoint
    count = renew_golden_results(bundle, _read_lines(options.texts))
    print(f"written: {count} golden results in {bundle}")


def _read_lines(path: Path) -> list[str]:
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    if not lines:
        raise ValueError(f"{path} has no text; write one text per line")
    return lines


def _write_reference(options: argparse.Namespace) -> None:
    checkpoint = load_checkpoint(options.checkpoint)
    checkpoint.require_head()
    model = checkpoint.model
    graph = reference_graph(model.config, encoder_weights(model))
    onnx.checker.check_model(graph, full_check=True)
    onnx.save(graph, options.reference)
    print(f"written: {options.reference} ({options.reference.stat().st_size / 1e6:.1f} MB)")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fillmask-export", description=__doc__)
    families = "directory of the checkpoint; docs/models.md lists the families"
    parser.add_argument("checkpoint", type=Path, help=families)
    parser.add_argument("--output", type=Path, help="directory of the bundle to write")
    parser.add_argument("--reference", type=Path, help="file of the reference graph to write")
    parser.add_argument(
        "--renew-golden",
        action="store_true",
        help="replace the golden prompts and golden texts of a bundle, whose directory takes the "
        "place of the checkpoint",
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
    parser.add_argument("--name", help="name of the model (default: name of its directory)")
    parser.add_argument(
        "--license", default="unknown", help="licence of the weights (default: %(default)s)"
    )
    parser.add_argument("--description", default="", help="one sentence about the model")
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
        "The file has no effect on checkpoints trained with --round-weights.",
    )
    return parser
