// @ts-check
/** The lab: render({model, el}) in a page of its own or in the cell of a notebook. */
import { fill, h } from "./dom.js";
import { lightUp, paint } from "./draw.js";
import { State, packedScene, unpackedScene } from "./state.js";
import { bars } from "./bars.js";
import { knobs } from "./knobs.js";
import { explanations } from "./tiles.js";
import { tracks } from "./tracks.js";
import { cases } from "./cases.js";
import { exported } from "./export.js";

const TABS = { stage: "Stage", explain: "Explanations", tracks: "Tracks", case: "Case" };

/** @param {{model: any, el: HTMLElement, token?: string}} given */
export function render({ model, el, token }) {
  const page = token !== undefined;
  const state = new State(model);
  const picture = h("canvas", { class: "picture", "aria-label": "The scene", role: "img" });
  const veil = h("canvas", { class: "veil", "aria-hidden": "true" });
  const hint = h("p", { class: "hint" });
  const idle = () => { hint.textContent = knob.first(); };
  const alert = h("p", { class: "alert", role: "status", "aria-live": "polite" });
  const frame = h("div", { class: "frame" }, picture, veil);
  /** @type {any} */ let regions;
  /** @type {any} */ let seen;

  const point = (/** @type {number[]} */ ids) => lightUp(veil, regions, ids);
  const knob = knobs(state, point);
  const bar = bars(state);
  const truth = h("dl", {}), true_ = h("details", { class: "truth" }, h("summary", {}, "Truth"), truth);
  const panels = /** @type {Record<string, any>} */ ({ stage: { el: h("div", {}, bar.el, true_) }, explain: explanations(state, bar), tracks: tracks(state), case: cases(state, token || "") });

  // Pointing at the picture
  const idAt = (/** @type {PointerEvent|MouseEvent} */ e) => {
    if (!regions) return 0;
    const box = picture.getBoundingClientRect(), [height, width] = regions.shape;
    const x = Math.floor(((e.clientX - box.left) / box.width) * width), y = Math.floor(((e.clientY - box.top) / box.height) * height);
    return x >= 0 && y >= 0 && x < width && y < height ? regions.data[y * width + x] : 0;
  };
  frame.addEventListener("pointermove", (/** @type {PointerEvent} */ e) => {
    const found = knob.at(idAt(e));
    point(found ? found.ids : []);
    frame.classList.toggle("can", Boolean(found && found.removed !== null));
    if (!found) idle();
    else hint.textContent = found.removed === null ? found.label : `${found.label}: click to ${found.options[found.removed].text === "removed" ? "remove it" : "exchange it"}`;
  });
  frame.addEventListener("pointerleave", () => { point([]); idle(); });
  frame.addEventListener("click", (/** @type {MouseEvent} */ e) => { knob.toggleAt(idAt(e)); });

  // Replies
  state.on("picture", (/** @type {any} */ reply) => {
    seen = reply; regions = reply.arrays.regions;
    paint(picture, reply.arrays.image);
    lightUp(veil, regions, []);
    el.dataset.seq = String(reply.seq); el.dataset.key = reply.key;
    alert.textContent = "";
    fill(truth, ...Object.entries(reply.truth).flatMap(([name, value]) => [h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, value === "None" ? "none" : value)]));
    true_.open ||= !state.hello.models.length;
    true_.hidden = !truth.children.length;
    if (!hint.textContent) idle();
  });
  state.on("done", (/** @type {any} */ reply) => { if (!reply.stale && reply.want.includes("picture")) el.dataset.done = String(reply.seq); });
  state.on("error", (/** @type {any} */ reply) => { alert.textContent = reply.message; });
  state.on("scene", (/** @type {any} */ reply) => { state.tell("fresh"); state.show(reply.scene); });
  state.on("saved", (/** @type {any} */ reply) => {
    alert.textContent = reply.again ? `This scene is in ${reply.file} already.` : `Saved as case ${reply.count} of ${reply.file}: diorama run -w "scenes(file=${reply.file})" … scores it.`;
  });
  state.on("settled", () => { undo.disabled = !state.past.length; if (page) remember(); });

  // Tabs
  const tabs = h("nav", { class: "tabs", role: "tablist" });
  const panel = h("div", { class: "panel" });
  function choose(/** @type {string} */ name) {
    state.tab = name;
    for (const one of tabs.children) one.setAttribute("aria-selected", String(one.dataset.tab === name));
    fill(panel, panels[name].el);
    if (page) remember();
    state.again();
    panels[name].shown?.();
  }
  function names() {
    const { explains, layers, encoders, concepts } = state.hello;
    return Object.keys(TABS).filter((name) => ({ stage: true, explain: explains, tracks: layers || encoders.length > 0 || concepts, case: state.hello.cases })[name]);
  }

  // Tools
  const tool = (/** @type {string} */ text, /** @type {string} */ key, /** @type {string} */ title, /** @type {() => void} */ call) =>
    h("button", { type: "button", title: `${title} (${key.toUpperCase()})`, "aria-keyshortcuts": key, onclick: call }, text);
  const undo = tool("Undo", "z", "Undo the last change", () => state.undo());
  const keys = /** @type {Record<string, () => void>} */ ({
    z: () => state.undo(), y: () => state.redo(), 0: () => state.reset(), p: () => state.tell("pin"), n: () => state.numbered(state.index + 1),
    r: () => state.numbered(Math.floor(Math.random() * 100000)), s: share, c: save,
  });
  const tools = h("div", { class: "tools", role: "toolbar", "aria-label": "Scene" }, undo,
    tool("Reset", "0", "Back to the first scene", keys[0]), tool("Random scene", "r", "Another scene", keys.r), tool("Next scene", "n", "The next scene, in the order of runs", keys.n));
  const more = h("div", { class: "tools" }, tool("Share", "s", "Copy the command that opens this view", share),
    page ? tool("Save as case", "c", "Append this scene to cases.jsonl", save) : null, ...exported(state, () => seen, bar, alert));
  async function share() {
    const text = state.command();
    try { await navigator.clipboard.writeText(text); alert.textContent = "The command that opens this view was copied."; }
    catch { const box = h("textarea", { readonly: true, rows: "4", "aria-label": "Command" }); box.value = text; fill(alert, "Copy this command: ", box); box.select(); }
  }
  function save() { state.model.send({ want: ["save"], scene: state.scene, seq: ++state.seq }); }
  el.addEventListener("keydown", (e) => {
    const target = /** @type {HTMLElement} */ (e.target);
    if (e.ctrlKey || e.metaKey || e.altKey || ["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName)) return;
    const tab = names()[Number(e.key) - 1];
    if (tab) { e.preventDefault(); choose(tab); } else if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
  });
  if (page) document.addEventListener("keydown", (e) => { if (e.target === document.body) el.dispatchEvent(new KeyboardEvent("keydown", e)); });

  // The address
  const hash = () => new URLSearchParams(location.hash.slice(1));
  function remember() {
    const now = new URLSearchParams();
    if (state.scene) now.set("s", packedScene(state.scene));
    now.set("tab", state.tab);
    if (state.tab === "case" && panels.case.name()) now.set("case", panels.case.name());
    history.replaceState(null, "", `${location.pathname}${location.search}#${now}`);
  }
  if (page) addEventListener("hashchange", () => { const s = unpackedScene(hash().get("s")); open(s); });
  function open(/** @type {any} */ scene) {
    const name = page ? hash().get("case") : null;
    if (name && state.hello.cases && !scene) panels.case.open(name);
    else state.show(scene || state.hello.first);
  }

  // Beginning
  const title = h("h1", {});
  const line = h("span", { class: "connection", role: "status" });
  let started = "";
  state.on("hello", () => {
    const again = started && started !== state.hello.started;
    started = state.hello.started;
    line.textContent = again ? "The lab was restarted; the view is unchanged." : "";
    if (again) setTimeout(() => { line.textContent = ""; }, 6000);
    fill(title, "Diorama lab ", h("span", { class: "quiet" }, state.hello.world));
    if (page) document.title = `${state.hello.world} – Diorama lab`;
    fill(tabs, ...names().map((name) => h("button", { type: "button", role: "tab", "data-tab": name, onclick: () => choose(name), "aria-selected": "false" }, /** @type {any} */ (TABS)[name])));
    const wanted = (page && hash().get("tab")) || state.tab;
    const scene = state.scene || (page ? unpackedScene(hash().get("s")) : null);
    state.scene = null;
    choose(names().includes(wanted) ? wanted : "stage");
    open(scene);
    el.classList.toggle("no-model", !state.hello.models.length);
  });
  model.on("state", (/** @type {string} */ now) => {
    el.dataset.state = now;
    if (now === "open") { state.busy = false; state.model.send({ want: ["hello"], seq: ++state.seq }); }
    else line.textContent = now === "lost" ? "The lab has stopped. Reconnecting …" : "The lab does not respond: start it again, or open the address that it printed.";
  });
  el.classList.add("diorama-lab");
  if (page) el.tabIndex = -1;
  fill(el, h("header", {}, title, tabs, line), h("div", { class: "columns" },
    h("section", { class: "stage", "aria-label": "The scene" }, frame, hint, tools, more, alert), knob.el, panel));
  if (!page) state.model.send({ want: ["hello"], seq: ++state.seq });
  return () => state.model.off("msg:custom");
}
