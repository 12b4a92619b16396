// Pictures at rest, drawn once for many frames: squares of the wall at a size between small and
// large, which move and zoom as one picture each.

/** @typedef {import("../shared/atlas.js").Atlas} Atlas */
/** @typedef {import("./animate.js").Places} Places */
/** @typedef {import("../../../images/page/view.js").View} View */

/**
 * @typedef {object} Chunk
 * @property {HTMLCanvasElement} canvas
 * @property {Set<number>} missing sheets that were not there when it was drawn
 * @property {number} age number of sheets that had come by then
 */

const SIDE = 32; // pixels of a picture
const ACROSS = 8; // pictures in a row of a chunk
const MOST_CHUNKS = 160;
const AT_ONCE = 3; // chunks that are drawn in one frame

export const LEAST_CHUNKED = 18; // device pixels of a cell
export const MOST_CHUNKED = 45;

export class Chunks {
  constructor() {
    /** @type {Map<number, Chunk>} by place, in order of their last use */
    this.chunks = new Map();
  }

  /** Forgets all, when other pictures hang there. */
  clear() {
    this.chunks.clear();
  }

  /**
   * Draws what is in sight and there; what is missing shows through. Returns the sheets that are
   * wanted, and whether all is sharp.
   * @param {CanvasRenderingContext2D} context
   * @param {View} view
   * @param {Places} places
   * @param {Atlas} atlas
   */
  draw(context, view, places, atlas) {
    const { left, top, right, bottom } = view.inSight();
    /** @type {Set<number>} */
    const wanted = new Set();
    let [complete, budget] = [true, AT_ONCE];
    for (let row = Math.floor(top / ACROSS); row * ACROSS < bottom; row++) {
      for (let column = Math.floor(left / ACROSS); column * ACROSS < right; column++) {
        const key = row * 65536 + column;
        let chunk = this.chunks.get(key);
        const old = chunk && chunk.missing.size > 0 && chunk.age !== atlas.nLarge;
        if ((!chunk || old) && budget > 0) {
          budget--;
          chunk = this.paint(row, column, places, atlas);
        }
        if (!chunk) {
          complete = false;
          continue;
        }
        this.chunks.delete(key);
        this.chunks.set(key, chunk);
        for (const sheet of chunk.missing) wanted.add(sheet);
        if (chunk.missing.size) complete = false;
        const [x, y] = [view.edgeX(column * ACROSS), view.edgeY(row * ACROSS)];
        const width = view.edgeX((column + 1) * ACROSS) - x;
        const height = view.edgeY((row + 1) * ACROSS) - y;
        context.drawImage(chunk.canvas, x, y, width, height);
      }
    }
    for (const key of this.chunks.keys()) {
      if (this.chunks.size <= MOST_CHUNKS) break;
      this.chunks.delete(key);
    }
    return { wanted, complete, more: budget === 0 };
  }

  /**
   * @param {number} row
   * @param {number} column
   * @param {Places} places
   * @param {Atlas} atlas
   * @returns {Chunk}
   */
  paint(row, column, places, atlas) {
    const { cells, columns } = places;
    const { album } = atlas;
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = ACROSS * SIDE;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.imageSmoothingQuality = "medium";
    /** @type {Set<number>} */
    const missing = new Set();
    for (let k = 0; k < ACROSS * ACROSS; k++) {
      const [down, across] = [Math.floor(k / ACROSS), k % ACROSS];
      if (column * ACROSS + across >= columns) continue;
      const slot = cells[(row * ACROSS + down) * columns + column * ACROSS + across] ?? -1;
      if (slot < 0) continue;
      const drawn =
        album.ready[slot] && atlas.draw(context, slot, across * SIDE, down * SIDE, SIDE, SIDE);
      if (!drawn) missing.add(Math.floor(slot / album.inSheet));
    }
    return { canvas, missing, age: atlas.nLarge };
  }
}
