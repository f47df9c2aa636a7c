"""The exception of this package."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

_KINDS = {1: "statement", 2: "environment", 3: "internal", 4: "stopped"}


class Error(Exception):
    """An error of a statement, of its environment, or of Weft itself.

    message   one line, without the location
    hint      one thing to do; empty if there is none
    line      from 1; None if the error has no location
    column    from 1, in characters; None if the error has no location
    text      what line and column refer to: the executed text, or a definition that it uses
    kind      "statement", "environment" (a file, a rank, memory), "internal" (a bug in Weft), or
              "stopped" (a training that was stopped and saved its checkpoint)
    answers   values of the statements before the one that failed; they have taken effect

    str(error) is the report that the weft program prints: location, message, the line with carets,
    and the hint.
    """

    def __init__(self, message: str, hint: str = "", *, line: Optional[int] = None,
                 column: Optional[int] = None, text: str = "", report: str = "", status: int = 1):
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.line = line
        self.column = column
        self.text = text
        self.status = status
        self.answers: List[Any] = []
        self._report = report

    @property
    def kind(self) -> str:
        return _KINDS.get(self.status, "internal")

    def __str__(self) -> str:
        if self._report:
            report = self._report.rstrip("\n")
            return report[len("error "):] if report.startswith("error ") else report
        return f"{self.message}\n  {self.hint}" if self.hint else self.message

    def __reduce__(self) -> Tuple[Any, ...]:
        return _restored, (self.__dict__.copy(),)


def _restored(state: dict) -> Error:
    error = Error(state["message"])
    error.__dict__.update(state)
    return error
