"""Commands of `fillmask-export`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import onnx

from fillmask.bundles.bundle import DESCRIPTION_FILE, FILES, read_bundle
from fillmask.bundles.cache import RECORD_FILE, cached_bundle, export_record, is_current
from fillmask.bundles.validation import check_name
from fillmask.engine.linux.native_operators import OperatorsUnavailableError
from fillmask.errors import StartupError
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.arguments import export_parser
from fillmask_export.bundle.description_fields import file_fields
from fillmask_export.bundle.fused_graph import add_fused_graph
from fillmask_export.bundle.output import check_output
from fillmask_export.bundle.write_bundle import BundleMetadata, write_bundle
from fillmask_export.graph.reference import reference_graph
from fillmask_export.graph.weights import encoder_weights
from fillmask_export.sample_texts import GivenTexts
from fillmask_export.source import find_checkpoint, load_source, reject_download_options
from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.files import atomic_replace, printable, read_text
from fillmask_model.output_files import reject_inputs


def main(arguments: list[str] | None = None) -> int:
    parser = export_parser()
    options = parser.parse_args(arguments)
    outputs = [options.output, options.bundles, options.cache, options.reference, options.fuse]
    if sum(map(bool, outputs)) != 1:
        parser.error(
            "exactly one of --output BUNDLE, --bundles DIR, --cache, --reference FILE.onnx and "
            f"--fuse must be set (got {sum(map(bool, outputs))})"
        )
    try:
        if options.reference:
            _write_reference(options)
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
        output, choices = cached_bundle(options.checkpoint), _choices(options)
        if is_current(output, options.checkpoint, choices) and not options.overwrite:
            print(f"in the cache: {output}; add --overwrite to export it again")
            return
        overwrite = True
    else:
        output, overwrite = options.output or options.bundles / name, options.overwrite
    check_output(output, overwrite=overwrite)
    # before the files are read, so that the record never tells of a file what nobody has read
    record = export_record(options.checkpoint, choices) if options.cache else None
    texts = _read_texts(options)
    source = find_checkpoint(options)
    names = (*FILES, DESCRIPTION_FILE)
    given = [file for file in (options.texts, options.calibrate) if file is not None]
    inputs = [*(source.directory / name for name in names), *given]
    reject_inputs(inputs, [output / name for name in names])
    metadata = BundleMetadata(
        name=model_name,
        license=options.license,
        description=options.description or source.origin or "",
        max_tokens=options.max_tokens,
        precision=options.precision,
        special_tokens=options.special_tokens,
    )
    (output / RECORD_FILE).unlink(missing_ok=True)
    # without a variable for the checkpoint, so that `write_bundle` can free the model
    figures = write_bundle(
        load_source(options, source),
        output,
        metadata,
        texts,
        compensate=options.rounding == "gptq",
        overwrite=overwrite,
    )
    notes = [*figures.pop("notes", ())]
    if record is not None:
        (output / RECORD_FILE).write_text(json.dumps(record))
        if not is_current(output, options.checkpoint):
            notes.append(f"{options.checkpoint} has changed during the export; export it again")
    print(json.dumps(figures, indent=2))
    for note in notes:
        print(f"fillmask-export: {printable(note)}", file=sys.stderr)
    unknown, name = (figures["tokens"][field] for field in ("unknown_share", "texts"))
    print(f"verified on {name}, of whose tokens {100 * unknown:.1f} % are unknown")
    if int8 := figures.get("int8"):
        share = f"{100 * int8['top_1_agreement']:.1f} % of {int8['masks']} masks"
        print(f"int8 has the top token of fp32 at {share}")
        if "not_fused" in figures:
            print(f"without a fused graph, because {figures['not_fused']}")
    size_bytes = sum(file.stat().st_size for file in output.iterdir())
    print(f"verified and written: {output} ({size_bytes / 1e6:.1f} MB)")
    if not options.cache:
        print(f"to serve it, set FILLMASK_BUNDLE={output}")


def _choices(options: argparse.Namespace) -> dict[str, object]:
    """Return the options that change the bundle, and the hashes of the files that they name."""
    return {
        name: file_fields(value) if isinstance(value, Path) else value
        for name, value in vars(options).items()
        if name not in {"checkpoint", "overwrite"}
    }


def _fuse(options: argparse.Namespace) -> None:
    reject_download_options(options)
    bundle = read_bundle(Path(options.checkpoint))
    texts = _read_texts(options).complete(Tokenizer.from_bundle(bundle))
    figures = add_fused_graph(bundle, texts.verification)
    if figures is None:
        raise ValueError(f"{bundle.path} has no int8 layers; export it with --precision int8")
    print(json.dumps(figures, indent=2))
    print(f"verified and written: the fused graph in {bundle.path}")


def _read_texts(options: argparse.Namespace) -> GivenTexts:
    files = options.texts, options.calibrate
    return GivenTexts(*(None if file is None else _read_lines(file) for file in files))


def _read_lines(path: Path) -> list[str]:
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    if not lines:
        raise ValueError(f"{path} has no text; write one text per line")
    return lines


def _write_reference(options: argparse.Namespace) -> None:
    file = options.reference
    if file.exists() and not options.overwrite:
        raise ValueError(f"{file} exists; add --overwrite to replace it, or choose another file")
    checkpoint = load_checkpoint(find_checkpoint(options).directory, options.checkpoint)
    checkpoint.require_head()
    model = checkpoint.model
    graph = reference_graph(model.config, encoder_weights(model))
    onnx.checker.check_model(graph, full_check=True)
    with atomic_replace(file) as temporary:
        onnx.save(graph, temporary)
    print(f"written: {file} ({file.stat().st_size / 1e6:.1f} MB)")
