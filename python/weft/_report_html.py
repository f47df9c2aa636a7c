"""The report of a plan as HTML, for notebooks. Every text is escaped; there are no scripts."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

from ._values import table

if TYPE_CHECKING:
    from ._plan import Plan

LEAST_SHARE = 0.005  # smaller parts of a bar are left out
_COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#a463f2", "#9c6b4e", "#97bbf5")


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"


def _bytes(value: float) -> str:
    for unit, power in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if value >= 1 << power:
            return f"{value / (1 << power):.3g} {unit}"
    return f"{value:.0f} B"


def _count(value: float) -> str:
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.3g}"


def _bar(parts: List[Tuple[str, float, str]], whole: float) -> str:
    """A stacked bar with a legend: parts are (name, value, printed value)."""
    if not whole > 0:
        return ""
    parts = [part for part in parts if part[1] / whole >= LEAST_SHARE]
    boxes, legend = [], []
    for index, (name, value, printed) in enumerate(parts):
        colour = _COLOURS[index % len(_COLOURS)]
        share = min(100.0, 100 * value / whole)
        text = html.escape(f"{name} {printed} ({share:.0f} %)")
        boxes.append(f'<span title="{text}" style="display:inline-block;height:100%;width:{share:.2f}%;'
                     f'background:{colour}"></span>')
        legend.append(f'<span style="white-space:nowrap;margin-right:1em"><span style="color:{colour}">'
                      f"&#9632;</span> {text}</span>")
    return ('<div style="height:12px;max-width:640px;border:1px solid #8886;font-size:0;white-space:nowrap;'
            f'overflow:hidden">{"".join(boxes)}</div><div style="font-size:90%">{" ".join(legend)}</div>')


def _row(name: str, content: str) -> str:
    return (f'<tr><th style="text-align:left;vertical-align:top">{html.escape(name)}</th>'
            f'<td style="text-align:left">{content}</td></tr>')


def _step(json: Dict[str, Any]) -> str:
    text = _seconds(json["step_seconds"])
    interval = json.get("interval")
    if interval and "step_seconds_low" in interval:
        text += (f" (8 of 10 runs: {_seconds(interval['step_seconds_low'])} to "
                 f"{_seconds(interval['step_seconds_high'])})")
    if json.get("examples_per_second"):
        text += f" · {_count(json['examples_per_second'])} {json.get('examples', 'rows')}/s"
    if json.get("mfu"):
        text += f" · {100 * json['mfu']:.0f} % of peak"
    return html.escape(text)


def _memory(json: Dict[str, Any]) -> str:
    limit = json.get("memory_limit_bytes", 0)
    text = _bytes(json["memory_per_rank_bytes"]) + " per rank"
    if limit:
        text += f" of {_bytes(limit)}"
    text = html.escape(text)
    if not json["fits"]:
        text += ' <b style="color:#c00">does not fit</b>'
    kinds = [(name, float(value), _bytes(value)) for name, value in json.get("memory", {}).items()]
    return text + _bar(kinds, max(json["memory_per_rank_bytes"], sum(part[1] for part in kinds)))


def _alternatives(json: Dict[str, Any]) -> str:
    rows = [(one.get("name", ""), one.get("parallelism", ""), _seconds(one["step_seconds"]),
             f"{one['step_seconds'] / json['step_seconds']:.2f}x" if json["step_seconds"] > 0 else "",
             _bytes(one["memory_per_rank_bytes"]), one.get("why_not", ""))
            for one in json.get("alternatives", []) if "step_seconds" in one]
    heads = ("other plan", "parallelism", "step", "vs plan", "memory per rank", "why not")
    return table(heads, rows) if rows else ""


def report_html(plan: "Plan") -> str:
    json = plan.json
    sizes = ", ".join(f"{name} = {size}" for name, size in json.get("indices", {}).items())
    head = f"{json['task']} {json['model']} on {json['cluster']} ({json['devices']} {json['device']})"
    rows = [_row("Plan", html.escape(plan.parallelism)), _row("Step", _step(json))]
    times = [(name.replace("_", " "), float(value), _seconds(value))
             for name, value in json.get("time_seconds", {}).items()]
    if times:
        rows.append(_row("Time", _bar(times, sum(part[1] for part in times))))
    rows.append(_row("Memory", _memory(json)))
    for name, key in (("Limit", "bound_by"), ("Next", "next"), ("Proof", "proof")):
        if json.get(key):
            rows.append(_row(name, html.escape(str(json[key])).replace("\n", "<br>")))
    if plan.distribution:
        rows.append(_row("Use", f"<code>distribution = '{html.escape(plan.distribution)}'</code>"))
    return (f"<div><div><b>{html.escape(head)}</b></div><div>{html.escape(sizes)}</div>"
            f"<table><tbody>{''.join(rows)}</tbody></table>{_alternatives(json)}</div>")
