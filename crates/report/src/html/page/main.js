// The page: commands, tables, figures that belong together.

import { align, chart, entries } from "./chart.js";
import { button, draw, each, make } from "./elements.js";
import { saveCsv, savePng, saveSvg } from "./save.js";
import { tables } from "./tables.js";
import { zoomable } from "./zoom.js";

// Commands: a button copies them.
each(document, ".command", (bar) => {
  const copy = bar.querySelector("button");
  const code = bar.querySelector("code");
  copy.hidden = false;
  const done = () => {
    copy.textContent = "Copied";
    setTimeout(() => {
      copy.textContent = "Copy";
    }, 1500);
  };
  const select = () => getSelection().selectAllChildren(code);
  copy.addEventListener("click", () => {
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, select);
    else select();
  });
});

// Paper shows what is folded.
addEventListener("beforeprint", () => {
  each(document, "details", (details) => {
    details.open = true;
  });
});

tables();

/** Names that are not shown, in all figures. */
const hidden = new Set();
const states = [];
/** Names in the legends of the figures that a page begins with. */
const inLead = new Set();

const redraw = (state) => {
  state.drawn = chart(state.data, state.drawing, state.view, hidden);
};

/** Figures over the same axis are zoomed together. */
const show = (state, view) => {
  for (const other of states) {
    if (other.kin !== state.kin) continue;
    other.view = view;
    redraw(other);
  }
};

const light = (name) => {
  each(document, ".figure.live .series", (series) => {
    series.classList.toggle("dim", name !== null && series.dataset.name !== name);
  });
};

/** How a line looks: a dot for one that is whole, a piece of it else. */
const swatch = (hue, dash, parent) => {
  if (!dash) return make("span", { class: `dot k${hue}` }, parent);
  const piece = { class: `dash k${hue}`, width: 26, height: 10, "aria-hidden": "true" };
  const line = draw("svg", piece, parent);
  draw("path", { d: "M0 5h26", "stroke-dasharray": dash }, line);
  return line;
};

const legend = (state, bar) => {
  for (const { name, hue, dash } of entries(state.data)) {
    const entry = make("button", { type: "button", class: "entry", "aria-pressed": "true" }, bar);
    entry.dataset.name = name;
    swatch(hue, dash, entry);
    entry.append(name);
    entry.addEventListener("click", () => {
      if (!hidden.delete(name)) hidden.add(name);
      each(document, "button.entry", (other) => {
        if (other.dataset.name === name)
          other.setAttribute("aria-pressed", String(!hidden.has(name)));
      });
      states.forEach(redraw);
    });
    entry.addEventListener("pointerenter", () => light(hidden.has(name) ? null : name));
    entry.addEventListener("pointerleave", () => light(null));
  }
};

each(document, "figure", (figure) => {
  const data = JSON.parse(figure.querySelector(".data").textContent);
  const drawing = figure.querySelector(".drawing");
  const tools = figure.querySelector(".tools");
  const kin = `${data.x.name}|${data.x.unit}|${data.x.min}|${data.x.max}`;
  const joined = figure.classList.contains("joined");
  const state = { data, drawing, tools, kin, joined, view: data.x.view, drawn: null };
  states.push(state);
  data.longest = 0;
  drawing.tabIndex = 0;
  drawing.setAttribute("role", "group");
  drawing.setAttribute("aria-label", `${data.title}: + and - zoom, arrows move, 0 resets`);
  // Figures below each other have one legend, unless there is somebody new.
  const news = entries(data).some(({ name }) => !inLead.has(name));
  if (!joined || news) legend(state, figure.querySelector(".legend"));
  if (data.lead) for (const { name } of entries(data)) inLead.add(name);
  zoomable(state, hidden, show);
  button("CSV", "CSV: save the points as CSV", () => saveCsv(state), tools);
  button("SVG", "SVG: save the drawing as SVG", () => saveSvg(state), tools);
  button("PNG", "PNG: save the drawing as PNG", () => savePng(state), tools);
  redraw(state);
});

align(states.map(({ data }) => data).filter(({ lead }) => lead));

let widest = 0;
new ResizeObserver(() => {
  if (document.body.clientWidth === widest) return;
  widest = document.body.clientWidth;
  states.forEach(redraw);
}).observe(document.body);
