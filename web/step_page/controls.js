// Event handlers of the step page: pointer, keys, legend, search and theme. Loaded after drawing.js.
const byId = id => document.getElementById(id);
const text = (track, column, t) => data.strings[track.units[column][track.unit[t]]];
const lasts = (track, t) => track.end[t] - track.begin[t];

// The durations of the same task in the neighbouring tracks: [name, nanoseconds].
function besides(track, t) {
  const key = track.key[t], rows = [];
  const others = track.measured ? tracks.filter(o => o.index === track.beside) : tracks.filter(o => o.beside === track.index);
  for (const other of others) {
    const twin = other.twin.get(key);
    if (twin !== undefined) rows.push([(other.measured ? "measured, " : "predicted, ") + other.name, lasts(other, twin)]);
  }
  return rows;
}
const offBy = (measured, predicted) => predicted > 0 ? (measured >= predicted ? "+" : "−") + Math.round(Math.abs(measured / predicted - 1) * 100) + " %" : "";
function rowsAbout(track, t) {
  const own = lasts(track, t), rows = [[(track.measured ? "measured, " : "predicted, ") + track.name, showTime(own), ""]];
  for (const [what, time] of besides(track, t)) rows.push([what, showTime(time), track.measured ? "" : offBy(time, own)]);
  if (track.measured && rows.length === 2) rows[0][2] = offBy(own, besides(track, t)[0][1]);
  return rows.slice(0, 9);
}
const element = (tag, content) => { const e = document.createElement(tag); e.textContent = content; return e; };
function showTip(track, t, x, y) {
  const tip = byId("tip"), place = text(track, "where", t), result = text(track, "result", t), kind = data.kinds[track.units.kind[track.unit[t]]];
  tip.replaceChildren(element("b", text(track, "name", t)));
  if (place) tip.append(element("div", "in " + place));
  if (result) tip.append(element("div", result));
  const table = document.createElement("table");
  for (const cells of rowsAbout(track, t)) { const row = table.insertRow(); for (const cell of cells) row.insertCell().textContent = cell; }
  tip.append(table);
  tip.append(element("em", kind + " on " + track.lanes[track.lane[t]] + ", begins at " + showTime(track.begin[t]) + ", " + showBytes(track.bytes[t]) + (track.critical[t] ? "; on the critical path" : "")));
  tip.style.display = "block";
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 12) : y + 18) + "px";
}
const hideTip = () => { byId("tip").style.display = "none"; };

function taskAt(track, x, y) {
  const slack = 2 * (view.to - view.from) / plotWidth(track.canvas), time = toTime(x, track.canvas);
  if (x < gutter) return null;
  for (const lane of track.shown) {
    const row = lane.rows[Math.floor((y - lane.y) / (lane.height + 1))];
    if (y < lane.y || y > lane.y + lane.tall || !row) continue;
    let best = null, distance = slack;
    for (let i = above(row.ends, time - slack); i < row.tasks.length && track.begin[row.tasks[i]] <= time + slack; i++) {
      const t = row.tasks[i], far = time < track.begin[t] ? track.begin[t] - time : Math.max(0, time - track.end[t]);
      if (best === null || far < distance || (far === distance && lasts(track, t) > lasts(track, best))) { best = t; distance = far; }
    }
    return best;
  }
  return null;
}

function zoom(factor, center) {
  const c = center ?? (view.from + view.to) / 2;
  setView(c - (c - view.from) * factor, c + (view.to - c) * factor);
}
function fill(track, t) { const room = Math.max(lasts(track, t), 10); setView(track.begin[t] - room * .5, track.end[t] + room * .5); }
function pick(track, t) {
  state.picked = { track, task: t }; state.pointed = null; byId("hair").style.display = "none";
  const length = view.to - view.from;
  if (track.begin[t] < view.from || track.end[t] > view.to) { const middle = (track.begin[t] + Math.min(track.end[t], track.begin[t] + length)) / 2; setView(middle - length / 2, middle + length / 2); }
  draw();
  const box = track.canvas.getBoundingClientRect(), lane = track.shown[track.lane[t]];
  showTip(track, t, box.left + Math.max(gutter, toX(track.begin[t], track.canvas)), box.top + lane.y + lane.tall - 8);
  const place = text(track, "where", t);
  byId("said").textContent = text(track, "name", t) + (place ? " in " + place : "") + ", " + rowsAbout(track, t).map(r => r.join(" ")).join("; ") +
    ", begins at " + showTime(track.begin[t]) + (track.critical[t] ? ", on the critical path" : "");
}

const nearest = (track, lane, time) => {
  const order = track.order[lane];
  return order.reduce((best, t) => Math.abs(track.begin[t] - time) < Math.abs(track.begin[best] - time) ? t : best, order[0]);
};
function step(track, key) {
  const picked = state.picked && state.picked.track === track ? state.picked.task : null;
  const filled = track.order.map((o, l) => [o, l]).filter(([o]) => o.length).map(([, l]) => l);
  if (!filled.length) return;
  if (picked === null) return pick(track, nearest(track, filled[0], view.from));
  const lane = track.lane[picked], order = track.order[lane];
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const next = order.indexOf(picked) + (key === "ArrowRight" ? 1 : -1);
    if (next >= 0 && next < order.length) pick(track, order[next]);
    return;
  }
  const next = filled.indexOf(lane) + (key === "ArrowDown" ? 1 : -1);
  if (next >= 0 && next < filled.length) return pick(track, nearest(track, filled[next], track.begin[picked]));
  const other = tracks[track.index + (key === "ArrowDown" ? 1 : -1)];
  if (other) { other.canvas.focus(); const lanes = other.order.map((o, l) => [o, l]).filter(([o]) => o.length).map(([, l]) => l);
    if (lanes.length) pick(other, nearest(other, key === "ArrowDown" ? lanes[0] : lanes[lanes.length - 1], track.begin[picked])); }
}

for (const track of tracks) {
  const canvas = track.canvas; let held = null;
  canvas.addEventListener("pointermove", e => {
    const box = canvas.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
    byId("hair").style.display = x >= gutter ? "block" : "none"; byId("hair").style.left = x + "px";
    if (held) {
      const shift = (held.x - e.clientX) / plotWidth(canvas) * (held.to - held.from);
      if (Math.abs(held.x - e.clientX) > 3) held.moved = true;
      if (held.moved) { setView(held.from + shift, held.to + shift); hideTip(); }
      return;
    }
    const t = taskAt(track, x, y);
    state.pointed = t === null ? null : { track, task: t };
    if (t === null) hideTip(); else showTip(track, t, e.clientX, e.clientY);
    frame("pointed", state.pointed);
  });
  canvas.addEventListener("pointerdown", e => { if (e.button === 0) { held = { x: e.clientX, from: view.from, to: view.to, moved: false }; canvas.setPointerCapture(e.pointerId); canvas.classList.add("held"); } });
  const release = () => { if (held && !held.moved) { state.picked = state.pointed; frame("picked", state.picked); } held = null; canvas.classList.remove("held"); };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => { state.pointed = null; byId("hair").style.display = "none"; hideTip(); frame("pointed", null); });
  canvas.addEventListener("dblclick", e => {
    const box = canvas.getBoundingClientRect(), t = taskAt(track, e.clientX - box.left, e.clientY - box.top);
    if (t !== null) fill(track, t); else zoom(.5, toTime(e.clientX - box.left, canvas));
  });
  canvas.addEventListener("wheel", e => {
    const unit = e.deltaMode === 1 ? 16 : 1;
    if (e.ctrlKey || e.metaKey || e.altKey) { e.preventDefault(); zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * unit * .004))), toTime(e.clientX - canvas.getBoundingClientRect().left, canvas)); return; }
    const sideways = e.shiftKey && !e.deltaX ? e.deltaY : e.deltaX;
    if (Math.abs(sideways) > Math.abs(e.deltaY) || e.shiftKey) { e.preventDefault(); const by = sideways * unit / plotWidth(canvas) * (view.to - view.from); setView(view.from + by, view.to + by); }
  }, { passive: false });
  canvas.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const length = view.to - view.from, picked = state.picked && state.picked.track === track ? state.picked.task : null;
    const center = picked === null ? undefined : (track.begin[picked] + track.end[picked]) / 2;
    if (e.shiftKey && (e.key === "ArrowLeft" || e.key === "ArrowRight")) { const by = length * (e.key === "ArrowLeft" ? -.2 : .2); setView(view.from + by, view.to + by); hideTip(); }
    else if (e.key.startsWith("Arrow")) step(track, e.key);
    else if (e.key === "+" || e.key === "=") zoom(.6, center);
    else if (e.key === "-" || e.key === "_") zoom(1 / .6, center);
    else if (e.key === "0" || e.key === "Home") setView(whole.from, whole.to);
    else if (e.key === "Enter" && picked !== null) { fill(track, picked); pick(track, picked); }
    else if (e.key === "Escape") { state.picked = null; hideTip(); frame("picked", null); }
    else return;
    e.preventDefault();
  });
  canvas.addEventListener("blur", hideTip);
}

byId("in").onclick = () => zoom(.5);
byId("out").onclick = () => zoom(2);
byId("fit").onclick = () => setView(whole.from, whole.to);
for (const button of document.querySelectorAll("[data-kind]")) button.onclick = () => {
  const kind = Number(button.dataset.kind), on = !state.kinds.has(kind);
  if (on) state.kinds.add(kind); else state.kinds.delete(kind);
  button.setAttribute("aria-pressed", on); draw();
};
if (byId("critical")) byId("critical").onclick = () => { state.onlyCritical = !state.onlyCritical; byId("critical").setAttribute("aria-pressed", state.onlyCritical); draw(); };

let hits = [], hit = -1;
byId("find").addEventListener("input", () => {
  const wanted = byId("find").value.trim().toLowerCase(); hits = []; hit = -1;
  if (!wanted) { state.wanted = null; byId("found").textContent = ""; return draw(); }
  const has = data.strings.map(s => s.toLowerCase().includes(wanted));
  state.wanted = tracks.map(t => t.units.name.map((n, u) => has[n] || has[t.units.where[u]]));
  for (const t of tracks) for (const order of t.order) for (const task of order) if (state.wanted[t.index][t.unit[task]]) hits.push([t, task]);
  byId("found").textContent = hits.length ? hits.length.toLocaleString("en") + " tasks; Enter goes to the next" : "no such task"; draw();
});
byId("find").addEventListener("keydown", e => {
  if (e.key === "Enter" && hits.length) { hit = (hit + (e.shiftKey ? hits.length - 1 : 1)) % hits.length; const [t, task] = hits[hit]; t.canvas.scrollIntoView({ block: "nearest" }); pick(t, task); }
  if (e.key === "Escape") { byId("find").value = ""; byId("find").dispatchEvent(new Event("input")); hideTip(); }
});

const overview = byId("overview");
const slide = e => { const box = overview.getBoundingClientRect(), at = whole.from + (e.clientX - box.left) / box.width * (whole.to - whole.from), half = (view.to - view.from) / 2; setView(at - half, at + half); };
overview.addEventListener("pointerdown", e => { overview.setPointerCapture(e.pointerId); slide(e); });
overview.addEventListener("pointermove", e => { if (e.buttons & 1) slide(e); });

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const setTheme = dark => { document.documentElement.dataset.theme = dark ? "dark" : "light"; readColors(); draw(); };
byId("theme").onclick = () => setTheme(document.documentElement.dataset.theme !== "dark");
prefersDark.addEventListener("change", e => setTheme(e.matches));
for (const track of tracks) track.canvas.style.height = track.height + "px";
addEventListener("resize", draw);
addEventListener("scroll", draw, { passive: true });
setTheme(prefersDark.matches);
