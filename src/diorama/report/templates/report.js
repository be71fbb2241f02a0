"use strict";
// Tables: a click on a heading sorts the methods; controls stay where they are pinned.
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

// Gallery: pick a method, a case, or both; the same case of all methods stands one below the other.
function fill(select, names) {
  for (const name of Array.from(new Set(names))) select.add(new Option(name, name));
}

for (const gallery of document.querySelectorAll(".gallery")) {
  const form = gallery.querySelector(".filter");
  const strips = Array.from(gallery.querySelectorAll(".strip"));
  const shelves = Array.from(gallery.querySelectorAll(".shelf"));
  const open = shelves.map((shelf) => shelf.open);
  fill(form.elements.method, strips.map((strip) => strip.dataset.method));
  fill(form.elements.case, strips.map((strip) => strip.dataset.case).sort());
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", () => {
    const method = form.elements.method.value, wanted = form.elements.case.value;
    for (const strip of strips) {
      strip.hidden = Boolean((method && strip.dataset.method !== method) || (wanted && strip.dataset.case !== wanted));
    }
    shelves.forEach((shelf, i) => {
      const left = shelf.querySelectorAll(".strip:not([hidden])").length;
      shelf.hidden = left === 0;
      shelf.open = method || wanted ? left > 0 : open[i];
    });
    const shown = strips.filter((strip) => !strip.hidden).length;
    form.querySelector("output").textContent = method || wanted ? shown + " of " + strips.length + " pictures" : "";
  });
}

// On paper everything is open.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
