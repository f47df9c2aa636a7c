"""Answers of statements as Python values."""

from __future__ import annotations

import html
from typing import Any, Dict, Iterable, List


class Rows(List[Dict[str, Any]]):
    """The rows of a SHOW statement or of a table in a report: a list of dicts, one per row."""

    @property
    def columns(self) -> List[str]:
        names: Dict[str, None] = {}
        for row in self:
            names.update(dict.fromkeys(row))
        return list(names)

    def column(self, name: str) -> List[Any]:
        """The values of a column; None where a row lacks it."""
        if self and name not in self.columns:
            raise KeyError(f"no column is named {name}: there is {', '.join(self.columns)}")
        return [row.get(name) for row in self]

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame. Needs pandas."""
        import pandas

        return pandas.DataFrame(list(self), columns=self.columns)

    def _repr_html_(self) -> str:
        return table(self.columns, ([row.get(name, "") for name in self.columns] for row in self))


def table(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """An HTML table. Everything is escaped."""
    head = "".join(f"<th>{html.escape(str(one))}</th>" for one in heads)
    body = "".join("<tr>" + "".join(f'<td style="text-align:left">{html.escape(str(one))}</td>' for one in row)
                   + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
