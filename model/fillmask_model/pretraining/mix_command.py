"""Command for mixing a corpus's documents into one training text."""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path

from fillmask_model.documents import read_documents, text_files
from fillmask_model.files import atomic_replace
from fillmask_model.output_files import reject_inputs
from fillmask_model.pretraining.decontamination import SentenceFilter, evaluation_sentences
from fillmask_model.pretraining.mixture import Mixture, mix, read_document_sources


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `mix` to the command line."""
    blend = commands.add_parser("mix", help=mix_command.__doc__)
    blend.set_defaults(command=mix_command)
    blend.add_argument(
        "texts", nargs="+", type=Path, help="text files or directories of text files"
    )
    titles_help = (
        "tables with source, title, author and bytes of each document, in the order of the texts"
    )
    blend.add_argument("--titles", required=True, nargs="+", type=Path, help=titles_help)
    blend.add_argument(
        "--mixture", required=True, type=Path, help="JSON file with the share of each source"
    )
    leave_out_help = "drop lines that contain sentences of these probes (.tsv) or held-out texts"
    blend.add_argument("--leave-out", type=Path, nargs="+", default=[], help=leave_out_help)
    blend.add_argument("--output", required=True, type=Path, help="text file to write")


def mix_command(options: argparse.Namespace) -> None:
    """Write the documents that a mixture selects to one plain-text file."""
    files = text_files(options.texts)
    inputs = [*files, *options.titles, options.mixture, *options.leave_out]
    reject_inputs(inputs, [options.output])
    documents = read_documents(files)
    sources = list(chain.from_iterable(map(read_document_sources, options.titles)))
    chosen = mix(documents, sources, Mixture.read(options.mixture))
    if options.leave_out:
        measured = SentenceFilter(chain.from_iterable(map(evaluation_sentences, options.leave_out)))
        chosen = list(filter(None, map(measured.remove_from, chosen)))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with atomic_replace(options.output) as temporary:
        temporary.write_text("\n\n".join(chosen) + "\n", encoding="utf-8")
    print(f"{len(chosen):,} documents, {options.output.stat().st_size:,} bytes: {options.output}")
