// @ts-check
/** The state of the page: the current scene, undo and redo, and the requests to the lab. */
import { decode } from "./wire.js";
/** @typedef {import("./wire.js").Reply} Reply */
/** @typedef {import("./wire.js").Model} Model */

const SLOW = /** @type {Record<string, string[]>} */ ({ stage: [], explain: ["maps", "scores"], tracks: ["layers", "codes", "concept", "scores"], case: [] });

export class State {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.seq = 0;
    this.slowSeq = 0;
    /** @type {any} */ this.hello = null;
    /** @type {any} */ this.scene = null;
    /** @type {any} */ this.first = null;
    /** @type {any[]} */ this.past = [];
    /** @type {any[]} */ this.future = [];
    this.tab = "stage";
    this.which = 0;
    this.index = 0;
    this.leak = 0;
    this.concept = "";
    /** @type {number|null} */ this.target = null;
    /** @type {any} */ this.waiting = null;
    this.busy = false;
    this.committing = 0;
    /** @type {Record<string, Function[]>} */ this.heard = {};
    model.on("msg:custom", (/** @type {any} */ head, /** @type {any} */ buffers) => this.take(decode(head, buffers || [])));
  }

  /** @param {string} kind @param {Function} call */
  on(kind, call) { (this.heard[kind] ||= []).push(call); }

  /** @param {string} kind @param {any} [given] */
  tell(kind, given) { (this.heard[kind] || []).forEach((call) => call(given)); }

  /** @param {Reply} reply */
  take(reply) {
    if (reply.kind === "hello") this.hello = reply;
    if (reply.kind === "done" && reply.want.includes("picture")) {
      this.busy = false;
      if (this.waiting) { const next = this.waiting; this.waiting = null; this.post(next); }
    }
    if (["map", "scores", "layers", "codes", "concept", "progress"].includes(reply.kind) && reply.seq < this.slowSeq) return;
    if (reply.kind === "picture") {
      if (reply.seq < this.shown) return;
      this.shown = reply.seq;
      if (!reply.drag) this.settled(reply);
    }
    this.tell(reply.kind, reply);
  }
  shown = 0;

  /** The picture of a scene that is not being dragged has arrived. @param {Reply} reply */
  settled(reply) {
    const scene = reply.scene;
    if (reply.seq === this.committing && this.scene && JSON.stringify(this.scene) !== JSON.stringify(scene)) {
      this.past.push(this.scene);
      if (this.past.length > 200) this.past.shift();
      this.future = [];
    }
    this.scene = scene;
    this.first ||= scene;
    this.tell("settled", scene);
  }

  /** @param {any} message */
  post(message) {
    this.busy = message.want.includes("picture");
    this.model.send({ ...message, seq: message.seq ?? ++this.seq });
  }

  /**
   * Request the scene after a change; while dragging, one request is running and only the newest one waits.
   * @param {Record<string, any>} change
   * @param {boolean} drag
   */
  change(change, drag) {
    const want = drag ? ["picture", "logits", ...(this.tab === "tracks" && this.hello.layers ? ["layers"] : [])] : this.wants();
    const message = { scene: this.scene, do: change, want, drag, ...this.about(), seq: ++this.seq };
    if (!drag) { this.committing = message.seq; this.slowSeq = message.seq; this.waiting = null; this.tell("asked"); }
    if (drag && this.busy) this.waiting = message;
    else this.post(message);
  }

  wants() { return ["picture", "exact", ...(this.hello.taken ? ["effects"] : []), ...this.slow()]; }

  /** The slow answers that the current tab shows, if the world has them. */
  slow() {
    const { layers, encoders, concepts } = this.hello;
    const has = /** @type {Record<string, boolean>} */ ({ layers, codes: encoders.length > 0, concept: concepts, scores: this.tab === "explain" || layers });
    return SLOW[this.tab].filter((want) => has[want] ?? true);
  }

  about() { return { model: this.which, target: this.target, leak: this.leak, concept: this.concept }; }

  /** Show a scene as it is. @param {any} scene @param {boolean} [remember] */
  show(scene, remember = true) {
    this.seq += 1;
    this.slowSeq = this.seq;
    this.committing = remember ? this.seq : 0;
    this.waiting = null;
    this.tell("asked");
    this.post({ scene, want: this.wants(), ...this.about(), seq: this.seq });
  }

  /** Request the slow answers of the current tab again. @param {boolean} [drag] */
  again(drag = false) {
    if (!this.scene || !this.slow().length) return;
    this.slowSeq = ++this.seq;
    if (!drag) this.tell("asked");
    this.model.send({ scene: this.scene, want: drag ? ["layers"] : this.slow(), drag, ...this.about(), seq: this.seq });
  }

  undo() { const back = this.past.pop(); if (back) { this.future.push(this.scene); this.show(back, false); } }
  redo() { const next = this.future.pop(); if (next) { this.past.push(this.scene); this.show(next, false); } }
  reset() { if (this.first) this.show(this.first); }
  /** @param {number} index */
  numbered(index) { this.index = index; this.model.send({ want: ["sample"], index, seq: ++this.seq }); }

  /** The command that opens the same view. */
  command() { return `${this.hello.command} --scene '${JSON.stringify(this.scene)}'`; }
}

/** A scene encoded for the address. @param {any} scene */
export function packedScene(scene) {
  const bytes = new TextEncoder().encode(JSON.stringify(scene));
  return btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** Decode the scene of an address; null if it has none. @param {string|null} text */
export function unpackedScene(text) {
  try {
    const bytes = Uint8Array.from(atob((text || "").replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch { return null; }
}
