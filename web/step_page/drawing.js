// Rendering of the step page: builds tracks from the data and draws them on canvases.
//
// A track has lanes, a lane has rows (overlapping tasks are stacked), and a row has tasks in order of time.
// Only visible tasks are processed. Tasks of a few pixels or less are merged into columns, whose height is
// the fraction of the pixel that they fill.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const gutter = 96, margin = 10, bar = 20, gap = 5, memoryHeight = 46;
const number3 = x => { const t = x.toPrecision(3); return t.includes("e") ? String(Math.round(x)) : String(Number(t)); };
const showTime = ns => { const a = Math.abs(ns);
  return a >= 1e9 ? number3(ns / 1e9) + " s" : a >= 1e6 ? number3(ns / 1e6) + " ms" : a >= 1e3 ? number3(ns / 1e3) + " us" : Math.round(ns) + " ns"; };
const showBytes = b => { let u = 0; while (b >= 1024 && u < 5) { b /= 1024; u++; } return number3(b) + " " + ["B", "KiB", "MiB", "GiB", "TiB", "PiB"][u]; };

// The first position in a sorted array with an entry greater than x.
function above(sorted, x) {
  let low = 0, high = sorted.length;
  while (low < high) { const middle = (low + high) >> 1; if (sorted[middle] > x) high = middle; else low = middle + 1; }
  return low;
}

// Assigns the tasks of one lane to rows without overlaps; the last row takes the remaining ones.
function rowsOf(track, tasks) {
  tasks.sort((a, b) => track.begin[a] - track.begin[b] || a - b);
  const rows = [], most = 4;
  for (const t of tasks) {
    let row = rows.find(r => r.last <= track.begin[t]);
    if (!row) { if (rows.length < most) rows.push(row = { tasks: [], ends: [], last: -Infinity }); else row = rows[most - 1]; }
    row.last = Math.max(row.last, track.end[t]);
    row.tasks.push(t); row.ends.push(row.last); track.row[t] = rows.indexOf(row);
  }
  return rows;
}

// Intervals with communication but no computation.
function exposedOf(track) {
  const edges = [];
  track.begin.forEach((begin, t) => { const moves = track.lane[t] >= track.computing;
    if (track.lane[t] === track.passes) return;  // they overlap computation and communication
    edges.push([begin, moves ? 0 : 1, moves ? 1 : 0], [track.end[t], moves ? 0 : -1, moves ? -1 : 0]); });
  edges.sort((a, b) => a[0] - b[0] || b[1] - a[1] || b[2] - a[2]);
  const found = []; let computing = 0, moving = 0, since = null;
  for (const [time, c, m] of edges) {
    computing += c; moving += m;
    const exposed = moving > 0 && computing === 0;
    if (exposed && since === null) since = time;
    if (!exposed && since !== null) { if (time > since) found.push([since, time]); since = null; }
  }
  return found;
}

function makeTrack(t, index) {
  const count = t.unit.length, track = { ...t, index, count, end: new Float64Array(count), row: new Uint8Array(count), critical: new Uint8Array(count) };
  track.begin = Float64Array.from(t.begin);
  for (let i = 0; i < count; i++) track.end[i] = t.begin[i] + t.length[i];
  for (const i of t.critical) track.critical[i] = 1;
  track.hasCritical = t.critical.length > 0;
  const byLane = t.lanes.map(() => []), twins = new Map();
  track.key = new Array(count);
  for (let i = 0; i < count; i++) {
    byLane[t.lane[i]].push(i);
    // The same task in another track has the same name, place and ordinal.
    const u = t.unit[i], what = t.units.name[u] + "/" + t.units.where[u], seen = twins.get(what) || 0;
    twins.set(what, seen + 1); track.key[i] = what + "/" + seen;
  }
  track.twin = new Map(track.key.map((key, i) => [key, i]));
  let y = gap;
  track.shown = byLane.map((tasks, l) => {
    const rows = rowsOf(track, tasks), height = rows.length > 1 ? 13 : bar;
    const lane = { name: t.lanes[l], rows, y, height, tall: Math.max(1, rows.length) * (height + 1) - 1 };
    y += lane.tall + gap; return lane;
  });
  track.order = track.shown.map(lane => lane.rows.flatMap(r => r.tasks).sort((a, b) => track.begin[a] - track.begin[b]));
  track.exposed = exposedOf(track);
  track.exposedEnds = track.exposed.map(e => e[1]);
  track.memoryY = y; track.hasMemory = t.memory.when.length > 0;
  track.height = y + (track.hasMemory ? memoryHeight + gap : 0);
  track.canvas = document.querySelectorAll(".track canvas")[index];
  return track;
}
const tracks = data.timelines.map(makeTrack);
const whole = { from: 0, to: 1 };
let mostMemory = 1;
for (const t of tracks) {
  for (let i = 0; i < t.count; i++) { whole.from = Math.min(whole.from, t.begin[i]); whole.to = Math.max(whole.to, t.end[i]); }
  for (const b of t.memory.bytes) mostMemory = Math.max(mostMemory, b);
}
const view = { from: whole.from, to: whole.to };
const state = { kinds: new Set(), onlyCritical: false, wanted: null, picked: null, pointed: null };

let colors = {};
function readColors() {
  const style = getComputedStyle(document.documentElement), get = name => style.getPropertyValue(name).trim();
  colors = { kinds: data.kinds.map((_, k) => get("--k" + k)) };
  for (const name of ["paper", "band", "line", "ink", "faint", "critical", "exposed", "memory", "on-bar", "accent"]) colors[name] = get("--" + name);
  const tile = document.createElement("canvas"); tile.width = tile.height = 6;
  const c = tile.getContext("2d"); c.strokeStyle = colors.exposed; c.lineWidth = 1.2;
  c.beginPath(); c.moveTo(-1, 7); c.lineTo(7, -1); c.moveTo(-1, 1); c.lineTo(1, -1); c.moveTo(5, 7); c.lineTo(7, 5); c.stroke();
  colors.hatch = tile;
}

const font = (size, bold) => (bold ? "600 " : "") + size + "px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";
function prepare(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); canvas.style.height = height + "px";
  }
  const c = canvas.getContext("2d");
  c.setTransform(ratio, 0, 0, ratio, 0, 0); c.clearRect(0, 0, width, height);
  return c;
}
const plotWidth = canvas => Math.max(40, canvas.clientWidth - gutter - margin);
const toX = (time, canvas) => gutter + (time - view.from) / (view.to - view.from) * plotWidth(canvas);
const toTime = (x, canvas) => view.from + (x - gutter) / plotWidth(canvas) * (view.to - view.from);

function ticks(width) {
  const raw = (view.to - view.from) / Math.max(2, width / 110), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= raw), found = [];
  for (let n = Math.ceil(view.from / step); n * step <= view.to && found.length < 200; n++) found.push(n * step);
  return found;
}
// Formats all ticks in one unit, with as many digits as needed to distinguish them.
function showTick(time, step) {
  const largest = Math.max(Math.abs(view.from), Math.abs(view.to));
  const [size, unit] = largest >= 1e9 ? [1e9, " s"] : largest >= 1e6 ? [1e6, " ms"] : largest >= 1e3 ? [1e3, " us"] : [1, " ns"];
  return (time / size).toFixed(Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9)))) + unit;
}

function drawAxis() {
  const canvas = document.getElementById("axis"), c = prepare(canvas, 22), marks = ticks(plotWidth(canvas));
  c.font = font(11.5); c.fillStyle = colors.faint; c.textAlign = "center"; c.textBaseline = "middle";
  const step = marks.length > 1 ? marks[1] - marks[0] : view.to - view.from;
  for (const time of marks) {
    const text = showTick(time, step), half = c.measureText(text).width / 2;
    c.fillText(text, Math.min(Math.max(toX(time, canvas), gutter + half - 6), canvas.clientWidth - half - 2), 11);
  }
  const window_ = document.querySelector("#overview div"), all = whole.to - whole.from;
  window_.style.marginLeft = (view.from - whole.from) / all * 100 + "%"; window_.style.width = (view.to - view.from) / all * 100 + "%";
}

const strength = (track, t) => {
  const u = track.unit[t];
  if (state.kinds.size && !state.kinds.has(track.units.kind[u])) return .14;
  if (state.onlyCritical && track.hasCritical && !track.critical[t]) return .14;
  return state.wanted && !state.wanted[track.index][u] ? .14 : 1;
};

// The fraction of each pixel column that short intervals fill, by kind; the last kind is for all others.
function makeShares(width, kinds) {
  const columns = Math.ceil(width) + 1, share = new Float32Array(columns * kinds);
  return { columns, kinds, share, used: false, add(x0, x1, kind) {
    this.used = true;
    for (let p = Math.max(0, Math.floor(x0)), end = Math.min(columns - 1, x1); p < end || p === Math.floor(x0); p++) {
      if (p >= columns) break;
      share[kind * columns + p] += Math.max(Math.min(x1, p + 1) - Math.max(x0, p), 1e-5);
    }
  } };
}

function drawRow(c, track, lane, row, y) {
  const width = plotWidth(track.canvas), scale = width / (view.to - view.from), kinds = track.units.kind, other = data.kinds.length;
  const shares = makeShares(width, other + 2), singled = state.kinds.size || state.onlyCritical || state.wanted;
  for (let i = above(row.ends, view.from); i < row.tasks.length; i++) {
    const t = row.tasks[i];
    if (track.begin[t] > view.to) break;
    const x0 = (track.begin[t] - view.from) * scale, x1 = (track.end[t] - view.from) * scale, u = track.unit[t], alpha = strength(track, t);
    if (x1 - x0 < 3) {
      shares.add(x0, x1, alpha === 1 ? kinds[u] : other);
      if (track.critical[t]) shares.add(x0, x1, other + 1);
      continue;
    }
    const left = Math.max(0, x0), room = Math.min(width, x1) - left, tight = room > 4 ? room - 1 : room;
    if (room <= 0) continue;
    c.globalAlpha = alpha; c.fillStyle = colors.kinds[kinds[u]]; c.fillRect(gutter + left, y, tight, lane.height);
    if (track.critical[t]) { c.fillStyle = colors.critical; c.fillRect(gutter + left, y + lane.height - 3, tight, 3); }
    if (room > 30) {
      const name = data.strings[track.units.name[u]], place = data.strings[track.units.where[u]];
      const letters = Math.floor((room - 8) / 6.1), full = place && name.length + place.length + 3 <= letters ? name + " · " + place : name;
      c.fillStyle = colors["on-bar"]; c.font = font(11);
      c.fillText(full.length > letters ? full.slice(0, Math.max(1, letters - 1)) + "…" : full, gutter + left + 4, y + (lane.height - (track.critical[t] ? 2 : 0)) / 2 + .5);
    }
  }
  // Columns stack their kinds, so that a zoomed-out lane shows its load and its composition.
  if (shares.used) {
    const tops = new Float32Array(shares.columns).fill(y + lane.height), columns = shares.columns;
    for (let k = 0; k <= other; k++) {
      const least = singled && k < other ? 2 : .5;
      c.globalAlpha = k < other ? 1 : .14; c.fillStyle = k < other ? colors.kinds[k] : colors.ink;
      for (let p = 0; p < columns - 1; p++) {
        const part = shares.share[k * columns + p];
        if (part === 0) continue;
        const tall = Math.min(tops[p] - y, Math.max(part * lane.height, least));
        tops[p] -= tall; c.fillRect(gutter + p, tops[p], 1, tall);
      }
    }
    c.fillStyle = colors.critical;
    for (let p = 0; p < columns - 1; p++) {
      const part = shares.share[(other + 1) * columns + p];
      if (part > 0) { c.globalAlpha = Math.min(1, .1 + part); c.fillRect(gutter + p, y + lane.height - 3, 1, 3); }
    }
  }
  c.globalAlpha = 1;
}

// In compute lanes: hatched from the top, in proportion to the exposed communication.
function drawExposed(c, track) {
  const width = plotWidth(track.canvas), scale = width / (view.to - view.from), shares = makeShares(width, 1), y = track.shown[0].y;
  const tall = track.shown.slice(0, track.computing).reduce((sum, lane) => sum + lane.tall + gap, -gap);
  if (track.computing === 0) return;
  c.globalAlpha = .8; c.fillStyle = c.createPattern(colors.hatch, "repeat");
  for (let i = above(track.exposedEnds, view.from); i < track.exposed.length && track.exposed[i][0] < view.to; i++) {
    const x0 = (track.exposed[i][0] - view.from) * scale, x1 = (track.exposed[i][1] - view.from) * scale, left = Math.max(0, x0);
    if (x1 - x0 < 3) shares.add(x0, x1, 0); else c.fillRect(gutter + left, y, Math.min(width, x1) - left, tall);
  }
  if (shares.used) for (let p = 0; p < shares.columns - 1; p++)
    if (shares.share[p] > 0) c.fillRect(gutter + p, y, 1, Math.min(1, shares.share[p]) * tall);
  c.globalAlpha = 1;
}

function drawMemory(c, track) {
  const width = plotWidth(track.canvas), scale = width / (view.to - view.from), right = gutter + width;
  const { when, bytes } = track.memory, low = track.memoryY + memoryHeight, column = time => gutter + Math.floor((time - view.from) * scale);
  const toY = b => low - b / mostMemory * (memoryHeight - 4);
  const line = new Path2D();
  let i = Math.max(0, above(when, view.from) - 1), level = when[i] <= view.from ? bytes[i++] : 0;
  line.moveTo(gutter, toY(level));
  while (i < when.length && when[i] <= view.to) {
    const p = column(when[i]); let most = level, last = level;
    for (; i < when.length && when[i] <= view.to && column(when[i]) === p; i++) { last = bytes[i]; most = Math.max(most, last); }
    line.lineTo(p, toY(level)); line.lineTo(p, toY(most)); line.lineTo(p, toY(last)); level = last;
  }
  const end = i >= when.length ? Math.min(right, Math.max(gutter, column(track.finish))) : right;
  line.lineTo(end, toY(level));
  const area = new Path2D(line); area.lineTo(end, low); area.lineTo(gutter, low); area.closePath();
  c.globalAlpha = .22; c.fillStyle = colors.memory; c.fill(area);
  c.globalAlpha = 1; c.strokeStyle = colors.memory; c.lineWidth = 1.2; c.stroke(line);
  c.fillStyle = colors.faint; c.font = font(11);
  c.fillText("memory", 10, track.memoryY + memoryHeight / 2 - 6);
  c.fillText("≤ " + showBytes(track.fullest), 10, track.memoryY + memoryHeight / 2 + 8);
}

// Frames a task with a separate element, so that hovering redraws nothing.
function frame(id, mark) {
  const style = document.getElementById(id).style;
  style.display = "none";
  if (!mark) return;
  const { track, task } = mark, lane = track.shown[track.lane[task]], canvas = track.canvas, right = gutter + plotWidth(canvas);
  const x0 = Math.max(gutter, toX(track.begin[task], canvas)), x1 = Math.min(right, toX(track.end[task], canvas));
  if (x1 < gutter || x0 > right) return;
  style.display = "block"; style.left = x0 - 2 + "px"; style.width = Math.max(5, x1 - x0 + 3) + "px";
  style.top = canvas.offsetTop + lane.y + track.row[task] * (lane.height + 1) - 2 + "px"; style.height = lane.height + 4 + "px";
}

function drawTrack(track) {
  const canvas = track.canvas, c = prepare(canvas, track.height), width = plotWidth(canvas);
  c.textAlign = "left"; c.textBaseline = "middle";
  for (const lane of track.shown) { c.fillStyle = colors.band; c.fillRect(gutter, lane.y, width, lane.tall); }
  c.fillStyle = colors.line;
  for (const time of ticks(width)) c.fillRect(Math.round(toX(time, canvas)), 0, 1, track.height);
  drawExposed(c, track);
  for (const lane of track.shown) {
    c.fillStyle = colors.faint; c.font = font(11.5);
    c.fillText(lane.name.length > 13 ? lane.name.slice(0, 12) + "…" : lane.name, 10, lane.y + lane.tall / 2);
    lane.rows.forEach((row, r) => drawRow(c, track, lane, row, lane.y + r * (lane.height + 1)));
  }
  if (track.hasMemory) drawMemory(c, track);
  const end = toX(track.finish, canvas);
  if (end >= gutter && end <= gutter + width + 1) { c.fillStyle = colors.accent; c.fillRect(Math.round(end) - 1, 0, 2, track.height); }
}
for (const track of tracks) {
  track.finish = track.end.reduce((a, b) => Math.max(a, b), 0); track.fullest = track.memory.bytes.reduce((a, b) => Math.max(a, b), 0);
}

let due = false;
const many = tracks.reduce((sum, t) => sum + t.count, 0) > 50000;
const near = canvas => { if (!many) return true; const box = canvas.getBoundingClientRect(); return box.bottom > -200 && box.top < innerHeight + 200; };
function draw() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => { due = false; drawAxis(); for (const t of tracks) if (near(t.canvas)) drawTrack(t); frame("pointed", state.pointed); frame("picked", state.picked); });
}
function setView(from, to) {
  const all = whole.to - whole.from, length = Math.min(all, Math.max(to - from, Math.min(all, 20)));
  view.from = Math.min(Math.max(from, whole.from), whole.to - length); view.to = view.from + length;
  draw();
}
