"""Parquet, whose modules need pyarrow."""

from fillmask.cli.formats.base import Format, OutputOptions, Rows, RowWriter, Source


def _read(source: Source) -> Rows:
    from fillmask.cli.formats.parquet.rows import ParquetRows  # noqa: PLC0415 - an optional extra

    return ParquetRows(source)


def _write(rows: Rows, options: OutputOptions) -> RowWriter:
    from fillmask.cli.formats.parquet.writer import ParquetRowWriter  # noqa: PLC0415 - an optional extra

    return ParquetRowWriter(rows, options)


PARQUET = Format((".parquet",), _read, _write, is_text=False)
