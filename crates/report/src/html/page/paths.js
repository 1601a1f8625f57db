// Series as the data of SVG paths.

const at = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;

/** The stretches between gaps, as [from, to). */
const runs = (xs, ...columns) => {
  const found = [];
  let from = null;
  for (let i = 0; i <= xs.length; i += 1) {
    const there =
      i < xs.length &&
      xs[i] !== null &&
      columns.every((column) => Number.isFinite(column[i] ?? NaN));
    if (there && from === null) from = i;
    if (!there && from !== null) {
      found.push([from, i]);
      from = null;
    }
  }
  return found;
};

const indices = ([from, to]) => Array.from({ length: to - from }, (_, i) => from + i);

/** Path data of one series; `across` and `down` turn values into pixels. */
export const pathOf = (series, xs, across, down) => {
  const points = (column) => (i) => at(across(xs[i]), down(column[i]));
  const { y, high, kind } = series;
  if (kind === "band") {
    const bands = runs(xs, y, high).map((run) => {
      const order = indices(run);
      return `M${order.map(points(high)).join("L")}L${order.reverse().map(points(y)).join("L")}Z`;
    });
    return bands.join("");
  }
  const parts = runs(xs, y).map((run) => {
    const order = indices(run);
    if (kind === "points") return order.map((i) => `M${points(y)(i)}h0`).join("");
    if (kind === "steps") {
      const corner = (i) => (i > run[0] ? `${at(across(xs[i]), down(y[i - 1]))}L` : "");
      return `M${order.map((i) => corner(i) + points(y)(i)).join("L")}`;
    }
    return `M${order.map(points(y)).join("L")}${order.length === 1 ? "h0" : ""}`;
  });
  return parts.join("");
};

/** The index of the last point at or before x. */
const before = (xs, x) => {
  let [low, high] = [0, xs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low - 1;
};

/** What a curve has at x: [value] or, of a band, [low, high]; null where it has nothing. */
export const valuesAt = (series, xs, x) => {
  const i = before(xs, x);
  if (i < 0) return null;
  const next = Math.min(i + 1, xs.length - 1);
  const between = (column) => {
    if (column[i] === null || column[next] === null) return column[i];
    if (series.kind === "steps" || next === i || xs[next] === xs[i]) return column[i];
    return column[i] + ((column[next] - column[i]) * (x - xs[i])) / (xs[next] - xs[i]);
  };
  const found = [series.y, ...(series.high ? [series.high] : [])].map(between);
  return found.every((value) => value !== null) ? found : null;
};

/** Moves places that want to be at `wanted` apart by at least `gap`, between 0 and `height`. */
export const spread = (wanted, gap, height) => {
  if (gap * (wanted.length - 1) > height) return null;
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b]);
  const groups = [];
  for (const i of order) {
    groups.push({ start: Math.min(Math.max(wanted[i], 0), height), members: [i] });
    while (groups.length > 1) {
      const [above, below] = groups.slice(-2);
      if (above.start + gap * above.members.length <= below.start) break;
      above.members.push(...below.members);
      const wish = above.members.reduce((sum, member, k) => sum + wanted[member] - gap * k, 0);
      const most = height - gap * (above.members.length - 1);
      above.start = Math.min(Math.max(wish / above.members.length, 0), most);
      groups.pop();
    }
  }
  const rows = [];
  for (const { start, members } of groups) {
    members.forEach((member, k) => {
      rows[member] = start + gap * k;
    });
  }
  return rows;
};
