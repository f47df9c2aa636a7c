"""A plan: what EXPLAIN found, as values, as text, as HTML, and for other launchers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional

from ._call import Call, to_bytes
from ._errors import Error
from ._sql import name_of, settings_of, target_of, text_of
from ._values import Rows

if TYPE_CHECKING:
    from ._session import Session

FORMATS = ("megatron", "deepspeed", "torchtitan", "torchtitan_toml", "torch")


class Planned:
    """The parts of the statement that a plan answers."""

    def __init__(self, task: str, model: str, cluster: Optional[str], settings: Mapping[str, Any]) -> None:
        if task.upper() not in ("TRAIN", "INFER"):
            raise ValueError(f"expected the task TRAIN or INFER, found {task}")
        self.task, self.model, self.cluster, self.settings = task.upper(), model, cluster, dict(settings)

    def run(self, distribution: str = "") -> str:
        """The statement after EXPLAIN. `distribution` fixes the plan, so that nothing is searched."""
        settings = {**self.settings, "distribution": distribution} if distribution else self.settings
        target = f" ON {target_of(self.cluster)}" if self.cluster else ""
        return f"{self.task} {name_of(self.model)}{target}{settings_of(settings)}"

    def statement(self, options: str = "", distribution: str = "") -> str:
        return f"EXPLAIN {f'({options}) ' if options else ''}{self.run(distribution)}"


class Configuration(str):
    """A plan in the format of a launcher: the text to use, with what the format cannot express.

    launcher       the format: one of FORMATS
    lost           differences from the plan, one line each; empty if the text expresses all of it
    distribution   the plan that the text describes
    step_seconds   predicted step time of the text
    """

    launcher: str
    lost: List[str]
    distribution: str
    step_seconds: float

    @classmethod
    def _of(cls, answer: Dict[str, Any]) -> "Configuration":
        made = cls(answer["configuration"])
        made.launcher, made.lost = answer["format"], answer["lost"]
        made.distribution, made.step_seconds = answer["configuration_plan"], answer["configuration_seconds"]
        return made


class Plan:
    """A plan for a model on a cluster, and its predicted step.

    str(plan) is the report that EXPLAIN prints, plan.json the whole JSON object (docs/json.md), and a
    notebook draws the report. Plans do not change; they keep their session for to() and page().
    """

    def __init__(self, session: "Session", answer: Dict[str, Any], *, planned: Optional[Planned] = None,
                 source: Optional[str] = None) -> None:
        self._session = session
        self._planned = planned
        self._source = source
        self._report: str = answer.get("report", "")
        self.json: Dict[str, Any] = {key: value for key, value in answer.items() if key != "report"}

    @property
    def model(self) -> str:
        return self.json["model"]

    @property
    def task(self) -> str:
        """TRAIN or INFER."""
        return self.json["task"]

    @property
    def cluster(self) -> str:
        return self.json["cluster"]

    @property
    def devices(self) -> int:
        return self.json["devices"]

    @property
    def parallelism(self) -> str:
        """The plan in the usual terms: "TP 8 · DP 4 (ZeRO-1)", or "one h100"."""
        return self.json["parallelism"]

    @property
    def distribution(self) -> str:
        """The plan for the setting `distribution`. Empty on one device."""
        return self.json.get("plan", "")

    @property
    def step_seconds(self) -> float:
        """Predicted seconds per step."""
        return self.json["step_seconds"]

    @property
    def memory_bytes(self) -> int:
        """Predicted memory of the fullest rank."""
        return self.json["memory_per_rank_bytes"]

    @property
    def memory(self) -> Dict[str, int]:
        """That memory by kind: parameters, gradients, optimizer, activations, inputs, scratch."""
        return dict(self.json.get("memory", {}))

    @property
    def fits(self) -> bool:
        return self.json["fits"]

    @property
    def proven(self) -> bool:
        """Whether the plan was proven equal to that of one device."""
        return self.json["proven"]

    @property
    def proof(self) -> str:
        return self.json["proof"]

    @property
    def alternatives(self) -> Rows:
        """Other plans, the best of each family, without nested values."""
        return Rows({key: value for key, value in one.items() if not isinstance(value, (dict, list))}
                    for one in self.json.get("alternatives", []))

    def to(self, format: str) -> Configuration:
        """The plan for "megatron", "deepspeed", "torchtitan" or "torchtitan_toml" (up to 0.2.2), or for
        "torch": a Python file that a training script imports. If the format cannot express the plan, the
        nearest configuration: see `.lost`."""
        if format not in FORMATS:
            raise ValueError(f"unknown format: {format}; expected {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
        return Configuration._of(self._again(f"FORMAT {format}"))

    def page(self, path: str) -> None:
        """Writes the plan and its timeline as an HTML page for browsers."""
        self._again(f"PAGE {text_of(path)}")

    def timeline(self, path: str) -> None:
        """Writes the predicted tasks for Perfetto or chrome://tracing."""
        self._again(f"TIMELINE {text_of(path)}")

    def _again(self, options: str) -> Any:
        if self._planned is not None:
            text = self._planned.statement(options, self.distribution)
        elif self._source is not None:
            text = f"EXPLAIN ({options}) {self._source}"
        else:
            raise Error("the statement of this plan is not known", "use weft.plan(), or execute the EXPLAIN alone")
        return Call(self._session, to_bytes(text), False).wait(None)[-1]

    def __str__(self) -> str:
        return self._report.rstrip("\n")

    def __repr__(self) -> str:
        step = f"{self.step_seconds:.3g} s per step" + ("" if self.fits else ", does not fit")
        return f"<weft.Plan {self.task} {self.model} on {self.cluster}: {self.parallelism}, {step}>"

    def _repr_html_(self) -> str:
        from ._report_html import report_html

        return report_html(self)
