"""Reads CSV tables."""

import csv
from pathlib import Path

from diorama.core.errors import InputError
from diorama.io.files import read_text


def read_table(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """The columns of a CSV file and its rows by column; a row that lacks a column is refused."""
    try:
        table = csv.DictReader(read_text(path).splitlines(keepends=True))
        head = list(table.fieldnames or [])
        rows = list(table)
    except csv.Error as error:
        raise InputError(f"{path} is not a CSV table: {error}") from error
    for i, row in enumerate(rows, 2):
        if None in row.values() or None in row:
            raise InputError(f"{path}: line {i} has not the {len(head)} columns of the first line")
    return head, rows
