"""Commands for fine-tuning: `classify` and `sparse`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from fillmask.tables.delimited import Dialect
from fillmask_model.checkpoints.checkpoint import (
    FILES,
    Checkpoint,
    is_own_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from fillmask_model.checkpoints.errors import CheckpointError, prefix_errors
from fillmask_model.checkpoints.sentence_transformers import MODULES_FILE, write_sparse_modules
from fillmask_model.encoder.classifier import ClassifierConfig, ProblemType
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.empty import count_parameters
from fillmask_model.fine_tuning.classification import Classification, LabelledTexts, new_classifier
from fillmask_model.fine_tuning.config import ClassifyConfig, FineTuneConfig, SparseConfig
from fillmask_model.fine_tuning.labels import (
    Columns,
    encode_targets,
    label_names,
    read_dataset,
)
from fillmask_model.fine_tuning.loop import HISTORY_NAME, Epoch, Objective, fine_tune
from fillmask_model.fine_tuning.metrics import METRICS
from fillmask_model.fine_tuning.pairs import Pairs, read_pairs
from fillmask_model.fine_tuning.report import (
    REPORT_NAMES,
    best_epoch,
    draw_curve,
    summary,
    write_metrics,
)
from fillmask_model.fine_tuning.sparse import SparseSearch
from fillmask_model.fine_tuning.split import note_shared_texts, split_dataset
from fillmask_model.fine_tuning.tables import Dataset
from fillmask_model.fine_tuning.tokens import TokenizedTexts, tokenize
from fillmask_model.hyperparameters import add_flags, from_flags
from fillmask_model.interruption import StopRequest
from fillmask_model.memory import keep_freed_memory, limit_kernel_cache
from fillmask_model.optimization import add_device_flag, choose_device
from fillmask_model.output_files import reject_foreign_files, reject_inputs
from fillmask_model.tokenizers.special_tokens import check_vocabulary, read_tokenizer

PROBLEM_TYPES: dict[str, ProblemType] = {
    "single-label": "single_label_classification",
    "multi-label": "multi_label_classification",
    "regression": "regression",
}
LEAST_TOKENS = 8  # the special tokens of a pair and some words


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    classify = commands.add_parser("classify", help=classify_command.__doc__)
    classify.set_defaults(command=classify_command)
    add = classify.add_argument
    add("data", type=Path, help="labelled texts (.csv, .tsv, .jsonl, also .gz)")
    add("--validation", type=Path, help="file with the validation rows (default: a tenth of DATA)")
    add("--test", type=Path, help="file with the rows of the final test")
    _add_default(classify, "--text-column", "text", "column of the text")
    pair_help = "column of the second text (default: text_pair if the file has it)"
    add("--text-pair-column", help=pair_help)
    _add_default(classify, "--label-column", "label", "column of the label")
    kind_help = "kind of label: one per text, several per text, or a number"
    _add_default(classify, "--problem-type", "single-label", kind_help, choices=PROBLEM_TYPES)
    scratch_help = "start from random weights, with the sizes and the tokenizer of --init"
    add("--from-scratch", action="store_true", help=scratch_help)
    best_help = (
        "validation metric that selects the best epoch (default: accuracy, or macro_f1 with "
        "several labels per text, or mean_squared_error with numbers)"
    )
    every_metric = sorted({name for names in METRICS.values() for name in names})
    add("--best-by", choices=every_metric, help=best_help)
    _add_common_options(classify, ClassifyConfig)

    sparse = commands.add_parser("sparse", help=sparse_command.__doc__)
    sparse.set_defaults(command=sparse_command)
    add = sparse.add_argument
    add("data", type=Path, help="queries, each with a document (.csv, .tsv, .jsonl, also .gz)")
    pairs_help = "file with the pairs of the validation"
    add("--validation", required=True, type=Path, help=pairs_help)
    _add_default(sparse, "--query-column", "query", "column of the query")
    _add_default(sparse, "--document-column", "document", "column of the document")
    _add_common_options(sparse, SparseConfig)


def _add_common_options(parser: argparse.ArgumentParser, config: type[FineTuneConfig]) -> None:
    add = parser.add_argument
    Dialect.add_options(parser)
    add("--init", required=True, type=Path, help="checkpoint of the encoder to fine-tune")
    add("--output", required=True, type=Path, help="directory for the checkpoint")
    limit_help = "maximum length of a text in tokens (default: maximum of the encoder)"
    add("--max-tokens", type=int, help=limit_help)
    long_help = "reaction to a text of more than --max-tokens tokens"
    choices = ("error", "truncate")
    _add_default(parser, "--on-long-text", "error", long_help, choices=choices)
    add_device_flag(parser)
    add_flags(parser, config)


def _add_default(
    parser: argparse.ArgumentParser, flag: str, default: Any, meaning: str, **options: Any
) -> None:
    help_text = f"{meaning} (default: %(default)s)"
    parser.add_argument(flag, default=default, help=help_text, **options)


def classify_command(options: argparse.Namespace) -> None:
    """Fine-tune an encoder to classify texts."""
    problem_type = PROBLEM_TYPES[options.problem_type]
    metric = _best_by(options, problem_type)
    config = from_flags(ClassifyConfig, options)
    _prepare_process(options, [options.test], REPORT_NAMES)
    training, validation, test = _read_rows(options, problem_type)
    checkpoint, tokenizer = _load_start(options.init)
    encoder = checkpoint.model
    labels = label_names(training, options.label_column, problem_type)
    head = ClassifierConfig(
        labels=labels, problem_type=problem_type, pooling="mean", activation=None
    )
    tokens_of = _tokenize_with(options, tokenizer, encoder.config)

    def prepare(dataset: Dataset) -> LabelledTexts:
        return LabelledTexts(tokens_of(dataset), encode_targets(dataset, labels, problem_type))

    test_rows = prepare(test) if test else None  # before training, because its rows may be invalid
    objective = Classification(
        model=new_classifier(encoder, head, config.seed, from_scratch=options.from_scratch),
        head=head,
        training=prepare(training),
        validation=prepare(validation),
        config=config,
        device=options.device,
    )
    _note(
        f"parameters: {count_parameters(encoder.config, head).classifier:,}, "
        f"training rows: {len(training.examples):,}, "
        f"validation rows: {len(validation.examples):,}"
    )
    output, tokenizer_json = options.output, tokenizer.to_str().encode()

    def save(epochs: list[Epoch]) -> None:
        if best_epoch(epochs, metric) is epochs[-1]:
            save_checkpoint(output, objective.published_model(), tokenizer_json, fills=False)
        draw_curve(output, epochs, problem_type)

    epochs = _run(objective, config, output, save)
    _note(summary(write_metrics(output, objective, epochs, metric, test_rows), output))


def sparse_command(options: argparse.Namespace) -> None:
    """Train an encoder to make sparse vectors for search."""
    config = from_flags(SparseConfig, options)
    _prepare_process(options, [], [MODULES_FILE, HISTORY_NAME])
    columns = (options.query_column, options.document_column, Dialect.of(options))
    files = [read_pairs(path, *columns) for path in (options.data, options.validation)]
    checkpoint, tokenizer = _load_start(options.init)
    with prefix_errors(options.init):
        checkpoint.require_head()
    model, tokenizer_json = checkpoint.model, tokenizer.to_str().encode()
    model.classifier = None
    tokens_of = _tokenize_with(options, tokenizer, model.config)
    training, validation = (Pairs.of(*sides, tokens_of) for sides in files)
    objective = SparseSearch(
        model=model, training=training, validation=validation, config=config, device=options.device
    )
    _note(f"training pairs: {len(training):,}, validation pairs: {len(validation):,}")
    output = options.output

    def save(_: list[Epoch]) -> None:
        save_checkpoint(output, model, tokenizer_json)
        write_sparse_modules(output)

    epochs = _run(objective, config, output, save)
    _note(f"checkpoint after epoch {epochs[-1].epoch} of {config.epochs}: {output}")


def _load_start(directory: Path) -> tuple[Checkpoint, Tokenizer]:
    """Load a checkpoint and its tokenizer, with truncation and padding disabled."""
    checkpoint = load_checkpoint(directory)
    if checkpoint.tokenizer_json is None:
        raise CheckpointError(f"{directory} has no tokenizer; add tokenizer.json")
    tokenizer = read_tokenizer(checkpoint.tokenizer_json)
    with prefix_errors(directory):
        check_vocabulary(tokenizer, checkpoint.model.config.vocab_size)
    return checkpoint, tokenizer


def _prepare_process(
    options: argparse.Namespace, inputs: list[Path | None], reports: Iterable[str]
) -> None:
    """Choose the device, and reject an output in which the run would replace the user's files."""
    options.device = choose_device(options.device)
    keep_freed_memory()
    limit_kernel_cache()
    names = [*FILES, *reports]
    inputs = [options.data, options.validation, *inputs, *(options.init / one for one in FILES)]
    reject_inputs(inputs, [options.output / name for name in names])
    reject_foreign_files(options.output, names, own=is_own_checkpoint(options.output))


def _run(
    objective: Objective[Any],
    config: FineTuneConfig,
    output: Path,
    save: Callable[[list[Epoch]], None],
) -> list[Epoch]:
    """Train, with a call of `save` for the epochs so far after each."""
    epochs: list[Epoch] = []
    output.mkdir(parents=True, exist_ok=True)
    for name in REPORT_NAMES[:2]:  # of an earlier run
        (output / name).unlink(missing_ok=True)

    def add_epoch(epoch: Epoch) -> None:
        epochs.append(epoch)
        # the checkpoint first, because it shows that the other files come from fillmask
        save(epochs)
        epoch.append_to(output)

    with StopRequest() as stop:
        if not fine_tune(objective, config, add_epoch, stop):
            _note("SIGTERM has stopped the run")
    if not epochs:
        raise ValueError(
            "the run has no checkpoint, because it has completed no epoch; start the run again"
        )
    return epochs


def _read_rows(
    options: argparse.Namespace, problem_type: ProblemType
) -> tuple[Dataset, Dataset, Dataset | None]:
    """Return the training, validation and test rows, and print what is unusual about them."""
    names = (options.text_column, options.text_pair_column, options.label_column)
    columns = Columns(*names, Dialect.of(options))
    training = read_dataset(options.data, columns, problem_type)
    if training.ignored_columns:
        _note(f"ignored columns of {training.path}: {', '.join(training.ignored_columns)}")
    validation = None
    if options.validation is None:
        training, validation = split_dataset(training)

    def read_other(path: Path) -> Dataset:
        other = read_dataset(path, columns, problem_type)
        if training.has_pairs != other.has_pairs:
            pairs, single = (training, other) if training.has_pairs else (other, training)
            raise ValueError(
                f"{pairs.path} has pairs and {single.path} has single texts; use the same columns "
                "in both files"
            )
        note_shared_texts(training, other, _note)
        return other

    validation = validation or read_other(options.validation)
    return training, validation, read_other(options.test) if options.test else None


def _tokenize_with(
    options: argparse.Namespace, tokenizer: Tokenizer, encoder: EncoderConfig
) -> Callable[[Dataset], TokenizedTexts]:
    longest = encoder.max_positions
    max_tokens = longest if options.max_tokens is None else options.max_tokens
    if not LEAST_TOKENS <= max_tokens <= longest:
        raise ValueError(
            f"--max-tokens must be from {LEAST_TOKENS} to {longest}, the maximum of the encoder "
            f"(got {max_tokens})"
        )
    return partial(
        tokenize,
        tokenizer=tokenizer,
        max_tokens=max_tokens,
        type_vocab_size=encoder.type_vocab_size,
        truncate=options.on_long_text == "truncate",
        note=_note,
    )


def _best_by(options: argparse.Namespace, problem_type: ProblemType) -> str:
    allowed = METRICS[problem_type]
    chosen: str = options.best_by or allowed[0]
    if chosen not in allowed:
        raise ValueError(
            f"--best-by must be one of {', '.join(allowed)} with the problem type "
            f"{options.problem_type} (got {chosen})"
        )
    return chosen


def _note(text: str) -> None:
    print(text, flush=True)
