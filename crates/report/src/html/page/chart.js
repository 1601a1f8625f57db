// Drawing a figure at the width it has on this screen.

import { fitted, place, ticks } from "./axis.js";
import { draw, textWidth } from "./elements.js";
import { pathOf, spread, valuesAt } from "./paths.js";

const TEXT = 12;
const NARROW = 560;
/** Least room for the labels of the vertical axis of figures below each other. */
const LEAD_LEFT = 34;

const words = (text, x, y, attributes, parent) => {
  const made = draw("text", { x, y, "font-size": TEXT, class: "faint", ...attributes }, parent);
  made.textContent = text;
  return made;
};

const title = (axis) => (axis.unit ? `${axis.name} (${axis.unit})` : axis.name);

/** The series by name; a line speaks for its band. */
export const entries = (data) => {
  const found = new Map();
  for (const series of data.series) {
    if (!found.has(series.name) || found.get(series.name).kind === "band") {
      found.set(series.name, series);
    }
  }
  return [...found.values()];
};

/** Room for the names at the right ends of figures below each other, the same for all. */
export const align = (figures) => {
  const named = figures.filter((data) => data.legend === "curves");
  const widths = named.flatMap(entries).map(({ name }) => textWidth(name, TEXT, 600));
  for (const data of figures) data.longest = Math.max(0, ...widths);
};

/** Names at the right ends of the curves: where each curve ends and its name stands. */
const nameEnds = (data, view, down, height, hidden) => {
  const ends = [];
  for (const series of entries(data)) {
    if (hidden.has(series.name) || !["line", "steps"].includes(series.kind)) continue;
    const xs = data.xs[series.x];
    const values = valuesAt(series, xs, Math.min(view[1], xs[xs.length - 1]));
    if (values) ends.push({ series, end: Math.min(Math.max(down(values[0]), 0), height) });
  }
  const rows = spread(
    ends.map(({ end }) => end),
    TEXT + 4,
    height,
  );
  return rows && ends.map((entry, i) => ({ ...entry, row: rows[i] }));
};

const grid = (group, plot, xTicks, yTicks) => {
  for (const { value, label } of yTicks) {
    const y = plot.down(value);
    draw("path", { class: "grid", d: `M0 ${y}h${plot.width}` }, group);
    words(label, -8, y + 4, { "text-anchor": "end" }, group);
  }
  for (const { value, label } of xTicks) {
    const x = plot.across(value);
    draw("path", { class: "grid", d: `M${x} 0v${plot.height}` }, group);
    words(label, x, plot.height + 18, { "text-anchor": "middle" }, group);
  }
  draw("path", { class: "rule", d: `M0 ${plot.height}h${plot.width}` }, group);
};

const markers = (group, data, plot) => {
  const taken = [];
  const free = (box) =>
    !taken.some(
      (other) =>
        box.x < other.x + other.width &&
        other.x < box.x + box.width &&
        Math.abs(box.y - other.y) < TEXT + 3,
    );
  for (const { vertical, at, label, hue } of data.markers) {
    const here = vertical ? plot.across(at) : plot.down(at);
    if (!(here >= -1 && here <= (vertical ? plot.width : plot.height) + 1)) continue;
    const d = vertical ? `M${here} 0v${plot.height}` : `M0 ${here}h${plot.width}`;
    const own = hue === null ? "marker" : `marker k${hue}`;
    draw("path", { class: own, d }, group);
    const width = textWidth(label, TEXT) + 8;
    const candidates = vertical
      ? [0, 1, 2, 3].flatMap((row) => [
          { x: here + 2, y: TEXT + 2 + row * (TEXT + 4), width },
          { x: here - width, y: TEXT + 2 + row * (TEXT + 4), width },
        ])
      : [
          { x: plot.width - width, y: here - 5, width },
          { x: plot.width - width, y: here + TEXT + 3, width },
          { x: 2, y: here - 5, width },
          { x: 2, y: here + TEXT + 3, width },
        ];
    const inside = (box) =>
      box.x >= 0 && box.x + width <= plot.width + 2 && box.y >= TEXT - 1 && box.y <= plot.height;
    const box = candidates.find((candidate) => inside(candidate) && free(candidate));
    if (!box) continue;
    taken.push(box);
    words(label, box.x + 4, box.y, { class: "faint veil" }, group);
  }
};

/** Names beside the dots of a cloud, where there is room. */
const dotNames = (group, data, plot, hidden) => {
  const taken = [];
  for (const series of data.series) {
    if (series.kind !== "points" || hidden.has(series.name) || !series.y.length) continue;
    const [x, y] = [plot.across(data.xs[series.x][0]), plot.down(series.y[0])];
    const width = textWidth(series.name, TEXT);
    const candidates = [
      [x + 9, y + 4],
      [x - width - 9, y + 4],
      [x - width / 2, y - 9],
      [x - width / 2, y + 19],
    ];
    const box = candidates.find(
      ([left, base]) =>
        left >= 0 &&
        left + width <= plot.width &&
        base >= TEXT &&
        base <= plot.height &&
        !taken.some(
          ([l, b, w]) => left < l + w && l < left + width && Math.abs(base - b) < TEXT + 1,
        ),
    );
    if (!box) continue;
    taken.push([...box, width]);
    words(series.name, box[0], box[1], { class: "ink veil" }, group);
  }
};

const curves = (group, data, plot, hidden) => {
  for (const series of data.series) {
    if (hidden.has(series.name)) continue;
    const d = pathOf(series, data.xs[series.x], plot.across, plot.down);
    const own = draw("g", { class: `series k${series.hue}`, "data-name": series.name }, group);
    const dash = series.dash ? { "stroke-dasharray": series.dash } : {};
    // Where it leaves the curve below, a dashed one is whole, if thin.
    if (series.dash) draw("path", { class: `${series.kind} thin`, d }, own);
    draw("path", { class: series.kind, d, ...dash }, own);
  }
};

let clips = 0;

/** Draws a figure into its place; `view` is what is seen of the horizontal axis. */
export const chart = (data, drawing, view, hidden) => {
  const width = Math.max(240, Math.floor(drawing.clientWidth));
  const narrow = width < NARROW;
  const y = fitted(data, view, hidden);
  const x = { ...data.x, min: view[0], max: view[1] };
  const height = narrow ? Math.min(data.height, 230) : data.height;
  const yTicks = ticks(y, height / 32);
  const labels = yTicks.map(({ label }) => textWidth(label, TEXT));
  // Figures below each other begin at the same place.
  const least = data.lead ? LEAD_LEFT : 8;
  const left = Math.ceil(Math.max(...labels, least)) + 10;
  const down = (value) => (1 - place(y, value)) * height;
  const named = data.legend === "curves" && !narrow;
  const ends = (named && nameEnds(data, view, down, height, hidden)) || [];
  // And end at the same place.
  const shared = named && data.lead ? data.longest : 0;
  const longest = Math.max(shared, ...ends.map(({ series }) => textWidth(series.name, TEXT, 600)));
  const right = longest ? longest + 30 : 14;
  const plotWidth = Math.max(80, width - left - right);
  const across = (value) => place(x, value) * plotWidth;
  const plot = { width: plotWidth, height, across, down };
  // The heading says it already.
  const titled = y.name === data.title;
  const [top, bottom] = [titled ? 10 : 22, 42];
  const root = draw("svg", {
    class: "figure live",
    role: "img",
    "aria-label": data.describe,
    viewBox: `0 0 ${width} ${height + top + bottom}`,
    width,
    height: height + top + bottom,
  });
  if (!titled) words(title(y), 0, TEXT, {}, root);
  const group = draw("g", { transform: `translate(${left} ${top})` }, root);
  const places = data.x.places.map((label, value) => ({ value, label }));
  grid(group, plot, places.length ? places : ticks(x, plotWidth / 70), yTicks);
  clips += 1;
  const name = `clip${clips}`;
  const clip = draw("clipPath", { id: name }, draw("defs", {}, root));
  draw("rect", { x: 0, y: -2, width: plotWidth, height: height + 4 }, clip);
  const inner = draw("g", { "clip-path": `url(#${name})` }, group);
  curves(inner, data, plot, hidden);
  markers(group, data, plot);
  if (data.legend === "points") dotNames(group, data, plot, hidden);
  for (const { series, end, row } of ends) {
    const own = draw("g", { class: `series k${series.hue}`, "data-name": series.name }, group);
    const d = `M${plotWidth + 3} ${end}L${plotWidth + 16} ${row}h6`;
    draw("path", { class: "leader", d }, own);
    const weight = { class: "ink", "font-weight": 600 };
    words(series.name, plotWidth + 26, row + 4, weight, own);
  }
  const under = { "text-anchor": "end" };
  words(title(x), plotWidth, height + 36, under, group);
  drawing.replaceChildren(root);
  return { root, group, plot, x, y, left, top };
};
