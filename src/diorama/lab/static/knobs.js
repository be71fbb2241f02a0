// @ts-check
/** The controls of a scene: parts, menus, sliders, colours, and hemispheres for lamp and camera. */
import { fill, h } from "./dom.js";
/** @typedef {import("./state.js").State} State */
/** @typedef {{kind: string, name: string, label: string, value: any, options: {text: string, do: any}[], low: number, high: number, step: number, unit: string, ids: number[], removed: number|null}} Handle */

/** @param {State} state @param {(ids: number[]) => void} point */
export function knobs(state, point) {
  const el = h("section", { class: "knobs", "aria-label": "What you can change" });
  /** @type {Handle[]} */ let handles = [];
  /** @type {Map<string, {update: (handle: Handle) => void}>} */ const made = new Map();
  /** The number of the option to go back to, by part. @type {Record<string, number>} */ const before = {};
  let shape = "";

  /** @param {Handle} handle */
  function toggle(handle) {
    if (handle.removed === null) return;
    const gone = handle.value === handle.removed;
    if (!gone && handle.value !== null) before[handle.name] = handle.value;
    const option = handle.options[gone ? (before[handle.name] ?? 0) : handle.removed];
    state.change(option.do, false);
  }

  state.on("picture", (/** @type {any} */ reply) => {
    handles = reply.handles;
    const now = handles.map((x) => `${x.kind}:${x.name}:${x.options.map((o) => o.text).join()}`).join("|");
    if (now === shape) handles.forEach((one) => made.get(one.name)?.update(one));
    else { shape = now; build(); }
  });

  function build() {
    made.clear();
    const current = (/** @type {string} */ name) => /** @type {Handle} */ (handles.find((x) => x.name === name));
    const parts = handles.filter((x) => x.removed !== null), others = handles.filter((x) => x.removed === null);
    const make = { menu: menuKnob, slider: sliderKnob, dome: domeKnob, colour: colourKnob };
    const drawn = others.map((one) => {
      const knob = /** @type {any} */ (make)[one.kind](state, one, () => current(one.name));
      made.set(one.name, knob);
      if (one.ids.length) hover(knob.el, one.ids);
      return knob.el;
    });
    const domes = drawn.filter((x) => x.classList.contains("dome"));
    const rest = drawn.filter((x) => !x.classList.contains("dome"));
    fill(el, parts.length ? h("h2", {}, "Remove or exchange") : null,
      parts.length ? h("ul", { class: "parts" }, ...parts.map((one) => partKnob(one, () => current(one.name)))) : null,
      domes.length ? h("div", { class: "domes" }, ...domes) : null,
      rest.length ? h("h2", {}, parts.length ? "Everything else" : "What you can change") : null, ...rest, typed());
  }

  /** @param {HTMLElement} target @param {number[]} ids */
  function hover(target, ids) {
    for (const name of ["pointerenter", "focusin"]) target.addEventListener(name, () => point(ids));
    for (const name of ["pointerleave", "focusout"]) target.addEventListener(name, () => point([]));
  }

  /** @param {Handle} given @param {() => Handle} now */
  function partKnob(given, now) {
    const button = h("button", { type: "button", class: "part", onclick: () => toggle(now()) });
    const select = h("select", { "aria-label": `Variant of ${given.label}`, onchange: () => state.change(now().options[Number(select.value)].do, false) });
    const update = (/** @type {Handle} */ one) => {
      const gone = one.value === one.removed;
      button.setAttribute("aria-pressed", String(gone));
      fill(button, h("span", { class: "mark", "aria-hidden": "true" }, gone ? "↺" : "✕"), one.label);
      button.title = gone ? `Restore the ${one.label}` : `Remove the ${one.label}`;
      fill(select, ...one.options.map((o, i) => h("option", { value: String(i) }, o.text)));
      select.value = String(one.value ?? 0);
    };
    update(given);
    const item = h("li", { "data-part": given.name }, button, select);
    hover(item, given.ids);
    made.set(given.name, { update });
    return item;
  }

  function typed() {
    const box = h("input", { type: "text", placeholder: Object.keys(state.hello.factors)[0] + "=…", "aria-label": "A change, NAME=VALUE", spellcheck: "false" });
    const hint = Object.entries(state.hello.factors).map(([name, said]) => `${name}: ${said}`).join("\n");
    return h("form", { class: "typed", onsubmit: (/** @type {Event} */ e) => {
      e.preventDefault();
      const [, name, value] = /^\s*([\w.]+)\s*=\s*(.*)$/.exec(box.value) || [];
      if (!name) return state.tell("error", { message: "write NAME=VALUE, for example " + Object.keys(state.hello.factors)[0] + "=none" });
      let read; try { read = JSON.parse(value); } catch { read = value === "none" ? null : value; }
      state.change({ [name]: read }, false);
    } }, h("label", { title: hint }, "do ", box), h("button", { type: "submit" }, "do it"));
  }
  const first = () => (handles.some((x) => x.removed !== null) ? "Click on a part to remove or exchange it." : "Move a slider or choose another value to change the picture.");
  return { el, first, toggleAt: (/** @type {number} */ id) => { const found = handles.find((x) => x.ids.includes(id)); if (found) toggle(found); return found; }, at: (/** @type {number} */ id) => handles.find((x) => x.ids.includes(id)) };
}

/** @param {State} state @param {Handle} given @param {() => Handle} now */
function menuKnob(state, given, now) {
  const select = h("select", { onchange: () => state.change(now().options[Number(select.value)].do, false) });
  const update = (/** @type {Handle} */ one) => {
    fill(select, ...one.options.map((o, i) => h("option", { value: String(i) }, o.text)));
    select.value = String(one.value ?? 0);
  };
  update(given);
  return { el: h("label", { class: "knob", "data-name": given.name }, h("span", {}, given.label), select), update };
}

/** @param {State} state @param {Handle} given */
function sliderKnob(state, given) {
  const said = h("output", {});
  const input = h("input", { type: "range", min: String(given.low), max: String(given.high), step: String(given.step),
    oninput: () => { held = true; tell(); state.change({ [given.name]: Number(input.value) }, true); },
    onchange: () => { held = false; state.change({ [given.name]: Number(input.value) }, false); } });
  let held = false;
  const tell = () => { said.textContent = `${Math.round(Number(input.value) * 100) / 100}${given.unit}`; };
  const update = (/** @type {Handle} */ one) => { if (!held && one.value !== null) { input.value = String(one.value); } tell(); };
  update(given);
  return { el: h("label", { class: "knob", "data-name": given.name }, h("span", {}, given.label), input, said), update };
}

/** @param {State} state @param {Handle} given */
function colourKnob(state, given) {
  const toScreen = (/** @type {number} */ x) => Math.round(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055));
  const toLight = (/** @type {number} */ v) => { const x = v / 255; return Math.round(1e4 * (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)) / 1e4; };
  const read = () => [1, 3, 5].map((i) => toLight(parseInt(input.value.slice(i, i + 2), 16)));
  const input = h("input", { type: "color", oninput: () => state.change({ [given.name]: read() }, true), onchange: () => state.change({ [given.name]: read() }, false) });
  const update = (/** @type {Handle} */ one) => { input.value = "#" + one.value.map((/** @type {number} */ x) => toScreen(x).toString(16).padStart(2, "0")).join(""); };
  update(given);
  return { el: h("label", { class: "knob", "data-name": given.name }, h("span", {}, given.label), input), update };
}

/**
 * A lamp or camera on a hemisphere seen from the front; a hollow handle is on the far side.
 * @param {State} state @param {Handle} given
 */
function domeKnob(state, given) {
  const ball = h("span", { class: "ball", "aria-hidden": "true" });
  const disc = h("div", { class: "disc", tabindex: "0", role: "slider", "aria-label": `${given.label}: drag, or arrow keys`, "aria-valuetext": "" }, ball);
  const flip = h("button", { type: "button", class: "quiet", onclick: () => { front = !front; send(false); }, title: "Move it to the other side" }, "flip");
  let u = 0, v = 0, front = true, held = false;
  const place = () => {
    ball.style.left = `${50 + 46 * u}%`; ball.style.top = `${50 - 46 * v}%`;
    ball.classList.toggle("far", !front);
    disc.setAttribute("aria-valuetext", `${Math.round(100 * u)} % right, ${Math.round(100 * v)} % up, ${front ? "in front" : "behind"}`);
  };
  const send = (/** @type {boolean} */ drag) => {
    const length = Math.hypot(u, v);
    if (length > 1) { u /= length; v /= length; }
    place();
    const depth = Math.sqrt(Math.max(0, 1 - u * u - v * v)) * (front ? 1 : -1);
    state.change({ [given.name]: { pitch: Math.atan2(u, depth), roll: Math.asin(Math.max(-1, Math.min(1, -v))) } }, drag);
  };
  const follow = (/** @type {PointerEvent} */ e, /** @type {boolean} */ drag) => {
    const box = disc.getBoundingClientRect();
    u = ((e.clientX - box.left) / box.width - 0.5) / 0.46; v = -((e.clientY - box.top) / box.height - 0.5) / 0.46;
    send(drag);
  };
  disc.addEventListener("pointerdown", (/** @type {PointerEvent} */ e) => { held = true; disc.setPointerCapture(e.pointerId); follow(e, true); });
  disc.addEventListener("pointermove", (/** @type {PointerEvent} */ e) => { if (held) follow(e, true); });
  disc.addEventListener("pointerup", (/** @type {PointerEvent} */ e) => { if (held) { held = false; follow(e, false); } });
  disc.addEventListener("pointercancel", () => { held = false; send(false); });
  disc.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
    const step = /** @type {any} */ ({ ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] })[e.key];
    if (!step) return;
    e.preventDefault(); u += step[0]; v += step[1]; send(false);
  });
  const update = (/** @type {Handle} */ one) => {
    if (held) return;
    const { pitch, roll } = one.value;
    u = Math.sin(pitch) * Math.cos(roll); v = -Math.sin(roll); front = given.name === "camera" || Math.cos(pitch) * Math.cos(roll) >= 0;
    place();
  };
  update(given);
  return { el: h("div", { class: "dome", "data-name": given.name }, h("span", { class: "title" }, given.label), disc, given.name === "camera" ? null : flip), update };
}
