// SPDX-License-Identifier: GPL-2.0
// Uses the page: sorts a table both ways, follows a cell's link into folded text, then unfolds all. Faults as texts.
(() => {
  const out = [];
  const button = document.querySelector("main table th:nth-child(2) button");
  if (!button) return ["no table to sort"];
  const head = button.closest("th");
  for (const wanted of ["ascending", "descending"]) {
    button.click();
    if (head.getAttribute("aria-sort") !== wanted) out.push(`a head does not sort ${wanted}`);
    const numbers = [...head.closest("table").tBodies[0].rows]
      .map((row) => value(row, head.cellIndex))
      .filter((one) => typeof one === "number");
    if (wanted === "descending") numbers.reverse();
    if (numbers.some((one, index) => index && one < numbers[index - 1])) out.push(`rows are not ${wanted}`);
  }
  const link = document.querySelector("main table td a[href^='#']");
  if (link) {
    location.hash = link.getAttribute("href");
    unfold();
    for (let at = document.getElementById(location.hash.slice(1)); at; at = at.parentElement)
      if (at.tagName === "DETAILS" && !at.open) out.push(`${location.hash} stays folded`);
  }
  for (const one of document.querySelectorAll("details")) one.open = true;
  return out;
})();
