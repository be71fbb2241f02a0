// @ts-check
/** Exports: the picture as PNG, and the view with its command as SVG. */
import { h, number } from "./dom.js";
/** @typedef {import("./state.js").State} State */

/** The enlargement of the exported picture. */
const TIMES = 4;

/** @param {State} state @param {() => any} seen @param {any} bar @param {HTMLElement} alert */
export function exported(state, seen, bar, alert) {
  const save = (/** @type {Blob} */ blob, /** @type {string} */ name) => {
    const url = URL.createObjectURL(blob), link = h("a", { href: url, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 5000);
    alert.textContent = `${name} was written to your downloads.`;
  };
  const name = (/** @type {string} */ ending) => `${state.hello.world.replace(/\W+/g, "-").replace(/-$/, "")}-${(seen()?.key || "scene").slice(0, 8)}.${ending}`;
  const png = () => enlarged(seen().arrays.image).toBlob((/** @type {Blob|null} */ blob) => blob && save(blob, name("png")));
  const svg = () => save(new Blob([view(seen(), bar.read(), state)], { type: "image/svg+xml" }), name("svg"));
  return [h("button", { type: "button", onclick: png, title: "The picture as PNG" }, "PNG"), h("button", { type: "button", onclick: svg, title: "Picture, logits and the command as SVG" }, "SVG")];
}

/** @param {any} image */
function enlarged(image) {
  const [height, width] = image.shape, canvas = h("canvas", { width: width * TIMES, height: height * TIMES });
  const pen = canvas.getContext("2d"), out = new ImageData(width * TIMES, height * TIMES);
  for (let y = 0; y < height * TIMES; y += 1) {
    for (let x = 0; x < width * TIMES; x += 1) {
      const from = 3 * (Math.floor(y / TIMES) * width + Math.floor(x / TIMES)), to = 4 * (y * width * TIMES + x);
      out.data.set([image.data[from], image.data[from + 1], image.data[from + 2], 255], to);
    }
  }
  pen.putImageData(out, 0, 0);
  return canvas;
}

/** Picture, bars and command as one SVG. @param {any} seen @param {any} logits @param {State} state */
function view(seen, logits, state) {
  const safe = (/** @type {string} */ text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const values = logits.now || [], order = values.map((/** @type {number} */ _, /** @type {number} */ i) => i).sort((/** @type {number} */ a, /** @type {number} */ b) => values[b] - values[a]).slice(0, 7);
  const top = Math.max(1e-9, ...order.map((/** @type {number} */ i) => Math.abs(values[i])));
  const lines = order.map((/** @type {number} */ i, /** @type {number} */ k) => `<g transform="translate(420 ${40 + 34 * k})"><text y="12">${safe(logits.name(i))}</text><rect x="110" y="0" width="${(180 * Math.abs(values[i])) / top}" height="16" fill="${values[i] < 0 ? "#b5440b" : "#0072b2"}"/><text x="300" y="12">${number(values[i])}</text></g>`).join("");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 440" font-family="sans-serif" font-size="13"><title>${safe(state.hello.world)}</title><desc>${safe(state.command())}</desc><rect width="780" height="440" fill="#fff"/><image x="10" y="10" width="390" height="390" href="${enlarged(seen.arrays.image).toDataURL()}"/>${lines}<text x="10" y="425" fill="#555">${safe(state.hello.command)} · scene ${safe(seen.key)}</text></svg>`;
}
