// A figure as a file: its points, the drawing, a picture.

import { draw, withUnit } from "./elements.js";

const LOOKS = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "stroke-linejoin"];
const LOOKS_OF_TEXT = ["font-family", "font-size", "font-weight", "paint-order"];
const FINER = 2;

const give = (name, href) => {
  const link = document.createElement("a");
  [link.download, link.href] = [name, href];
  link.click();
};

const giveText = (name, text, type) => {
  const address = URL.createObjectURL(new Blob([text], { type }));
  give(name, address);
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
};

const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** The points, one per line. */
export const saveCsv = ({ data }) => {
  const bands = data.series.some((series) => series.high);
  const { also } = data.x;
  const names = ["series", data.x.column || "x"];
  if (also) names.push(also.column);
  names.push(data.y.column || "y");
  if (bands) names.push("high");
  const lines = [names.map(quoted).join(",")];
  for (const series of data.series) {
    data.xs[series.x].forEach((x, i) => {
      const fields = [quoted(series.name), x ?? ""];
      if (also) fields.push(x === null ? "" : Number((x * also.factor).toPrecision(9)));
      fields.push(series.y[i] ?? "");
      if (bands) fields.push(series.high?.[i] ?? "");
      lines.push(fields.join(","));
    });
  }
  giveText(`${data.file}.csv`, `${lines.join("\n")}\n`, "text/csv");
};

/** The drawing as it is seen, with its looks written into it and its title above. */
const standalone = ({ data, drawn }) => {
  const { root } = drawn;
  const copy = root.cloneNode(true);
  const [from, to] = [root, copy].map((top) => [...top.querySelectorAll("path, text, rect, g")]);
  from.forEach((element, i) => {
    const seen = getComputedStyle(element);
    const looks = element.tagName === "text" ? [...LOOKS, ...LOOKS_OF_TEXT] : LOOKS;
    for (const look of looks) to[i].setAttribute(look, seen.getPropertyValue(look));
  });
  removeAll(copy, ".cross, .select");
  const { width, height } = root.viewBox.baseVal;
  const above = 26;
  copy.setAttribute("viewBox", `-12 ${-above - 8} ${width + 24} ${height + above + 16}`);
  copy.setAttribute("width", width + 24);
  copy.setAttribute("height", height + above + 16);
  const body = getComputedStyle(document.body);
  const paper = { x: -12, y: -above - 8, width: width + 24, height: height + above + 16 };
  copy.prepend(draw("rect", { ...paper, fill: body.backgroundColor }));
  const look = { x: 0, y: -above / 2 + 2, "font-size": 16, "font-weight": 600, fill: body.color };
  const heading = draw("text", { ...look, "font-family": body.fontFamily }, copy);
  heading.textContent =
    data.y.name === data.title ? withUnit(data.title, `(${data.y.unit})`) : data.title;
  return {
    text: new XMLSerializer().serializeToString(copy),
    width: width + 24,
    height: height + above + 16,
  };
};

const removeAll = (root, what) => {
  for (const element of root.querySelectorAll(what)) element.remove();
};

export const saveSvg = (state) => {
  giveText(`${state.data.file}.svg`, standalone(state).text, "image/svg+xml");
};

export const savePng = async (state) => {
  const { text, width, height } = standalone(state);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width * FINER, height * FINER];
  const pen = canvas.getContext("2d");
  pen.scale(FINER, FINER);
  pen.drawImage(image, 0, 0, width, height);
  give(`${state.data.file}.png`, canvas.toDataURL("image/png"));
};
