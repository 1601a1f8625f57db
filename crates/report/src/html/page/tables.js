// Tables: a click on a heading sorts, missing values last.

import { each, make } from "./elements.js";

const order = (number, down) => (a, b) => {
  if (!number) return (down ? -1 : 1) * a.localeCompare(b, "en", { numeric: true });
  const missing = [a, b].map(Number.isNaN);
  if (missing[0] || missing[1]) return missing[0] - missing[1];
  return (down ? -1 : 1) * (a - b);
};

const sortable = (table) => {
  const body = table.tBodies[0];
  each(table, "thead th", (heading) => {
    const number = heading.classList.contains("number");
    const key = (row) => {
      const cell = row.cells[heading.cellIndex];
      if (!number) return cell.textContent;
      return cell.dataset.v === undefined ? Number.NaN : Number(cell.dataset.v);
    };
    const sort = make("button", { type: "button", class: "sort" });
    sort.append(...heading.childNodes);
    heading.append(sort);
    sort.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      each(table, "thead th", (other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const compare = order(number, down);
      body.append(...[...body.rows].sort((a, b) => compare(key(a), key(b))));
    });
  });
};

export const tables = () => each(document, ".table table", sortable);
