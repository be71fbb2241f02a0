// @ts-check
/** Drawing on canvases: pictures, highlighted regions, heat maps over a picture. */
/** @typedef {import("./wire.js").ArrayOf} ArrayOf */

/** Positive evidence is red, negative blue, as in reports. */
const RED = [201, 0, 33], BLUE = [5, 77, 176];

/**
 * Draw an array (h, w, 3) on a canvas, which is resized to it.
 * @param {HTMLCanvasElement} canvas
 * @param {ArrayOf} image
 */
export function paint(canvas, image) {
  const [height, width] = image.shape;
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  const out = new ImageData(width, height);
  for (let i = 0, j = 0; i < image.data.length; i += 3, j += 4) {
    out.data[j] = image.data[i]; out.data[j + 1] = image.data[i + 1]; out.data[j + 2] = image.data[i + 2]; out.data[j + 3] = 255;
  }
  context(canvas).putImageData(out, 0, 0);
}

/**
 * Highlight regions by their ids: an outline around them, and a veil over everything else.
 * @param {HTMLCanvasElement} canvas
 * @param {ArrayOf|undefined} regions
 * @param {number[]} ids
 */
export function lightUp(canvas, regions, ids) {
  const pen = context(canvas);
  if (!regions) { pen.clearRect(0, 0, canvas.width, canvas.height); return; }
  const [height, width] = regions.shape;
  canvas.width = width; canvas.height = height;
  if (!ids.length) return;
  const out = new ImageData(width, height), inside = (/** @type {number} */ i) => ids.includes(regions.data[i]);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const i = y * width + x;
      if (inside(i)) continue;
      const near = (x > 0 && inside(i - 1)) || (x < width - 1 && inside(i + 1)) || (y > 0 && inside(i - width)) || (y < height - 1 && inside(i + width));
      out.data.set(near ? [255, 214, 10, 255] : [255, 255, 255, 90], 4 * i);
    }
  }
  pen.putImageData(out, 0, 0);
}

/**
 * A heat map over a pale picture.
 * @param {HTMLCanvasElement} canvas
 * @param {ArrayOf} image
 * @param {ArrayOf} heat
 * @param {{opacity: number, sign: string}} look
 */
export function overlay(canvas, image, heat, look) {
  const [height, width] = image.shape;
  canvas.width = width; canvas.height = height;
  const out = new ImageData(width, height);
  for (let i = 0; i < width * height; i += 1) {
    const value = heat.data[i] / 127;
    const strength = (look.sign === "positive" && value < 0) || (look.sign === "negative" && value > 0) ? 0 : Math.abs(value) * look.opacity;
    const colour = value > 0 ? RED : BLUE;
    const gray = (image.data[3 * i] + image.data[3 * i + 1] + image.data[3 * i + 2]) / 3;
    for (let c = 0; c < 3; c += 1) {
      const pale = 191 + 0.25 * gray;
      const ground = pale * look.opacity + image.data[3 * i + c] * (1 - look.opacity);
      out.data[4 * i + c] = ground * (1 - strength) + colour[c] * strength;
    }
    out.data[4 * i + 3] = 255;
  }
  context(canvas).putImageData(out, 0, 0);
}

/** @param {HTMLCanvasElement} canvas */
function context(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}
