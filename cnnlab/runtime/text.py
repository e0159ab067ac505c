"""Text in columns."""

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]], align: str = "") -> str:
    """Rows of cells as lines, each column as wide as its widest cell, with two spaces between.

    `align` has one letter for each column: "<" puts its cells left, ">" right. Default: all left.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    columns = list(zip(align or "<" * len(widths), widths, strict=True))
    return "\n".join(
        "  ".join(f"{cell:{a}{n}}" for cell, (a, n) in zip(row, columns, strict=True)).rstrip()
        for row in rows
    )
