// @ts-check
/** Explanations: a tile per method with its map and, for every part, its claimed importance and the effect of removing it. */
import { fill, h } from "./dom.js";
import { overlay } from "./draw.js";
import { scoreTable } from "./scores.js";
/** @typedef {import("./state.js").State} State */

/** Parts are marked if claim and effect, relative to their largest values, differ by more than this. */
const APART = 0.5;

/** @param {State} state @param {any} bar */
export function explanations(state, bar) {
  const look = { opacity: 0.85, sign: "both" };
  const tiles = h("div", { class: "tiles" });
  const scored = h("div", { class: "scores" });
  const asked = h("p", { class: "quiet" });
  /** @type {any} */ let image = null;
  /** @type {any} */ let effects = null;
  /** @type {Map<number, any>} */ const maps = new Map();
  /** @type {Map<string, any>} */ const judged = new Map();

  /** @type {Map<number, {el: HTMLElement, canvas: HTMLCanvasElement, bar: any, said: HTMLElement, parts: HTMLElement}>} */
  const made = new Map();
  state.on("hello", () => {
    made.clear();
    state.hello.methods.forEach((/** @type {any} */ m, /** @type {number} */ i) => {
      if (m.track !== "explain") return;
      const canvas = h("canvas", { width: 128, height: 128, role: "img", "aria-label": `Map of ${m.name}` });
      const meter = h("progress", { max: 1, hidden: true, "aria-label": `Progress of ${m.name}` });
      const said = h("p", { class: "quiet" }), parts = h("div", { class: "claims" });
      made.set(i, { el: h("article", { class: "tile", "data-method": m.name }, h("h3", {}, m.name), canvas, meter, said, parts), canvas, bar: meter, said, parts });
    });
    fill(tiles, ...[...made.values()].map((t) => t.el));
  });
  state.on("asked", () => {
    judged.clear();
    fill(scored);
    for (const tile of made.values()) { tile.el.classList.add("old"); if (state.tab === "explain") { tile.bar.hidden = false; tile.bar.removeAttribute("value"); tile.said.textContent = "waiting"; } }
  });
  state.on("picture", (/** @type {any} */ reply) => { if (!reply.drag) image = reply.arrays.image; });
  state.on("progress", (/** @type {any} */ reply) => {
    const tile = made.get(reply.method);
    if (!tile) return;
    tile.bar.hidden = false;
    if (reply.of) tile.bar.value = Math.min(1, reply.done / reply.of); else tile.bar.removeAttribute("value");
    tile.said.textContent = `${reply.done}${reply.of ? ` of ${reply.of}` : ""} passes through the model`;
  });
  state.on("map", (/** @type {any} */ reply) => {
    const tile = made.get(reply.method);
    if (!tile) return;
    maps.set(reply.method, reply);
    tile.bar.hidden = true;
    tile.el.classList.remove("old");
    tile.el.dataset.seq = String(reply.seq);
    tile.said.textContent = reply.why || [`${reply.seconds} s`, reply.signed ? "" : "no sign", reply.note].filter(Boolean).join(" · ");
    if (reply.target !== undefined) asked.textContent = `Explained class: ${bar.read().name(reply.target)}${state.target === null ? ", the true one" : ""}. Red is evidence for it, blue against it.`;
    draw();
  });
  state.on("effects", (/** @type {any} */ reply) => { effects = reply; draw(); });
  state.on("scores", (/** @type {any} */ reply) => { if (reply.track === "explain") { judged.set(reply.protocol, reply); score(); } });

  function draw() {
    for (const [i, tile] of made) {
      const map = maps.get(i);
      if (!map || map.why || !image) continue;
      if (map.arrays.heat.shape[0] === image.shape[0]) overlay(tile.canvas, image, map.arrays.heat, look);
      fill(tile.parts, claims(map.claims, effects));
    }
  }

  const score = () => fill(scored, scoreTable(state, [...judged.values()], "explain"));

  const opacity = h("input", { type: "range", min: "0", max: "1", step: "0.05", value: String(look.opacity), oninput: () => { look.opacity = Number(opacity.value); draw(); } });
  const target = h("select", { onchange: () => { state.target = target.value === "" ? null : Number(target.value); state.show(state.scene, false); } });
  state.on("hello", () => fill(target, h("option", { value: "" }, "the true one"), ...Array.from({ length: state.hello.models[0]?.classes || 0 }, (_, i) => h("option", { value: String(i) }, bar.read().name(i)))));
  const sign = h("select", { onchange: () => { look.sign = sign.value; draw(); } }, ...["both", "positive", "negative"].map((x) => h("option", {}, x)));
  const el = h("section", { "aria-label": "Explanations" }, h("h2", {}, "Explanations and measured effects"), asked,
    h("div", { class: "row" }, h("label", {}, "Explained class ", target), h("label", {}, "Opacity ", opacity), h("label", {}, "Sign ", sign)), tiles,
    h("p", { class: "quiet legend" }, h("span", { class: "key claimed" }), "importance according to the map ", h("span", { class: "key measured" }), "measured: how far the logit falls without the part. ", h("b", { class: "apart" }, "≠"), " if the two, relative to their largest values, differ by more than half."),
    scored);
  return { el };
}

/** Claimed importance of every part beside its measured effect. @param {number[]|null} claimed @param {any} effects */
function claims(claimed, effects) {
  if (!claimed || !effects?.names.length) return h("p", { class: "quiet" }, effects?.why || "");
  const share = (/** @type {number[]} */ values) => { const top = Math.max(...values.map(Math.abs), 1e-12); return values.map((v) => v / top); };
  const said = share(claimed.slice(0, effects.names.length)), so = share(effects.values);
  const half = (/** @type {number} */ x, /** @type {string} */ kind) => h("span", { class: "half" }, h("span", { class: `fillbar ${kind}`, style: { left: `${50 + 50 * Math.min(0, x)}%`, width: `${50 * Math.abs(x)}%` } }));
  return h("table", { class: "claim" }, h("tbody", {}, ...effects.names.map((/** @type {string} */ name, /** @type {number} */ i) => {
    const apart = Math.abs(said[i] - so[i]) > APART;
    return h("tr", { class: apart ? "differs" : "", "data-part": name, "data-effect": effects.values[i], title: `${name}: claimed ${claimed[i].toPrecision(3)}, measured ${effects.values[i].toPrecision(3)}` },
      h("th", { scope: "row" }, name), h("td", {}, half(said[i], "claimed"), half(so[i], "measured")), h("td", { class: "apart" }, apart ? "≠" : ""));
  })));
}
