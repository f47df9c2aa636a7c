"""One execution of statements in a thread of its own.

A call into the library cannot be interrupted by a Python signal handler while the calling thread is
inside it. So a second thread is inside it, with the interpreter lock released, and the calling
thread waits in Python. There it runs the callbacks, and Ctrl-C reaches it.
"""

from __future__ import annotations

import ctypes
import json
import queue
import threading
from typing import TYPE_CHECKING, Any, List, NamedTuple, Optional, Tuple

from . import _library
from ._errors import Error

if TYPE_CHECKING:
    from ._session import Session

INTERRUPT_AGAIN_SECONDS = 0.05


class TrainProgress(NamedTuple):
    """Progress of a training."""

    model: str
    step: int  # completed so far
    steps: int  # in total; 0: unknown
    loss: float
    rows_per_second: float  # 0: not yet known
    seconds_left: float  # negative: not yet known


class SearchProgress(NamedTuple):
    """Progress of a plan search."""

    model: str
    candidates: int  # plans tried so far
    best_seconds: float  # predicted step time of the best plan that fits; 0: none yet
    bound_seconds: float  # no plan takes less; 0: not known
    seconds: float  # since the search began


def to_text(raw: Optional[bytes]) -> str:
    return (raw or b"").decode("utf-8", "replace")


def to_bytes(text: str) -> bytes:
    """For the library. File names keep bytes that are not UTF-8."""
    if "\0" in text:
        raise Error("a statement cannot contain a null character", "remove it")
    return text.encode("utf-8", "surrogateescape")


def parse(answer: str) -> Any:
    """The JSON of an answer; the text of one that is not JSON, such as a plan."""
    try:
        return json.loads(answer)
    except ValueError:
        return answer


def error_of(raw: _library.CError) -> Error:
    return Error(to_text(raw.message), to_text(raw.hint), line=raw.line or None, column=raw.column or None,
                 text=to_text(raw.text), report=to_text(raw.report), status=raw.status)


def last_error(library: ctypes.CDLL, status: int) -> Error:
    """The error of a failed call of this thread."""
    return Error(to_text(library.weft_last_error()), status=status)


class Listeners:
    """The C callbacks of a session. They pass on what the library reports to the current call."""

    def __init__(self) -> None:
        self.events: Optional["queue.SimpleQueue[Tuple[str, Any]]"] = None
        self.wants_progress = False
        # The library keeps these pointers, so they live as long as the session.
        self.on_answer = _library.OnAnswer(self._answer)
        self.on_progress = _library.OnProgress(self._progress)
        self.on_search = _library.OnSearch(self._search)

    def _put(self, kind: str, value: Any) -> None:
        if self.events is not None:
            self.events.put((kind, value))

    def _answer(self, text: int, size: int, _data: Any) -> None:
        self._put("answer", ctypes.string_at(text, size))

    def _progress(self, raw: Any, _data: Any) -> None:
        if not self.wants_progress:
            return
        now = raw.contents
        self._put("progress", TrainProgress(to_text(now.model), now.step, now.steps, now.loss,
                                            now.rows_per_second, now.seconds_left))

    def _search(self, raw: Any, _data: Any) -> None:
        if not self.wants_progress:
            return
        now = raw.contents
        self._put("progress", SearchProgress(to_text(now.model), now.candidates, now.best_seconds,
                                             now.bound_seconds, now.seconds))


class Call(threading.Thread):
    """Executes `text` in the session. The thread waits for the session's lock and holds it meanwhile,
    so that an abandoned call never leaves a session unlocked in the middle of a statement."""

    def __init__(self, session: "Session", text: bytes, wants_progress: bool) -> None:
        super().__init__(name="weft call")
        self.session = session
        self.statements = text
        self.wants_progress = wants_progress
        self.events: "queue.SimpleQueue[Tuple[str, Any]]" = queue.SimpleQueue()
        self.executing = False
        self.cancelled = False

    def run(self) -> None:
        try:
            with self.session._lock:
                self.executing = True
                self.events.put(("end", None if self.cancelled else self._execute()))
        except BaseException as failure:  # reaches the waiting thread
            self.events.put(("end", failure))

    def _execute(self) -> Optional[BaseException]:
        handle = self.session._handle
        if handle is None:
            return Error("the session is closed", "weft.connect() opens another")
        library, listeners = self.session._library, self.session._listeners
        listeners.events, listeners.wants_progress = self.events, self.wants_progress
        answer = ctypes.c_void_p()
        try:
            status = library.weft_session_execute(handle, self.statements, _library.WEFT_JSON_WITH_REPORT,
                                                  ctypes.byref(answer))
            if status == 0:
                return None
            raw = library.weft_answer_error(answer)
            return error_of(raw.contents) if raw else last_error(library, status)
        finally:
            listeners.events = None
            library.weft_answer_free(answer)

    def cancel(self) -> None:
        """Ends the call. Returns when it has ended, or at once if it waits for another call."""
        self.cancelled = True
        while self.is_alive() and self.executing:
            # Again and again: an interrupt before the statement begins has no effect.
            self.session.interrupt()
            self.join(INTERRUPT_AGAIN_SECONDS)

    def wait(self, on_progress: Any) -> List[Any]:
        """Returns the answers. On an exception here, also Ctrl-C, ends the call first."""
        answers: List[Any] = []
        try:
            self.start()
            while True:
                kind, value = self.events.get()
                if kind == "progress":
                    on_progress(value)
                elif kind == "answer":
                    answers.append(parse(to_text(value)))
                else:
                    break
        except BaseException:
            self.cancel()
            raise
        if value is not None:
            if isinstance(value, Error):
                value.answers = answers
            raise value
        return answers
