"use strict";
// Tables: a click on a heading sorts the methods; controls stay in place.
function value(cell) {
  const text = cell.textContent.trim();
  const unit = / ms$/.test(text) ? 0.001 : / min$/.test(text) ? 60 : / h$/.test(text) ? 3600 : 1;
  const number = parseFloat(text.replace("−", "-").replace(/^[\[>≈ ]+/, ""));
  return Number.isNaN(number) ? null : number * unit;
}

function compare(a, b) {
  const x = value(a), y = value(b);
  if (x !== null && y !== null) return x - y;
  if (x === null && y === null) return a.textContent.localeCompare(b.textContent);
  return 0;
}

function sortBy(table, column, descending) {
  for (const body of table.tBodies) {
    if (body.classList.contains("control")) continue;
    const rows = Array.from(body.rows);
    const lacks = (row) => row.cells[column].textContent.trim() === "–";
    const sign = descending ? -1 : 1;
    rows.sort((a, b) => lacks(a) - lacks(b) || sign * compare(a.cells[column], b.cells[column]));
    body.append(...rows);
  }
}

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "Sort by " + head.textContent;
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sortBy(table, column, descending);
    });
  });
}

// Pictures: a click, or Enter, enlarges one; Escape, a click or the button closes it.
const dialog = document.querySelector("dialog");
let enlarged = null;
function enlarge(panel) {
  if (enlarged) enlarged.remove();
  enlarged = panel.cloneNode(true);
  const picture = enlarged.querySelector("svg");
  for (const name of ["tabindex", "role"]) picture.removeAttribute(name);
  dialog.append(enlarged);
  dialog.showModal();
}
for (const panel of document.querySelectorAll(".panel")) {
  const picture = panel.querySelector("svg");
  picture.setAttribute("tabindex", "0");
  picture.setAttribute("role", "button");
  picture.addEventListener("click", () => enlarge(panel));
  picture.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // otherwise the same key would press the button of the opened dialog
    enlarge(panel);
  });
}
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

// Wide tables fade out at the right until they are scrolled to their end.
const wide = document.querySelectorAll(".scroll");
function fade(place) {
  place.classList.toggle("more", place.scrollWidth - place.clientWidth - place.scrollLeft > 2);
}
function fadeAll() { wide.forEach(fade); }
wide.forEach((place) => place.addEventListener("scroll", () => fade(place), { passive: true }));
addEventListener("resize", fadeAll);
document.querySelectorAll("details").forEach((d) => d.addEventListener("toggle", fadeAll));
fadeAll();

// Printing opens all details.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
