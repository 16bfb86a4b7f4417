// SPDX-License-Identifier: GPL-2.0
"use strict";
// A head sorts its column: by number where the cells begin with one, else by text.
const value = (row, index) => {
  const cell = row.cells[index];
  const link = cell.querySelector("[data-sort]");
  const text = link ? link.dataset.sort : cell.textContent.trim();
  const number = parseFloat(text.replace(/^[^\d.+-]*/, ""));
  return Number.isNaN(number) ? text : number;
};
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const body = head.closest("table").tBodies[0];
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].map((row) => [value(row, head.cellIndex), row]);
    rows.sort(([a], [b]) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1));
    if (down) rows.reverse();
    body.append(...rows.map(([, row]) => row));
  });
}
// A link into folded text unfolds it.
const unfold = () => {
  let at = location.hash && document.getElementById(location.hash.slice(1));
  const goal = at;
  for (; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  if (goal) goal.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();
