// The style of a step's page. The colours of bars are --k0 .. --k9, in the order of BarKind.
#include "weft/explain/step_page_parts.h"

namespace weft::explain {

std::string_view step_page_style() {
  return R"css(
:root { color-scheme: light;
  --paper: #ffffff; --band: #f5f6f8; --line: #dcdfe4; --ink: #1b1f27; --faint: #5d6675; --accent: #1c5fbf;
  --critical: #111318; --exposed: #d1242f; --memory: #7a8494; --on-bar: #ffffff; --bars: #ffffff;
  --k0: #2f6fb3; --k1: #2e8b67; --k2: #7a5bb5; --k3: #8a929e; --k4: #c8501e; --k5: #b7791f;
  --k6: #b3427f; --k7: #8c5a2b; --k8: #a33c3c; --k9: #5a7d1f; }
:root[data-theme="dark"] { color-scheme: dark;
  --paper: #14171c; --band: #1b1f26; --line: #333a45; --ink: #e7eaee; --faint: #9aa4b2; --accent: #79b0ff;
  --critical: #ffffff; --exposed: #ff6b6b; --memory: #8b96a6; --on-bar: #0d0f12; --bars: #14171c;
  --k0: #6aa9ea; --k1: #5cc49a; --k2: #b39ae8; --k3: #97a1af; --k4: #f08a55; --k5: #e3b04b;
  --k6: #e583b5; --k7: #cf9c66; --k8: #e88080; --k9: #a5c766; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 14px/1.45 system-ui, "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif; }
header, main { max-width: 1680px; margin: 0 auto; padding: 0 24px; }
header { display: flex; align-items: start; justify-content: space-between; gap: 16px; padding-top: 20px; }
h1 { font-size: 22px; line-height: 1.2; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 0 0 8px; }
header p { margin: 4px 0 0; color: var(--faint); overflow-wrap: anywhere; }
button, input { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--line);
  border-radius: 5px; padding: 3px 10px; }
button { cursor: pointer; white-space: nowrap; }
button:hover { background: var(--band); }
button[aria-pressed="true"] { border-color: var(--accent); box-shadow: inset 0 0 0 1px var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 10px; margin: 18px 0 10px; }
.facts div { background: var(--band); border-radius: 8px; padding: 10px 14px; }
dt { color: var(--faint); font-size: 12.5px; }
dd { margin: 0; font-size: 21px; font-weight: 600; font-variant-numeric: tabular-nums; }
dd.note { font-size: 12px; font-weight: 400; color: var(--faint); }
.remarks { margin: 8px 0 20px; padding-left: 18px; color: var(--faint); font-size: 13px; }
#timelines { margin: 0 0 22px; }
.legend, .tools { display: flex; flex-wrap: wrap; gap: 6px 8px; align-items: center; margin-bottom: 8px; font-size: 13px; }
.legend i { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin-right: 6px; vertical-align: -1px; }
.legend i.critical { background: linear-gradient(var(--k3) 65%, var(--critical) 65%); }
.legend i.exposed { background: repeating-linear-gradient(135deg, var(--exposed) 0 1.5px, transparent 1.5px 4px); }
.legend span { padding: 3px 6px; }
.tools label { margin-left: 8px; }
.help { color: var(--faint); font-size: 12.5px; margin: 0 0 8px; max-width: 110ch; }
#stage { position: relative; border: 1px solid var(--line); border-radius: 8px; overflow: clip; background: var(--bars); }
.axis { position: sticky; top: 0; z-index: 2; background: var(--paper); border-bottom: 1px solid var(--line); }
#overview { height: 8px; margin: 5px 10px 0 96px; background: var(--band); border-radius: 4px; cursor: pointer; touch-action: none; }
#overview div { height: 100%; min-width: 6px; background: var(--faint); opacity: .55; border-radius: 4px; }
canvas { display: block; width: 100%; }
.track { margin: 0; border-bottom: 1px solid var(--line); }
.track canvas { cursor: grab; touch-action: pan-y; outline-offset: -2px; }
.track canvas.held { cursor: grabbing; }
figcaption { padding: 5px 10px 1px; font-size: 12.5px; }
figcaption b { display: inline-block; min-width: 74px; }
figcaption b.measured { color: var(--accent); }
figcaption span { color: var(--faint); font-variant-numeric: tabular-nums; margin-left: 6px; }
#hair { position: absolute; top: 0; bottom: 0; width: 1px; background: var(--faint); opacity: .6; pointer-events: none; display: none; z-index: 3; }
#pointed, #picked { position: absolute; display: none; pointer-events: none; border: 2px solid var(--ink); border-radius: 2px; }
#picked { border-color: var(--accent); }
#tip { position: fixed; z-index: 5; display: none; max-width: 400px; padding: 8px 11px; pointer-events: none; font-size: 12.5px;
  background: var(--paper); border: 1px solid var(--line); border-radius: 7px; box-shadow: 0 4px 18px rgb(0 0 0 / .22); overflow-wrap: anywhere; }
#tip b { display: block; }
#tip em { color: var(--faint); font-style: normal; }
#tip table { font-size: 12.5px; width: auto; }
#tip td { padding: 0 12px 0 0; border: 0; min-width: 0; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.wide { overflow-x: auto; margin: 0 0 22px; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-size: 16px; font-weight: 600; padding-bottom: 6px; white-space: nowrap; }
th, td { text-align: left; padding: 4px 18px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; font-weight: 400; }
thead th { color: var(--faint); font-size: 12.5px; white-space: nowrap; }
tbody th, td.right { white-space: nowrap; }
td:not(.right) { min-width: 14ch; max-width: 70ch; }
.right { text-align: right; }
.marked th, .marked td { font-weight: 600; background: var(--band); }
details { margin-bottom: 40px; }
summary { cursor: pointer; font-weight: 600; font-size: 15px; margin-bottom: 10px; }
@media (max-width: 640px) { header, main { padding-left: 12px; padding-right: 12px; } }
@media print { .tools, .help, #theme { display: none; } }
)css";
}

}  // namespace weft::explain
