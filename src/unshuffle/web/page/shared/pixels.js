// Thousands of small pictures as plain pixels: copying them takes a fraction of the time that as
// many calls of drawImage take, so that walls of 10,000 pictures can move.

const SIDES = [16, 8, 4]; // of a picture, largest first
const ACROSS = 8; // pictures in a row of a sheet
const IN_SHEET = ACROSS * ACROSS;
const QUARTER = 0x3f3f3f3f; // the bits that are left of each channel after dividing it by 4
const OPAQUE = 0xff000000;

/** A color as a pixel, from CSS in the form #rrggbb. */
export function pixelOf(/** @type {string} */ color) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) || 0);
  return (OPAQUE | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Pixels of tiles of half the side, each the mean of four. */
function halved(/** @type {Uint32Array} */ tiles, /** @type {number} */ side) {
  const half = side / 2;
  const small = new Uint32Array(tiles.length / 4);
  for (let tile = 0, k = 0; tile < tiles.length; tile += side * side) {
    for (let y = 0; y < half; y++) {
      for (let x = 0; x < half; x++, k++) {
        const at = tile + 2 * y * side + 2 * x;
        const sum =
          ((tiles[at] >>> 2) & QUARTER) +
          ((tiles[at + 1] >>> 2) & QUARTER) +
          ((tiles[at + side] >>> 2) & QUARTER) +
          ((tiles[at + side + 1] >>> 2) & QUARTER);
        small[k] = sum | OPAQUE;
      }
    }
  }
  return small;
}

export class Pixels {
  constructor() {
    /** @type {Map<number, Uint32Array>[]} by size, then by sheet: its pictures one by one */
    this.levels = SIDES.map(() => new Map());
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = ACROSS * SIDES[0];
    this.scratch = /** @type {CanvasRenderingContext2D} */ (
      canvas.getContext("2d", { willReadFrequently: true })
    );
    /** @type {Map<number, Uint8Array>} for each size on the screen, where its pixels come from */
    this.steps = new Map();
  }

  /** Takes the pictures of a sheet. */
  put(/** @type {number} */ sheet, /** @type {ImageBitmap} */ image) {
    const side = SIDES[0];
    const width = ACROSS * side;
    this.scratch.clearRect(0, 0, width, width);
    this.scratch.drawImage(image, 0, 0);
    const { data } = this.scratch.getImageData(0, 0, width, width);
    const pixels = new Uint32Array(data.buffer);
    let tiles = new Uint32Array(pixels.length);
    for (let tile = 0, k = 0; tile < IN_SHEET; tile++) {
      const corner = Math.floor(tile / ACROSS) * side * width + (tile % ACROSS) * side;
      for (let y = 0; y < side; y++, k += side) {
        tiles.set(pixels.subarray(corner + y * width, corner + y * width + side), k);
      }
    }
    SIDES.forEach((each, level) => {
      this.levels[level].set(sheet, tiles);
      if (level + 1 < SIDES.length) tiles = halved(tiles, each);
    });
  }

  /** Columns of a picture of `side` pixels that the pixels of a copy of `size` show. */
  stepsOf(/** @type {number} */ side, /** @type {number} */ size) {
    const key = side * 4096 + size;
    let steps = this.steps.get(key);
    if (!steps) {
      steps = Uint8Array.from({ length: size }, (_, k) => Math.floor(((k + 0.5) * side) / size));
      if (this.steps.size > 64) this.steps.clear();
      this.steps.set(key, steps);
    }
    return steps;
  }

  /**
   * Copies a picture in some size to a place, of which a part may be outside.
   * @param {{pixels: Uint32Array, width: number, height: number}} target
   * @param {number} slot -1 for a plain square
   * @param {number} x
   * @param {number} y
   * @param {number} size
   * @param {number} blank color of a picture that is not there
   */
  copy(target, slot, x, y, size, blank) {
    const { pixels, width, height } = target;
    const [left, right] = [Math.max(x, 0), Math.min(x + size, width)];
    const [top, bottom] = [Math.max(y, 0), Math.min(y + size, height)];
    if (left >= right || top >= bottom) return;
    let level = 0;
    while (level + 1 < SIDES.length && SIDES[level + 1] >= size) level++;
    const tiles = slot < 0 ? undefined : this.levels[level].get(Math.floor(slot / IN_SHEET));
    if (!tiles) {
      for (let row = top; row < bottom; row++) {
        pixels.fill(blank, row * width + left, row * width + right);
      }
      return;
    }
    const side = SIDES[level];
    const start = (slot % IN_SHEET) * side * side;
    const steps = this.stepsOf(side, size);
    for (let row = top; row < bottom; row++) {
      const from = start + steps[row - y] * side;
      let to = row * width + left;
      for (let k = left - x; k < right - x; k++, to++) pixels[to] = tiles[from + steps[k]];
    }
  }
}

/** Pixels that are drawn with a script and then shown on a canvas. */
export class Frame {
  constructor() {
    this.canvas = document.createElement("canvas");
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.width = 0;
    this.height = 0;
    this.image = new ImageData(1, 1);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  resize(/** @type {number} */ width, /** @type {number} */ height) {
    if (width === this.width && height === this.height) return;
    [this.width, this.height] = [width, height];
    this.image = new ImageData(Math.max(1, width), Math.max(1, height));
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  /** Shows the pixels of some rows on the canvas of this frame. */
  show(top = 0, bottom = this.image.height) {
    const { canvas, image } = this;
    if (canvas.width !== image.width || canvas.height !== image.height) {
      [canvas.width, canvas.height] = [image.width, image.height];
      [top, bottom] = [0, image.height];
    }
    this.context.putImageData(image, 0, 0, 0, top, image.width, bottom - top);
  }
}
