// @ts-check
/** The cases of a run: its rows, previous and next by disagreement, and the report itself. */
import { fill, h, number } from "./dom.js";
/** @typedef {import("./state.js").State} State */

/** @param {State} state @param {string} token */
export function cases(state, token) {
  /** @type {{name: string, disagreement: number}[]} */ let listed = [];
  let name = "";
  const list = h("select", { "aria-label": "Case", onchange: () => open(list.value) });
  const rows = h("div", { class: "scroll" });
  const place = h("p", { class: "quiet" });
  const step = (/** @type {number} */ by) => { const at = listed.findIndex((c) => c.name === name); const next = listed[at + by]; if (next) open(next.name); };
  const open = (/** @type {string} */ wanted) => { name = wanted; state.model.send({ want: ["case"], name: wanted, seq: ++state.seq }); };
  state.on("hello", () => { if (state.hello.cases) state.model.send({ want: ["cases"], seq: ++state.seq }); });
  state.on("cases", (/** @type {any} */ reply) => {
    listed = reply.cases;
    fill(list, ...listed.map((c) => h("option", { value: c.name }, `${c.name} · ${Math.round(100 * c.disagreement)} %`)));
    if (name) list.value = name;
  });
  state.on("case", (/** @type {any} */ reply) => {
    name = reply.name;
    list.value = name;
    const at = listed.findIndex((c) => c.name === name);
    place.textContent = `Case ${at + 1} of ${listed.length}, worst first: 100 % is the last rank in its cell.`;
    fill(rows, h("table", { class: "rows" }, h("thead", {}, h("tr", {}, ...["method", "protocol", "metric", "value"].map((x) => h("th", { scope: "col" }, x)))),
      h("tbody", {}, ...reply.rows.map((/** @type {any} */ r) => h("tr", { "data-metric": r.metric, "data-method": r.method }, h("td", {}, r.method), h("td", {}, r.protocol), h("td", {}, r.metric),
        h("td", { title: r.reason, "data-value": r.value ?? "" }, r.status === "ok" ? number(r.value, 3) : `${r.status}: ${r.reason}`))))));
    state.tell("fresh");
    state.first = reply.scene;
    state.show(reply.scene);
  });
  const el = h("section", { "aria-label": "Case" }, h("h2", {}, "A case of the run"),
    h("div", { class: "row" }, h("button", { type: "button", onclick: () => step(-1) }, "← worse"), list, h("button", { type: "button", onclick: () => step(1) }, "better →"),
      h("a", { href: `/report?token=${encodeURIComponent(token)}` }, "the whole report")), place, rows);
  return { el, open, name: () => name, shown: () => { if (!name && listed.length) open(listed[0].name); } };
}
