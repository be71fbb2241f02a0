// @ts-check
/** Small helpers for elements. */

/**
 * An element with properties, listeners (on…) and children.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...(Node|string|number|null|undefined|false)} kids
 * @returns {any}
 */
export function h(tag, props = {}, ...kids) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) el.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [k, v] of Object.entries(value)) el.style.setProperty(k, String(v));
    else if (name in el && name !== "list" && typeof value !== "string") /** @type {any} */ (el)[name] = value;
    else el.setAttribute(name, value === true ? "" : String(value));
  }
  el.append(...kids.filter((kid) => kid !== null && kid !== undefined && kid !== false).map((kid) => (kid instanceof Node ? kid : String(kid))));
  return el;
}

/** @param {Element} el @param {...(Node|string|null|false)} kids */
export function fill(el, ...kids) {
  el.replaceChildren(...kids.filter((kid) => kid !== null && kid !== false).map((kid) => (kid instanceof Node ? kid : String(kid))));
}

/** A number with a sign. @param {number} x @param {number} [digits] */
export function signed(x, digits = 2) {
  return (x < 0 ? "−" : "+") + Math.abs(x).toFixed(digits);
}

/** A number as people write it. @param {number|null|undefined} x @param {number} [digits] */
export function number(x, digits = 2) {
  return x === null || x === undefined ? "–" : (x < 0 ? "−" : "") + Math.abs(x).toFixed(digits);
}
