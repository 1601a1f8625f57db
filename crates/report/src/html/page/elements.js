// Elements and texts.

const SVG = "http://www.w3.org/2000/svg";

export const each = (root, what, act) => {
  for (const element of root.querySelectorAll(what)) act(element);
};

const build = (element, attributes, parent) => {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  parent?.append(element);
  return element;
};

/** A new SVG element. */
export const draw = (tag, attributes = {}, parent = null) =>
  build(document.createElementNS(SVG, tag), attributes, parent);

/** A new HTML element. */
export const make = (tag, attributes = {}, parent = null) =>
  build(document.createElement(tag), attributes, parent);

/** A button that does something. */
export const button = (text, label, act, parent) => {
  const made = make("button", { type: "button", "aria-label": label, title: label }, parent);
  made.textContent = text;
  made.addEventListener("click", act);
  return made;
};

const pen = document.createElement("canvas").getContext("2d");

/** Pixels that a text takes. */
export const textWidth = (text, size, weight = 400) => {
  pen.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
};

/** A number as people write it: four digits, more before the point. */
export const digits = (value) => {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-6) return value.toExponential(3);
  const maximumSignificantDigits = size >= 1000 ? 6 : 4;
  return value.toLocaleString("en", { maximumSignificantDigits, useGrouping: false });
};

export const withUnit = (text, unit) => (unit ? `${text} ${unit}` : text);
