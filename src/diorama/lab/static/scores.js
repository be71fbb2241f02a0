// @ts-check
/** The scores of one case: a row per protocol and metric, a column per method, with chance and the oracle. */
import { h, number } from "./dom.js";
/** @typedef {import("./state.js").State} State */

/** @param {State} state @param {any[]} judged @param {string} track */
export function scoreTable(state, judged, track) {
  const names = ["chance", ...state.hello.methods.filter((/** @type {any} */ m) => m.track === track).map((/** @type {any} */ m) => m.name), "oracle"];
  const cell = (/** @type {any} */ protocol, /** @type {string} */ metric, /** @type {string} */ name) => {
    const found = protocol.lines.find((/** @type {any} */ line) => line.name === name)?.scores[metric];
    const value = Array.isArray(found?.value) ? found.value[0] : found?.value;
    return h("td", { class: name === "chance" || name === "oracle" ? "control" : "", title: found?.why || "", "data-method": name, "data-value": value ?? "" }, number(value, track === "explain" ? 2 : 3));
  };
  const rows = judged.flatMap((p) => p.metrics.map((/** @type {string} */ metric) => h("tr", { "data-protocol": p.protocol, "data-metric": metric },
    h("th", { scope: "row" }, metric === p.metrics[0] ? h("b", {}, p.protocol) : "", " ", metric, p.direction === "lower" ? " ↓" : ""), ...names.map((name) => cell(p, metric, name)))));
  return h("div", {}, h("h2", {}, "Scores of this case"),
    h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, ""), ...names.map((n) => h("th", { scope: "col", title: n }, n)))), h("tbody", {}, ...rows))),
    h("p", { class: "quiet" }, "Oracle: the true answer; chance: a random one. Compare methods with these two. ↓: lower is better."));
}
