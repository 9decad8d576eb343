"""Commands for fine-tuning: `classify`, `classify-tokens` and `sparse`."""

from __future__ import annotations

import argparse
from pathlib import Path

from fillmask.tables.delimited import Dialect
from fillmask_model.checkpoints.checkpoint import save_checkpoint
from fillmask_model.checkpoints.errors import prefix_errors
from fillmask_model.checkpoints.sentence_transformers import MODULES_FILE, write_sparse_modules
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.empty import count_parameters
from fillmask_model.fine_tuning.classification import Classification, LabelledTexts, new_classifier
from fillmask_model.fine_tuning.config import ClassifyConfig, SparseConfig
from fillmask_model.fine_tuning.entities import encode_entities
from fillmask_model.fine_tuning.labels import (
    TOKENS,
    Columns,
    Problem,
    encode_targets,
    label_names,
    read_dataset,
)
from fillmask_model.fine_tuning.loop import HISTORY_NAME, Epoch
from fillmask_model.fine_tuning.metrics import METRICS
from fillmask_model.fine_tuning.pairs import Pairs, read_pairs
from fillmask_model.fine_tuning.report import (
    REPORT_NAMES,
    best_epoch,
    draw_curve,
    summary,
    write_metrics,
)
from fillmask_model.fine_tuning.runs import (
    add_common_options,
    add_default,
    load_start,
    note,
    prepare_process,
    run,
    tokenize_with,
)
from fillmask_model.fine_tuning.sparse import SparseSearch
from fillmask_model.fine_tuning.split import note_shared_texts, split_dataset
from fillmask_model.fine_tuning.tables import Dataset
from fillmask_model.hyperparameters import from_flags

PROBLEM_TYPES: dict[str, Problem] = {
    "single-label": "single_label_classification",
    "multi-label": "multi_label_classification",
    "regression": "regression",
}
ENTITIES_HELP = (
    'Each line of DATA is an object such as {"text": "Ada is here.", "entities": [{"start": 0, '
    '"end": 3, "label": "PER"}]}, with offsets in characters (Unicode code points). An entity '
    "labels each token of which it has a character, even if its boundary cuts the token."
)


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    classify = commands.add_parser("classify", help=classify_command.__doc__)
    _add_label_options(classify, "labelled texts (.csv, .tsv, .jsonl, also .gz)")
    add = classify.add_argument
    pair_help = "column of the second text (default: text_pair if the file has it)"
    add("--text-pair-column", help=pair_help)
    add_default(classify, "--label-column", "label", "column of the label")
    kind_help = "kind of label: one per text, several per text, or a number"
    add_default(classify, "--problem-type", "single-label", kind_help, choices=PROBLEM_TYPES)
    best_help = (
        "validation metric that selects the best epoch (default: accuracy, or macro_f1 with "
        "several labels per text, or mean_squared_error with numbers)"
    )
    every_metric = sorted({name for kind in PROBLEM_TYPES.values() for name in METRICS[kind]})
    add("--best-by", choices=every_metric, help=best_help)

    tokens_help = "Fine-tune an encoder to find entities in texts: names, places and so on."
    tokens = commands.add_parser("classify-tokens", help=tokens_help, description=ENTITIES_HELP)
    _add_label_options(tokens, "texts with their entities (.jsonl, also .gz)")
    add_default(tokens, "--label-column", "entities", "column of the list of entities")
    best_help = "validation metric of the entities that selects the best epoch"
    add_default(tokens, "--best-by", METRICS[TOKENS][0], best_help, choices=METRICS[TOKENS])
    tokens.set_defaults(problem_type="tokens", text_pair_column=None, on_long_text="truncate")

    sparse = commands.add_parser("sparse", help=sparse_command.__doc__)
    sparse.set_defaults(command=sparse_command)
    add = sparse.add_argument
    add("data", type=Path, help="queries, each with a document (.csv, .tsv, .jsonl, also .gz)")
    pairs_help = "file with the pairs of the validation"
    add("--validation", required=True, type=Path, help=pairs_help)
    add_default(sparse, "--query-column", "query", "column of the query")
    add_default(sparse, "--document-column", "document", "column of the document")
    add_common_options(sparse, SparseConfig)


def _add_label_options(parser: argparse.ArgumentParser, data_help: str) -> None:
    parser.set_defaults(command=classify_command)
    add = parser.add_argument
    add("data", type=Path, help=data_help)
    add("--validation", type=Path, help="file with the validation rows (default: a tenth of DATA)")
    add("--test", type=Path, help="file with the rows of the final test")
    add_default(parser, "--text-column", "text", "column of the text")
    scratch_help = "start from random weights, with the sizes and the tokenizer of --init"
    add("--from-scratch", action="store_true", help=scratch_help)
    add_common_options(parser, ClassifyConfig)


def classify_command(options: argparse.Namespace) -> None:
    """Fine-tune an encoder to classify texts."""
    problem_type = PROBLEM_TYPES.get(options.problem_type, TOKENS)
    metric = _best_by(options, problem_type)
    config = from_flags(ClassifyConfig, options)
    prepare_process(options, [options.test], REPORT_NAMES)
    training, validation, test = _read_rows(options, problem_type)
    checkpoint, tokenizer = load_start(options.init)
    encoder = checkpoint.model
    labels = label_names(training, options.label_column, problem_type)
    of_tokens = problem_type == TOKENS
    head = ClassifierConfig(
        labels=labels,
        problem_type="single_label_classification" if problem_type == TOKENS else problem_type,
        pooling="tokens" if of_tokens else "mean",
        activation=None,
    )
    tokens_of = tokenize_with(options, tokenizer, encoder.config, with_spans=of_tokens)

    def prepare(dataset: Dataset) -> LabelledTexts:
        texts = tokens_of(dataset)
        if problem_type == TOKENS:
            return LabelledTexts(texts, encode_entities(dataset, texts, labels))
        return LabelledTexts(texts, encode_targets(dataset, labels, problem_type))

    test_rows = prepare(test) if test else None  # before training, because its rows may be invalid
    objective = Classification(
        model=new_classifier(encoder, head, config.seed, from_scratch=options.from_scratch),
        head=head,
        training=prepare(training),
        validation=prepare(validation),
        config=config,
        device=options.device,
    )
    note(
        f"parameters: {count_parameters(encoder.config, head).classifier:,}, "
        f"training rows: {len(training.examples):,}, "
        f"validation rows: {len(validation.examples):,}"
    )
    output, tokenizer_json = options.output, tokenizer.to_str().encode()

    def save(epochs: list[Epoch]) -> None:
        if best_epoch(epochs, metric) is epochs[-1]:
            save_checkpoint(output, objective.published_model(), tokenizer_json, fills=False)
        draw_curve(output, epochs, problem_type)

    epochs = run(objective, config, output, save)
    note(summary(write_metrics(output, objective, epochs, metric, test_rows), output))


def sparse_command(options: argparse.Namespace) -> None:
    """Train an encoder to make sparse vectors for search."""
    config = from_flags(SparseConfig, options)
    prepare_process(options, [], [MODULES_FILE, HISTORY_NAME])
    columns = (options.query_column, options.document_column, Dialect.of(options))
    files = [read_pairs(path, *columns) for path in (options.data, options.validation)]
    checkpoint, tokenizer = load_start(options.init)
    with prefix_errors(options.init):
        checkpoint.require_head()
    model, tokenizer_json = checkpoint.model, tokenizer.to_str().encode()
    model.classifier = None
    tokens_of = tokenize_with(options, tokenizer, model.config)
    training, validation = (Pairs.of(*sides, tokens_of) for sides in files)
    objective = SparseSearch(
        model=model, training=training, validation=validation, config=config, device=options.device
    )
    note(f"training pairs: {len(training):,}, validation pairs: {len(validation):,}")
    output = options.output

    def save(_: list[Epoch]) -> None:
        save_checkpoint(output, model, tokenizer_json)
        write_sparse_modules(output)

    epochs = run(objective, config, output, save)
    note(f"checkpoint after epoch {epochs[-1].epoch} of {config.epochs}: {output}")


def _read_rows(
    options: argparse.Namespace, problem_type: Problem
) -> tuple[Dataset, Dataset, Dataset | None]:
    """Return the training, validation and test rows, and print what is unusual about them."""
    names = (options.text_column, options.text_pair_column, options.label_column)
    columns = Columns(*names, Dialect.of(options))
    training = read_dataset(options.data, columns, problem_type)
    if training.ignored_columns:
        note(f"ignored columns of {training.path}: {', '.join(training.ignored_columns)}")
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
        note_shared_texts(training, other, note)
        return other

    validation = validation or read_other(options.validation)
    return training, validation, read_other(options.test) if options.test else None


def _best_by(options: argparse.Namespace, problem_type: Problem) -> str:
    allowed = METRICS[problem_type]
    chosen: str = options.best_by or allowed[0]
    if chosen not in allowed:
        raise ValueError(
            f"--best-by must be one of {', '.join(allowed)} with the problem type "
            f"{options.problem_type} (got {chosen})"
        )
    return chosen
