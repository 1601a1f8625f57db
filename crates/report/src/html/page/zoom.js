// Zoom and pan: buttons, dragging, pinching, the wheel with Ctrl, keys.

import { valueAt } from "./axis.js";
import { button, draw } from "./elements.js";
import { hide, readout } from "./readout.js";

const STEP = 1.6;
const LEAST_PIXELS = 8;

const toScale = (log) => (log ? [Math.log, Math.exp] : [(v) => v, (v) => v]);

/** A view within all there is, at least a thousandth of it. */
const within = ([from, to], { min, max, log }) => {
  const [there, back] = toScale(log);
  const [low, high] = [there(min), there(max)];
  const width = Math.min(Math.max(there(to) - there(from), (high - low) / 1000), high - low);
  const middle = (there(to) + there(from)) / 2;
  const start = Math.min(Math.max(middle - width / 2, low), high - width);
  return [back(start), back(start + width)];
};

/** The view zoomed by a factor about a share of it, then moved by a share of its width. */
const changed = ([from, to], log, factor, about, move) => {
  const [there, back] = toScale(log);
  const [a, b] = [there(from), there(to)];
  const fixed = a + (b - a) * about;
  const shift = ((b - a) / factor) * move;
  return [fixed - (fixed - a) / factor, fixed + (b - fixed) / factor].map((v) => back(v + shift));
};

/** Makes a figure zoomable. `show(state, view)` draws it and its kin anew. */
export const zoomable = (state, hidden, show) => {
  const { data, drawing, tools } = state;
  const go = (view) => show(state, within(view, data.x));
  const by = (factor, about = 0.5, move = 0) =>
    go(changed(state.view, data.x.log, factor, about, move));
  const first = () => show(state, data.x.view);
  if (!data.x.places.length && !state.joined) {
    button("+", "Zoom in", () => by(STEP), tools);
    button("−", "Zoom out", () => by(1 / STEP), tools);
    button("All", "All: show all there is", () => go([data.x.min, data.x.max]), tools);
    button("Reset", "Reset: show what was shown first", first, tools);
  }

  const pixel = (event) => {
    const frame = state.drawn.root.getBoundingClientRect();
    return [
      event.clientX - frame.left - state.drawn.left,
      event.clientY - frame.top - state.drawn.top,
    ];
  };
  const share = (px) => Math.min(Math.max(px / state.drawn.plot.width, 0), 1);
  const fingers = new Map();
  let drag = null;

  const release = () => {
    drag?.rect?.remove();
    drag = null;
  };

  drawing.addEventListener("pointerdown", (event) => {
    const [px, py] = pixel(event);
    if (data.x.places.length || event.button !== 0) return;
    fingers.set(event.pointerId, px);
    if (event.pointerType === "touch" || event.shiftKey) {
      drag = { kind: "pan", px, view: state.view };
      if (fingers.size === 2)
        drag = { kind: "pinch", from: [...fingers.values()], view: state.view };
    } else if (px >= 0 && py >= 0 && py <= state.drawn.plot.height) {
      drawing.setPointerCapture(event.pointerId);
      drag = { kind: "select", px };
    }
  });

  drawing.addEventListener("pointermove", (event) => {
    const [px, py] = pixel(event);
    if (fingers.has(event.pointerId)) fingers.set(event.pointerId, px);
    if (!drag) return readout(state, px, py, hidden);
    const { width, height } = state.drawn.plot;
    if (drag.kind === "select") {
      hide(state);
      drag.rect ??= draw("rect", { class: "select", y: 0, height }, state.drawn.group);
      const [a, b] = [drag.px, px].map((at) => share(at) * width).sort((p, q) => p - q);
      drag.rect.setAttribute("x", a);
      drag.rect.setAttribute("width", b - a);
    } else if (drag.kind === "pan" && Math.abs(px - drag.px) > LEAST_PIXELS) {
      go(changed(drag.view, data.x.log, 1, 0.5, (drag.px - px) / width));
    } else if (drag.kind === "pinch" && fingers.size === 2) {
      const [a, b] = drag.from;
      const [c, d] = [...fingers.values()];
      // Fingers one above the other are as near as can be told apart.
      const apart = (from, to) => Math.max(Math.abs(from - to), LEAST_PIXELS);
      const factor = apart(c, d) / apart(a, b);
      go(changed(drag.view, data.x.log, factor, share((a + b) / 2), 0));
    }
  });

  drawing.addEventListener("pointerup", (event) => {
    fingers.delete(event.pointerId);
    const [px, py] = pixel(event);
    const { drawn } = state;
    if (drag?.kind === "select" && Math.abs(px - drag.px) > LEAST_PIXELS) {
      const ends = [drag.px, px].sort((a, b) => a - b);
      const view = ends.map((end) => valueAt(drawn.x, share(end)));
      release();
      return go(view);
    }
    release();
    readout(state, px, py, hidden);
  });
  for (const kind of ["pointercancel", "pointerleave"]) {
    drawing.addEventListener(kind, (event) => {
      fingers.delete(event.pointerId);
      if (kind === "pointercancel" || drag?.kind !== "select") release();
      if (event.pointerType !== "touch") hide(state);
    });
  }
  drawing.addEventListener("dblclick", first);
  drawing.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey || data.x.places.length) return;
      event.preventDefault();
      by(STEP ** (-event.deltaY / 100), share(pixel(event)[0]));
    },
    { passive: false },
  );
  const keys = {
    "+": () => by(STEP),
    "=": () => by(STEP),
    "-": () => by(1 / STEP),
    ArrowLeft: () => by(1, 0.5, -0.2),
    ArrowRight: () => by(1, 0.5, 0.2),
    0: first,
    Home: first,
  };
  drawing.addEventListener("keydown", (event) => {
    const act = data.x.places.length ? null : keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
};
