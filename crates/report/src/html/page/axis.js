// Axes: where values lie, and which of them are written beside the plot.

import { digits } from "./elements.js";

/** How far along the axis a value lies: 0 at its lower, 1 at its upper end. */
export const place = (axis, value) =>
  axis.log
    ? Math.log(value / axis.min) / Math.log(axis.max / axis.min)
    : (value - axis.min) / (axis.max - axis.min);

/** The value there. */
export const valueAt = (axis, share) =>
  axis.log ? axis.min * (axis.max / axis.min) ** share : axis.min + share * (axis.max - axis.min);

const niceStep = (least) => {
  const size = 10 ** Math.floor(Math.log10(least));
  return size * ([1, 2, 5].find((step) => step * size >= least * (1 - 1e-9)) ?? 10);
};

const linearTicks = ({ min, max }, most) => {
  const step = niceStep((max - min) / most);
  const ticks = [];
  for (let n = Math.ceil(min / step - 1e-9); n * step <= max + step * 1e-9; n += 1) {
    const value = n * step;
    ticks.push({ value, label: digits(Number(value.toPrecision(12))) });
  }
  return ticks;
};

const logTicks = ({ min, max }, most) => {
  const decades = Math.log10(max / min);
  const mantissas = decades > most ? [1] : decades > most / 2 ? [1, 3] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(Math.log10(min)); power <= Math.log10(max); power += 1) {
    for (const mantissa of mantissas) {
      const value = mantissa * 10 ** power;
      const inside = value >= min * (1 - 1e-9) && value <= max * (1 + 1e-9);
      if (inside) ticks.push({ value, label: digits(Number(value.toPrecision(12))) });
    }
  }
  return ticks.length > 1 ? ticks : linearTicks({ min, max }, most);
};

/** At most about so many places with a label. */
export const ticks = (axis, most) =>
  (axis.log ? logTicks : linearTicks)(axis, Math.max(2, Math.floor(most)));

const drawable = (axis, value) =>
  value !== null && Number.isFinite(value) && (!axis.log || value > 0);

/** The vertical axis that holds what is seen of all series between two values of the other. */
export const fitted = (data, [from, to], hidden) => {
  const axis = data.y;
  if (axis.fixed) return axis;
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  const take = (value) => {
    if (!drawable(axis, value)) return;
    low = Math.min(low, value);
    high = Math.max(high, value);
  };
  for (const series of data.series) {
    if (hidden.has(series.name)) continue;
    const xs = data.xs[series.x];
    for (let i = 0; i < xs.length; i += 1) {
      // The neighbours outside are seen too: lines lead to them.
      if ((xs[i + 1] ?? xs[i]) < from || (xs[i - 1] ?? xs[i]) > to) continue;
      take(series.y[i]);
      if (series.high) take(series.high[i]);
    }
  }
  for (const marker of data.markers) if (!marker.vertical) take(marker.at);
  if (low > high) return axis;
  if (axis.log) {
    const margin = low === high ? 2 : (high / low) ** 0.05;
    return { ...axis, min: low / margin, max: high * margin };
  }
  const zero = axis.zero && low >= 0;
  if (zero) low = 0;
  const margin = high > low ? (high - low) * 0.05 : Math.abs(high) * 0.1 || 1;
  return { ...axis, min: zero ? 0 : low - margin, max: high + margin };
};
