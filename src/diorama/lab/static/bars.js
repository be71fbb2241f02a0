// @ts-check
/** Logits as bars, each with its change since the pinned state. */
import { fill, h, number, signed } from "./dom.js";
/** @typedef {import("./state.js").State} State */

/** The number of classes shown. */
const SHOWN = 7;

/** @param {State} state */
export function bars(state) {
  const list = h("ol", { class: "bars", "aria-label": "Logits of the most likely classes" });
  const head = h("p", { class: "quiet" });
  const pin = h("button", { type: "button", onclick: () => { pinned = now && [...now]; draw(); } , title: "Show changes relative to this state (P)" }, "Pin this state");
  const menu = h("select", { "aria-label": "Model", hidden: true, onchange: () => { state.which = Number(menu.value); pinned = null; state.show(state.scene, false); } });
  /** @type {number[]|null} */ let now = null;
  /** @type {number[]|null} */ let pinned = null;
  let approx = false;
  /** @type {number|null} */ let label = null;

  const name = (/** @type {number} */ i) => { const given = state.hello?.classes[i]; return given === undefined || /^\d+$/.test(given) ? `class ${i}` : given; };
  function draw() {
    if (!now) return;
    const was = pinned || now, values = now;
    const order = values.map((_, i) => i).sort((a, b) => Math.max(values[b], was[b]) - Math.max(values[a], was[a])).slice(0, SHOWN);
    if (label !== null && label < values.length && !order.includes(label)) order[order.length - 1] = label;
    order.sort((a, b) => was[b] - was[a]);
    const low = Math.min(0, ...order.map((i) => Math.min(values[i], was[i]))), high = Math.max(0.001, ...order.map((i) => Math.max(values[i], was[i])));
    const at = (/** @type {number} */ x) => (100 * (x - low)) / (high - low);
    const best = values.indexOf(Math.max(...values));
    fill(list, ...order.map((i) => h("li", { class: i === best ? "best" : "" , "data-class": i, "data-value": values[i] },
      h("span", { class: "name" }, name(i), i === label ? h("span", { class: "tag" }, "true") : null),
      h("span", { class: "track" },
        h("span", { class: "bar", style: { left: `${Math.min(at(0), at(values[i]))}%`, width: `${Math.abs(at(values[i]) - at(0))}%` } }),
        h("span", { class: "was", style: { left: `${at(was[i])}%` }, title: `pinned: ${number(was[i])}` })),
      h("span", { class: "value" }, (approx ? "≈ " : "") + number(values[i])),
      h("span", { class: `delta ${Math.abs(values[i] - was[i]) < 0.005 ? "none" : values[i] < was[i] ? "down" : "up"}` }, Math.abs(values[i] - was[i]) < 0.005 ? "" : signed(values[i] - was[i])))));
    fill(head, `${state.hello.models[state.which].name} predicts ${name(best)}`, label === null ? "." : best === label ? ", the true class." : `; the true class is ${name(label)}.`);
  }
  state.on("hello", () => {
    menu.hidden = state.hello.models.length < 2;
    fill(menu, ...state.hello.models.map((/** @type {any} */ m, /** @type {number} */ i) => h("option", { value: String(i) }, m.name)));
  });
  state.on("picture", (/** @type {any} */ reply) => { label = reply.label ?? null; });
  state.on("logits", (/** @type {any} */ reply) => {
    if (reply.model !== state.which) return;
    now = reply.values; approx = reply.approx;
    if (!pinned || pinned.length !== reply.values.length) pinned = [...reply.values];
    draw();
  });
  state.on("fresh", () => { pinned = null; });
  state.on("pin", () => pin.click());
  const el = h("section", { class: "logits", "aria-label": "Logits" }, h("h2", {}, "Logits of the model"), head, list,
    h("div", { class: "row" }, pin, menu, h("span", { class: "quiet" }, "The line in a bar is the pinned state; ≈ while you drag.")));
  return { el, read: () => ({ now, pinned, approx, name }) };
}
