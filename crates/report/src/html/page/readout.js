// What every curve has where the pointer is.

import { place, valueAt } from "./axis.js";
import { digits, draw, make, withUnit } from "./elements.js";
import { valuesAt } from "./paths.js";

const REACH = 14;

const nearestDot = (series, xs, state, px, py) => {
  const { plot, x, y } = state.drawn;
  let [best, nearest] = [null, REACH];
  xs.forEach((at, i) => {
    const [dx, dy] = [
      place(x, at) * plot.width - px,
      (1 - place(y, series.y[i])) * plot.height - py,
    ];
    const distance = Math.hypot(dx, dy);
    if (distance < nearest) [best, nearest] = [i, distance];
  });
  if (best === null) return null;
  const value = series.y[best];
  return { value, text: `${digits(value)} at ${digits(xs[best])}` };
};

const found = (series, state, at, px, py) => {
  const xs = state.data.xs[series.x];
  if (series.kind === "points") return nearestDot(series, xs, state, px, py);
  if (at > xs[xs.length - 1]) return null;
  const values = valuesAt(series, xs, at);
  if (!values) return null;
  const text = values.map(digits).join(" – ");
  return { value: values[values.length - 1], text };
};

const head = ({ x }, at) => {
  const also = x.also ? ` = ${withUnit(digits(at * x.also.factor), x.also.unit)}` : "";
  return `${withUnit(digits(at), x.unit)}${also}`;
};

/** Shows the read-out of a figure; `px` and `py` are pixels of its plot. */
export const readout = (state, px, py, hidden) => {
  const { plot, x, group, left, top } = state.drawn;
  hide(state);
  if (px < 0 || px > plot.width || py < 0 || py > plot.height) return;
  const at = valueAt(x, px / plot.width);
  const rows = [];
  for (const series of state.data.series) {
    if (hidden.has(series.name)) continue;
    const value = found(series, state, at, px, py);
    if (value) rows.push({ series, ...value });
  }
  if (!rows.length) return;
  rows.sort((a, b) => b.value - a.value);
  state.cross = draw("path", { class: "cross", d: `M${px} 0v${plot.height}` }, group);
  const box = make("div", { class: "readout" }, state.drawing);
  make("div", {}, box).textContent = head(state.data, at);
  const table = make("table", {}, box);
  for (const { series, text } of rows) {
    const row = table.insertRow();
    make("span", { class: `dot k${series.hue}` }, row.insertCell());
    row.insertCell().textContent = series.name;
    const cell = row.insertCell();
    cell.className = "number";
    cell.textContent = withUnit(text, state.data.y.unit);
  }
  const room = state.drawing.clientWidth;
  const beside = left + px + 16;
  const start = beside + box.offsetWidth > room ? left + px - box.offsetWidth - 16 : beside;
  box.style.left = `${Math.max(0, Math.min(start, room - box.offsetWidth))}px`;
  box.style.top = `${top + 4}px`;
  state.box = box;
};

export const hide = (state) => {
  state.box?.remove();
  state.cross?.remove();
  [state.box, state.cross] = [null, null];
};
