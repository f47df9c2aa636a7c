"""Sessions: execute WeftQL statements, plan, train."""

from __future__ import annotations

import ctypes
import re
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Union

from . import _library
from ._call import Call, Listeners, SearchProgress, TrainProgress, last_error, to_bytes
from ._errors import Error
from ._plan import Configuration, Plan, Planned
from ._sql import name_of, settings_of
from ._tensor import Weights
from ._values import Rows

OnProgress = Callable[[Union[TrainProgress, SearchProgress]], Any]

# A single EXPLAIN; the group is the statement that it explains.
_EXPLAIN = re.compile(r"""\s*EXPLAIN\b(?:\s+(?:ANALYZE|VERBOSE)\b)*\s*(?:\([^()]*\))?\s*"""
                      r"""((?:TRAIN|INFER)\b(?:'[^']*'|"[^"]*"|[^;'"])*);?\s*""", re.IGNORECASE)


class Session:
    """A catalog, settings and weights, as `weft.connect()` opens it.

    Threads may share a session: it executes one call at a time, and other calls wait. Sessions are
    independent of each other. A process that was forked must open its own.
    """

    def __init__(self) -> None:
        self._handle: Optional[ctypes.c_void_p] = None
        self._library = _library.library()
        self._lock = threading.Lock()  # held during a call of the library
        self._guard = threading.Lock()  # held while the handle is used outside of such a call
        self._listeners = Listeners()
        handle = ctypes.c_void_p()
        status = self._library.weft_session_open(ctypes.byref(handle))
        if status != 0:
            raise last_error(self._library, status)
        self._handle = handle
        self._library.weft_session_on_answer(handle, self._listeners.on_answer, None)
        self._library.weft_session_on_progress(handle, self._listeners.on_progress, None)
        self._library.weft_session_on_search(handle, self._listeners.on_search, None)

    def execute_all(self, sql: str, *, on_progress: Optional[OnProgress] = None) -> List[Any]:
        """Executes statements separated by semicolons. Returns one value per statement.

        A value is a Plan for EXPLAIN, a Configuration for EXPLAIN (FORMAT megatron), a str for EXPLAIN
        (FORMAT plan), Rows for SHOW, and a dict for other statements: their JSON.

        `on_progress` is called in this thread with the progress of trainings and plan searches, at
        most ten times per second. An exception in it ends the statement.

        Raises weft.Error for the first statement that fails; it has changed nothing. Ctrl-C ends the
        statement and raises KeyboardInterrupt.
        """
        call = Call(self, to_bytes(sql), on_progress is not None)
        answers = call.wait(on_progress)
        source = _EXPLAIN.fullmatch(sql)
        return [self._value(answer, source.group(1) if source else None) for answer in answers]

    def execute(self, sql: str, *, on_progress: Optional[OnProgress] = None) -> Any:
        """Executes statements as execute_all() does, and returns the value of the last; None without one."""
        values = self.execute_all(sql, on_progress=on_progress)
        return values[-1] if values else None

    def plan(self, model: str, cluster: Optional[str] = None, *, task: str = "TRAIN",
             settings: Optional[Mapping[str, Any]] = None, on_progress: Optional[OnProgress] = None,
             **sizes: Any) -> Plan:
        """Plans a model of this session on a cluster or a device: EXPLAIN TRAIN model ON cluster.

        Without a cluster, on a core of this machine. `cluster` may also be 'LOCAL 4', ranks of this
        machine. `sizes` and `settings` form the WITH clause: b=64, precision='bf16'. `settings` is
        for names that are not Python's.
        """
        planned = Planned(task, model, cluster, {**sizes, **(settings or {})})
        call = Call(self, to_bytes(planned.statement()), on_progress is not None)
        return Plan(self, call.wait(on_progress)[-1], planned=planned)

    def train(self, model: str, data: Any, steps: int, *, settings: Optional[Mapping[str, Any]] = None,
              on_progress: Optional[OnProgress] = None, **sizes: Any) -> Dict[str, Any]:
        """Trains a model: TRAIN model FROM data STEPS steps WITH (...). Returns steps and losses.

        `data` is the name of a file, or a dict with an array or a file name per INPUT. An array is
        anything with the buffer protocol, such as a NumPy array.
        """
        return self._run("TRAIN", model, data, f" STEPS {int(steps)}", {**sizes, **(settings or {})}, on_progress)

    def infer(self, model: str, data: Any, *, settings: Optional[Mapping[str, Any]] = None,
              on_progress: Optional[OnProgress] = None, **sizes: Any) -> Dict[str, Any]:
        """Runs a trained model on data, as train() takes it. Returns the score, and under "rows" at
        most 10,000 values of results; execute("INFER ... INTO 'file.npy'") has no limit."""
        return self._run("INFER", model, data, "", {**sizes, **(settings or {})}, on_progress)

    def _run(self, verb: str, model: str, data: Any, more: str, settings: Mapping[str, Any],
             on_progress: Optional[OnProgress]) -> Dict[str, Any]:
        from ._data import Files

        with Files(data) as files:
            text = f"{verb} {name_of(model)} FROM {files.clause()}{more}{settings_of(settings)}"
            return Call(self, to_bytes(text), on_progress is not None).wait(on_progress)[-1]

    def weights(self, model: str) -> Weights:
        """A copy of the tensors of a model that this session has trained or loaded, by name."""
        name = to_bytes(model)
        found = ctypes.c_void_p()
        with self._lock:
            if self._handle is None:
                raise Error("the session is closed", "weft.connect() opens another")
            status = self._library.weft_session_weights(self._handle, name, ctypes.byref(found))
            if status != 0:
                raise last_error(self._library, status)
        return Weights(self._library, found)

    def interrupt(self) -> None:
        """Ends the statement that another thread executes here. A plan search returns the best plan so
        far; other statements raise weft.Error. Does nothing if nothing is executed."""
        with self._guard:
            if self._handle is not None:
                self._library.weft_session_interrupt(self._handle)

    def close(self) -> None:
        """Frees the session, after the statement that it executes. Plans and weights remain."""
        with self._lock, self._guard:
            handle, self._handle = self._handle, None
            if handle is not None:
                self._library.weft_session_close(handle)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_ignored: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self._library.weft_session_close(self._handle)

    def __repr__(self) -> str:
        return f"<weft.Session, Weft {self._library.weft_version().decode()}{'' if self._handle else ', closed'}>"

    def _value(self, answer: Any, source: Optional[str]) -> Any:
        if isinstance(answer, dict) and "schema" in answer and "task" in answer:
            return Plan(self, answer, source=source)
        if isinstance(answer, list) and all(isinstance(row, dict) for row in answer):
            return Rows(answer)
        if isinstance(answer, dict) and "configuration_plan" in answer:
            return Configuration._of(answer)
        return answer


def connect() -> Session:
    """Opens a session. It knows the shipped models, clusters and devices."""
    return Session()


def plan(model: str, cluster: Optional[str] = None, *, task: str = "TRAIN",
         settings: Optional[Mapping[str, Any]] = None, on_progress: Optional[OnProgress] = None,
         script: Optional[str] = None, **sizes: Any) -> Plan:
    """Plans a model on a cluster, in a session of its own: see Session.plan().

    `script` is WeftQL that is executed first, such as CREATE MODEL, or "RUN 'my.weft'".
    """
    session = connect()
    if script is not None:
        session.execute(script)
    return session.plan(model, cluster, task=task, settings=settings, on_progress=on_progress, **sizes)
