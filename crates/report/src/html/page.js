"use strict";
(() => {
  const each = (root, what, act) => root.querySelectorAll(what).forEach(act);

  // Commands: a button copies them.
  each(document, ".command", (bar) => {
    const button = bar.querySelector("button"), code = bar.querySelector("code");
    button.hidden = false;
    const done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); };
    const select = () => {
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      if (document.execCommand("copy")) done();
    };
    button.addEventListener("click", () => {
      if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, select); else select();
    });
  });

  // Paper shows what the columns mean.
  addEventListener("beforeprint", () => each(document, "details", (details) => { details.open = true; }));

  // Tables: a click on a heading sorts, missing values last.
  each(document, ".table table", (table) => {
    const body = table.tBodies[0];
    each(table, "thead th", (heading) => {
      heading.classList.add("sortable");
      heading.tabIndex = 0;
      const sort = () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        each(table, "thead th", (other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const at = heading.cellIndex, number = heading.classList.contains("number");
        const key = (row) => {
          const cell = row.cells[at];
          return number ? (cell.dataset.v === undefined ? NaN : Number(cell.dataset.v)) : cell.textContent;
        };
        [...body.rows].sort((a, b) => {
          const [p, q] = [key(a), key(b)];
          if (!number) return (down ? -1 : 1) * p.localeCompare(q, "en", { numeric: true });
          if (Number.isNaN(p) || Number.isNaN(q)) return Number.isNaN(p) - Number.isNaN(q);
          return (down ? -1 : 1) * (p - q);
        }).forEach((row) => body.append(row));
      };
      heading.addEventListener("click", sort);
      heading.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
    });
  });

  // Legends: a click hides a contestant in all figures, pointing at it sets it off.
  const hidden = new Set();
  const named = (what, act) => each(document, what, (element) => act(element, element.dataset.name));
  const show = () => named(".series, .entry", (element, name) => element.classList.toggle("off", hidden.has(name)));
  const light = (lit) => {
    each(document, ".figure", (figure) => figure.classList.toggle("lit", lit !== null && !hidden.has(lit)));
    named(".series", (element, name) => element.classList.toggle("on", name === lit));
  };
  named(".entry", (entry, name) => {
    entry.classList.add("button");
    entry.setAttribute("tabindex", "0");
    entry.setAttribute("role", "button");
    const toggle = () => {
      if (!hidden.delete(name)) hidden.add(name);
      light(null);
      show();
    };
    entry.addEventListener("click", toggle);
    entry.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
    });
    entry.addEventListener("pointerenter", () => light(name));
    entry.addEventListener("pointerleave", () => light(null));
  });

  const digits = (value) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e15 || size < 1e-6) return value.toExponential(3);
    return value.toLocaleString("en", { maximumSignificantDigits: size >= 1000 ? 6 : 4, useGrouping: false });
  };
  const withUnit = (text, axis) => (axis.unit ? `${text} ${axis.unit}` : text);

  // The index of the last point at or before x.
  const before = (xs, x) => {
    let low = 0, high = xs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= x) low = middle + 1; else high = middle;
    }
    return low - 1;
  };

  each(document, "figure", (figure) => {
    const data = JSON.parse(figure.querySelector(".data").textContent);
    const svg = figure.querySelector("svg.figure"), drawing = figure.querySelector(".drawing");
    const [left, top, width, height] = data.area;

    // The points drawn, as a file.
    const link = figure.querySelector(".csv");
    link.hidden = false;
    link.addEventListener("click", () => {
      const quote = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
      const bands = data.series.some((series) => series.high);
      const lines = [["series", data.x.column || "x", data.y.column || "y", ...(bands ? ["high"] : [])].map(quote).join(",")];
      for (const series of data.series) {
        series.x.forEach((x, i) => {
          const fields = [quote(series.name), x ?? "", series.y[i] ?? ""];
          if (bands) fields.push(series.high ? series.high[i] ?? "" : "");
          lines.push(fields.join(","));
        });
      }
      link.download = data.file;
      link.href = URL.createObjectURL(new Blob([lines.join("\n"), "\n"], { type: "text/csv" }));
    });

    // The read-out: a line at the pointer and the value of every curve there.
    const cross = document.createElementNS("http://www.w3.org/2000/svg", "path");
    cross.setAttribute("class", "cross");
    const box = document.createElement("div");
    box.className = "readout";
    box.hidden = true;
    svg.append(cross);
    drawing.append(box);
    const value = (axis, share) =>
      axis.log ? axis.min * (axis.max / axis.min) ** share : axis.min + share * (axis.max - axis.min);
    const share = (axis, at) =>
      axis.log ? Math.log(at / axis.min) / Math.log(axis.max / axis.min) : (at - axis.min) / (axis.max - axis.min);

    const read = (series, x, px, py) => {
      if (series.kind === "points") {
        let best = null, nearest = 14;
        series.x.forEach((at, i) => {
          const distance = Math.hypot(share(data.x, at) * width - px, (1 - share(data.y, series.y[i])) * height - py);
          if (distance < nearest) [nearest, best] = [distance, i];
        });
        if (best === null) return null;
        return { at: series.y[best], text: `${digits(series.y[best])} at ${digits(series.x[best])}` };
      }
      const i = before(series.x, x);
      if (i < 0) return null;
      const next = i + 1 < series.x.length ? i + 1 : i;
      // Curves end where they end; the last point counts for half a pixel more.
      if (next === i && x > series.x[i] && (share(data.x, x) - share(data.x, series.x[i])) * width > 1) return null;
      const between = (ys) => {
        if (ys[i] === null || ys[next] === null) return ys[i];
        if (series.kind === "steps" || next === i || series.x[next] === series.x[i]) return ys[i];
        return ys[i] + (ys[next] - ys[i]) * (x - series.x[i]) / (series.x[next] - series.x[i]);
      };
      const y = between(series.y);
      if (y === null) return null;
      if (series.kind === "band") {
        const high = between(series.high);
        return { at: high, text: `${digits(y)} – ${digits(high)}` };
      }
      return { at: y, text: digits(y) };
    };

    const leave = () => { box.hidden = true; cross.setAttribute("d", ""); };
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("pointermove", (event) => {
      const frame = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / frame.width;
      const px = (event.clientX - frame.left) * scale - left, py = (event.clientY - frame.top) * scale - top;
      if (px < 0 || px > width || py < 0 || py > height) return leave();
      const x = value(data.x, px / width);
      const rows = [];
      for (const series of data.series) {
        if (hidden.has(series.name)) continue;
        const found = read(series, x, px, py);
        if (found) rows.push({ series, ...found });
      }
      if (!rows.length) return leave();
      rows.sort((a, b) => b.at - a.at);
      cross.setAttribute("d", `M${left + px} ${top}v${height}`);
      box.textContent = withUnit(`${data.x.name} ${digits(x)}`, data.x);
      const table = document.createElement("table");
      for (const { series, text } of rows) {
        const row = table.insertRow();
        const dot = document.createElement("span");
        dot.className = `dot k${series.hue}`;
        row.insertCell().append(dot);
        row.insertCell().textContent = series.name;
        const cell = row.insertCell();
        cell.className = "number";
        cell.textContent = withUnit(text, data.y);
      }
      box.append(table);
      box.hidden = false;
      const at = event.clientX - frame.left, room = frame.width - at;
      box.style.left = room > box.offsetWidth + 24 ? `${at + 16}px` : `${Math.max(0, at - box.offsetWidth - 16)}px`;
      box.style.top = `${top / scale + 4}px`;
    });
  });
})();
