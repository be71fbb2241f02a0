// @ts-check
/** The other tracks: reflectance and shading with a planted leak, codes of encoders, a concept while the lamp moves. */
import { fill, h, number } from "./dom.js";
import { paint } from "./draw.js";
import { scoreTable } from "./scores.js";
/** @typedef {import("./state.js").State} State */

/** @param {State} state */
export function tracks(state) {
  const layered = h("div", { class: "layers" }), coded = h("div", {}), conceptual = h("div", {});
  /** @type {Map<number, HTMLElement>} */ const rows = new Map();
  const leak = h("input", { type: "range", min: "0", max: "1", step: "0.02", value: "0", "aria-label": "Share of the shading that leaks", oninput: () => { state.leak = Number(leak.value); state.again(true); }, onchange: () => state.again() });

  state.on("hello", () => {
    rows.clear(); fill(layered); fill(coded); fill(conceptual);
    sections.forEach(([el, wanted]) => { el.hidden = !wanted(); });
    concept.value = "";
  });
  state.on("layers", (/** @type {any} */ reply) => {
    const row = rows.get(reply.method) || h("article", { class: "decomposed" });
    if (!rows.has(reply.method)) { rows.set(reply.method, row); layered.append(row); }
    row.dataset.name = reply.name;
    if (reply.why) return fill(row, h("h3", {}, reply.name || "decomposer"), h("p", { class: "quiet" }, reply.why));
    const shown = reply.captions.map((/** @type {string} */ caption, /** @type {number} */ i) => {
      const canvas = h("canvas", { role: "img", "aria-label": `${reply.name}: ${caption}` });
      paint(canvas, reply.arrays[String(i)]);
      return h("figure", {}, canvas, h("figcaption", {}, caption));
    });
    fill(row, h("h3", {}, reply.method < 0 ? "a planted leak" : reply.name, " ", h("span", { class: "quiet" }, reply.said || `mean error ${number(reply.errors[0], 3)} and ${number(reply.errors[1], 3)}`)), h("div", { class: "strip" }, ...shown));
    return undefined;
  });
  const scored = h("div", { class: "scores" });
  /** @type {Map<string, any>} */ const judged = new Map();
  state.on("asked", () => { judged.clear(); fill(scored); });
  state.on("scores", (/** @type {any} */ reply) => { if (reply.track === "decompose") { judged.set(reply.protocol, reply); fill(scored, scoreTable(state, [...judged.values()], "decompose")); } });

  /** @type {Map<number, HTMLElement>} */ const encoders = new Map();
  const of = (/** @type {any} */ reply) => {
    const row = encoders.get(reply.method) || h("article", {});
    if (!row.isConnected) { encoders.set(reply.method, row); coded.append(row); }
    return row;
  };
  state.on("progress", (/** @type {any} */ reply) => { if (state.hello.methods[reply.method]?.track === "represent" && !encoders.has(reply.method)) fill(of(reply), h("p", { class: "quiet" }, `${reply.name} first encodes 256 images of this world, once.`)); });
  state.on("codes", (/** @type {any} */ reply) => {
    const row = of(reply);
    if (reply.why) return fill(row, h("h3", {}, reply.name), h("p", { class: "quiet" }, reply.why));
    const top = Math.max(1e-9, ...reply.motion.flat());
    const order = reply.latents.length ? reply.latents : reply.motion.map((/** @type {any} */ _, /** @type {number} */ i) => i).slice(0, 10);
    const table = h("table", { class: "motion" }, h("thead", {}, h("tr", {}, h("th", {}, "latent"), ...reply.factors.map((/** @type {string} */ f) => h("th", { scope: "col" }, f)))),
      h("tbody", {}, ...order.map((/** @type {number} */ z) => h("tr", {}, h("th", { scope: "row" }, `z${z}`), ...reply.motion[z].map((/** @type {number} */ x) => h("td", { style: { "--depth": String(x / top) }, title: `${number(x)} standard deviations` }, number(x, 1)))))));
    const drawn = reply.arrays.traversal ? h("canvas", { class: "traversal", role: "img", "aria-label": "Traversal of each latent" }) : null;
    if (drawn) paint(drawn, reply.arrays.traversal);
    const decoded = reply.arrays.decoded ? h("canvas", { role: "img", "aria-label": "Decoded" }) : null;
    if (decoded) paint(decoded, reply.arrays.decoded);
    fill(row, h("h3", {}, reply.name), h("p", { class: "quiet" }, "How far each latent moves, in standard deviations, while one true factor goes over its range. A disentangled code has one dark cell in every row."), table,
      decoded ? h("figure", { class: "decoded" }, decoded, h("figcaption", {}, "the scene, decoded")) : null,
      drawn ? h("figure", {}, h("div", { class: "traversed" }, h("div", { class: "names" }, ...reply.latents.map((/** @type {number} */ z) => h("span", {}, `z${z}`))), drawn), h("figcaption", {}, "one latent at a time, over its range")) : h("p", { class: "quiet" }, reply.why_not || ""));
    return undefined;
  });

  const concept = h("input", { type: "text", placeholder: "beak=none", "aria-label": "Concept: a change, NAME=VALUE", spellcheck: "false" });
  state.on("concept", (/** @type {any} */ reply) => fill(conceptual, curve(reply)));

  const layers = h("section", {}, h("h2", {}, "Reflectance and shading"), h("label", { class: "knob" }, h("span", {}, "leak"), leak), layered, scored);
  const codes = h("section", {}, h("h2", {}, "Codes"), coded);
  const lamp = h("section", {}, h("h2", {}, "A concept while the lamp moves"),
    h("form", { class: "typed", onsubmit: (/** @type {Event} */ e) => { e.preventDefault(); state.concept = concept.value; state.again(); } }, h("label", {}, "concept ", concept), h("button", { type: "submit" }, "learn it")), conceptual);
  /** @type {[HTMLElement, () => any][]} */
  const sections = [[layers, () => state.hello.layers], [codes, () => state.hello.encoders.length], [lamp, () => state.hello.concepts]];
  return { el: h("div", {}, layers, codes, lamp) };
}

/** The concept's score over the angle of the lamp. @param {any} reply */
function curve(reply) {
  const NS = "http://www.w3.org/2000/svg", W = 420, H = 150;
  const make = (/** @type {string} */ tag, /** @type {Record<string, any>} */ given, text = "") => { const el = document.createElementNS(NS, tag); for (const [k, v] of Object.entries(given)) el.setAttribute(k, String(v)); el.textContent = text; return el; };
  const all = [...reply.scores, reply.now, 0], low = Math.min(...all), high = Math.max(...all);
  const x = (/** @type {number} */ a) => 40 + ((W - 50) * (a + 90)) / 180, y = (/** @type {number} */ s) => 10 + (H - 40) * (1 - (s - low) / Math.max(high - low, 1e-9));
  const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Score of the concept over the angle of the lamp", class: "curve" });
  svg.append(make("line", { x1: 40, x2: W - 10, y1: y(0), y2: y(0), class: "zero" }), make("polyline", { points: reply.angles.map((/** @type {number} */ a, /** @type {number} */ i) => `${x(a)},${y(reply.scores[i])}`).join(" "), class: "line" }),
    make("line", { x1: 40, x2: W - 10, y1: y(reply.now), y2: y(reply.now), class: "now" }), make("text", { x: 36, y: y(reply.now) + 4, "text-anchor": "end" }, "now"),
    ...[-90, 0, 90].map((a) => make("text", { x: x(a), y: H - 8, "text-anchor": a < 0 ? "start" : a > 0 ? "end" : "middle" }, a === 0 ? "in front" : a < 0 ? "left" : "right")));
  const said = `Score of the concept “${reply.concept}” in layer ${reply.layer}: ${number(reply.now)} now; above 0 the change is detected. Accuracy on held-out scenes: ${Math.round(100 * reply.accuracy)} %. For a concept that is not about light, the curve should be flat.`;
  return h("figure", {}, svg, h("figcaption", { class: "quiet" }, said));
}
