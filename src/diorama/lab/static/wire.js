// @ts-check
/** Decodes replies, and gives the socket the interface of a widget's model: send, on, off. */

/**
 * @typedef {{name: string, shape: number[], type: string, data: any}} ArrayOf
 * @typedef {Record<string, any> & {kind: string, seq: number, arrays: Record<string, ArrayOf>}} Reply
 * @typedef {{send: (content: any) => void, on: (name: string, call: Function) => void, off: (name: string, call?: Function) => void}} Model
 */

const KINDS = { uint8: Uint8Array, int8: Int8Array };

/**
 * The head of a reply with its arrays; their bytes come in one buffer, or in one each.
 * @param {any} head
 * @param {(DataView|ArrayBuffer|Uint8Array)[]} buffers
 * @returns {Reply}
 */
export function decode(head, buffers) {
  /** @type {Record<string, ArrayOf>} */
  const arrays = {};
  const pieces = buffers.map((b) => (b instanceof ArrayBuffer ? new Uint8Array(b) : new Uint8Array(b.buffer, b.byteOffset, b.byteLength)));
  let piece = 0, at = 0;
  for (const one of head.arrays || []) {
    const size = one.shape.reduce((/** @type {number} */ a, /** @type {number} */ b) => a * b, 1);
    while (pieces[piece] && at >= pieces[piece].length) { piece += 1; at = 0; }
    const whole = pieces[piece];
    const Kind = /** @type {any} */ (KINDS)[one.type];
    arrays[one.name] = { ...one, data: new Kind(whole.buffer, whole.byteOffset + at, size) };
    at += size;
  }
  return { ...head, arrays };
}

/**
 * The socket of the lab as a widget's model. It reconnects after a break, and emits `state`.
 * @param {string} token
 * @returns {Model & {on: Function}}
 */
export function socketModel(token) {
  /** @type {Record<string, Function[]>} */
  const heard = {};
  /** @type {WebSocket|null} */
  let socket = null;
  let wait = 300;
  const emit = (/** @type {string} */ name, /** @type {any[]} */ ...given) => (heard[name] || []).forEach((call) => call(...given));
  const connect = () => {
    socket = new WebSocket(`ws://${location.host}/socket?token=${encodeURIComponent(token)}`);
    socket.binaryType = "arraybuffer";
    let opened = false;
    socket.onopen = () => { opened = true; wait = 300; emit("state", "open"); };
    socket.onmessage = (event) => {
      const size = new DataView(event.data).getUint32(0, true);
      const head = JSON.parse(new TextDecoder().decode(new Uint8Array(event.data, 4, size)));
      emit("msg:custom", head, [new Uint8Array(event.data, 4 + size)]);
    };
    socket.onclose = () => {
      emit("state", opened ? "lost" : "away");
      wait = Math.min(wait * 1.6, 4000);
      setTimeout(connect, wait);
    };
  };
  connect();
  return {
    send: (content) => { if (socket && socket.readyState === 1) socket.send(JSON.stringify(content)); },
    on: (/** @type {string} */ name, /** @type {Function} */ call) => { (heard[name] ||= []).push(call); },
    off: (/** @type {string} */ name) => { delete heard[name]; },
  };
}
