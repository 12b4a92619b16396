// Draws the pictures of a wall that changes. At rest and small, they are one picture of the whole
// wall; on their way, plain pixels if there are many; else each is drawn from the best there is.
import { Atlas, LARGE, MOST_PICTURES, SMALL } from "../shared/atlas.js";
import { Chunks, LEAST_CHUNKED, MOST_CHUNKED } from "./chunks.js";
import { Places } from "./animate.js";
import { Frame, pixelOf } from "../shared/pixels.js";

/** @typedef {import("../shared/album.js").Album} Album */
/** @typedef {import("../../../images/page/view.js").View} View */

const MOST_BASE = 4.5e6; // pixels of all cells together
const MOST_DRAWN = 3000; // pictures that are drawn one by one

export class Tiles {
  /**
   * @param {Album} album
   * @param {() => void} changed called when there is more to draw
   */
  constructor(album, changed) {
    this.album = album;
    this.changed = changed;
    this.places = new Places();
    this.atlas = this.newAtlas();
    this.paper = pixelOf("#ffffff");
    this.blankColor = "#dddddd"; // of pictures that are not there yet
    this.blank = pixelOf(this.blankColor);
    this.chunks = new Chunks();
    this.base = new Frame(); // the whole wall in small pixels
    this.window = new Frame(); // what is in sight while pictures glide
    this.side = SMALL; // pixels of a cell in the base
    /** @type {Int32Array} cell of the base that shows a picture, or -1 */
    this.inBase = new Int32Array();
    this.baseColumns = 1;
    this.stale = true; // whether the base has to be painted again
    /** @type {Set<number>} sheets that have come since it was painted */
    this.fresh = new Set();
    this.complete = false; // whether all that is in sight was drawn as sharp as can be
  }

  get moving() {
    return this.places.moving;
  }

  /** Forgets all pictures, when slots may hold others. */
  forget() {
    this.atlas = this.newAtlas();
    this.stale = true;
  }

  newAtlas() {
    return new Atlas(this.album, (sheets) => {
      for (const sheet of sheets) this.fresh.add(sheet);
      this.changed();
    });
  }

  setColors(/** @type {string} */ paper, /** @type {string} */ blank) {
    this.paper = pixelOf(paper);
    this.blankColor = blank;
    this.blank = pixelOf(blank);
    this.stale = true;
  }

  /**
   * Takes the arrangement of the album; pictures glide from where they were.
   * @param {View} before the window as it was
   * @param {View} view as it is now
   * @param {import("./animate.js").Dropped | null} dropped a picture that comes from elsewhere
   */
  arrange(before, view, dropped = null) {
    const { cells, columns, total } = this.album;
    this.places.arrange(cells, Math.max(1, columns), total, before, view, dropped);
    this.stale = true;
    this.changed();
  }

  /** @param {CanvasRenderingContext2D} context @param {View} view */
  draw(context, view) {
    const { atlas, places } = this;
    places.settle();
    atlas.wantSmall();
    context.imageSmoothingEnabled = true;
    context.imageSmoothingQuality = "medium";
    const { left, right, top, bottom } = view.inSight();
    const n = (right - left) * (bottom - top);
    if (!places.moving) this.paintBase();
    // The base of a very large wall is too coarse to be enlarged.
    const coarse = this.side < SMALL && view.cellDots > this.side * 1.2;
    if (!places.moving && !coarse) this.drawBase(context, view);
    else if (!places.moving || n > MOST_DRAWN) this.drawPixels(context, view);
    if (n > MOST_DRAWN || (!places.moving && view.cellDots < SMALL * 1.15)) {
      atlas.want(new Set(), []);
      this.complete = !places.moving && atlas.idle;
    } else if (!places.moving && this.isChunked(view)) {
      this.complete = this.drawChunks(context, view) && atlas.idle;
    } else this.complete = this.drawSharp(context, view, n) && atlas.idle;
  }

  isChunked(/** @type {View} */ view) {
    return view.cellDots >= LEAST_CHUNKED && view.cellDots <= MOST_CHUNKED;
  }

  drawChunks(/** @type {CanvasRenderingContext2D} */ context, /** @type {View} */ view) {
    const { wanted, complete, more } = this.chunks.draw(context, view, this.places, this.atlas);
    this.atlas.want(wanted, []);
    if (more) this.changed(); // the rest in the next frame
    return complete;
  }

  /** Paints the whole wall in small pixels, as far as it changed. */
  paintBase() {
    if (!this.stale && !this.fresh.size) return;
    const { base, atlas, stale, fresh } = this;
    const { cells, columns } = this.places;
    const { inSheet, total } = this.album;
    if (stale) {
      this.side = SMALL;
      while (cells.length * this.side ** 2 > MOST_BASE && this.side > 2) this.side /= 2;
      base.resize(columns * this.side, Math.ceil(cells.length / columns) * this.side);
      base.pixels.fill(this.blank); // where there is no picture, the marks cover it
      this.inBase = new Int32Array(total).fill(-1);
      this.chunks.clear();
      this.baseColumns = columns;
    }
    const { side } = this;
    let [top, bottom] = stale ? [0, base.height] : [Infinity, 0];
    for (let cell = 0; cell < cells.length; cell++) {
      const slot = cells[cell];
      if (slot < 0 || (!stale && !fresh.has(Math.floor(slot / inSheet)))) continue;
      if (!atlas.hasSmall(slot)) continue;
      const [x, y] = [(cell % columns) * side, Math.floor(cell / columns) * side];
      atlas.pixels.copy(base, slot, x, y, side, this.blank);
      this.inBase[slot] = cell;
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y + side)];
    }
    if (top < bottom) base.show(top, bottom);
    this.stale = false;
    fresh.clear();
  }

  drawBase(/** @type {CanvasRenderingContext2D} */ context, /** @type {View} */ view) {
    const { left, top, right, bottom } = view.inSight();
    if (right <= left || bottom <= top) return;
    const [x, y, side] = [view.edgeX(left), view.edgeY(top), this.side];
    const [width, height] = [view.edgeX(right) - x, view.edgeY(bottom) - y];
    const [across, down] = [(right - left) * side, (bottom - top) * side];
    const { canvas } = this.base;
    context.drawImage(canvas, left * side, top * side, across, down, x, y, width, height);
  }

  /** Draws many pictures, on their way or at rest. */
  drawPixels(/** @type {CanvasRenderingContext2D} */ context, /** @type {View} */ view) {
    const { window, atlas, paper } = this;
    window.resize(context.canvas.width, context.canvas.height);
    window.pixels.fill(paper);
    const scale = view.cellDots;
    const [left, top] = [view.x / view.tileWidth, view.y / view.tileHeight];
    const { moving } = this.places;
    const side = moving ? this.places.size() * scale - gapOf(view) : Math.ceil(scale);
    const size = Math.max(1, Math.round(side));
    this.places.each((slot, row, column) => {
      const [x, y] = [Math.round((column - left) * scale), Math.round((row - top) * scale)];
      const shown = atlas.hasSmall(slot) ? slot : -1;
      atlas.pixels.copy(window, shown, x, y, size, this.blank);
    });
    context.putImageData(window.image, 0, 0);
  }

  /**
   * Draws pictures one by one; over the base where they are at rest.
   * @param {CanvasRenderingContext2D} context
   * @param {View} view
   * @param {number} n how many are in sight
   */
  drawSharp(context, view, n) {
    const { atlas, album } = this;
    const { moving } = this.places;
    const close = view.cellDots > LARGE * 1.2 && n <= MOST_PICTURES;
    /** @type {Set<number>} */
    const sheets = new Set();
    /** @type {string[]} */
    const pictures = [];
    let all = true;
    this.eachInSight(view, (slot, x, y, width, height) => {
      if (!album.ready[slot]) {
        if (moving) this.drawRough(context, slot, x, y, width);
        return;
      }
      const from = atlas.draw(context, slot, x, y, width, height);
      if (!from && moving) this.drawRough(context, slot, x, y, width);
      if (from !== "picture") sheets.add(Math.floor(slot / album.inSheet));
      if (close && from !== "picture") pictures.push(String(slot));
      if (!from || (close && from !== "picture")) all = false;
    });
    atlas.want(sheets, pictures);
    return all;
  }

  /**
   * @param {View} view
   * @param {(slot: number, x: number, y: number, width: number, height: number) => void} use
   */
  eachInSight(view, use) {
    const { places } = this;
    if (!places.moving) {
      const range = view.inSight();
      for (let row = range.top; row < range.bottom; row++) {
        for (let column = range.left; column < range.right; column++) {
          const slot = places.cells[row * places.columns + column];
          if (slot < 0) continue;
          const [x, y] = [view.edgeX(column), view.edgeY(row)];
          use(slot, x, y, view.edgeX(column + 1) - x, view.edgeY(row + 1) - y);
        }
      }
      return;
    }
    const side = places.size() * view.cellDots - gapOf(view);
    places.each((slot, row, column) => {
      const { x, y } = view.screenOf(row, column);
      const [left, top] = [x * view.dots, y * view.dots];
      if (left > -side && top > -side && x < view.width && y < view.height) {
        use(slot, left, top, side, side);
      }
    });
  }

  /**
   * Draws a picture as it is in the base, or a plain square.
   * @param {CanvasRenderingContext2D} context
   * @param {number} slot
   * @param {number} x
   * @param {number} y
   * @param {number} size
   */
  drawRough(context, slot, x, y, size) {
    const cell = this.inBase[slot] ?? -1;
    const { side, baseColumns } = this;
    if (cell >= 0) {
      const [left, top] = [(cell % baseColumns) * side, Math.floor(cell / baseColumns) * side];
      context.drawImage(this.base.canvas, left, top, side, side, x, y, size, size);
    } else {
      context.fillStyle = this.blankColor;
      context.fillRect(x, y, size, size);
    }
  }

  /**
   * Draws a picture anywhere: what is carried.
   * @param {CanvasRenderingContext2D} context
   * @param {number} slot
   * @param {number} x
   * @param {number} y
   * @param {number} size
   */
  drawOne(context, slot, x, y, size) {
    if (!this.atlas.draw(context, slot, x, y, size, size)) {
      this.drawRough(context, slot, x, y, size);
    }
  }
}

/** Device pixels between pictures on their way, as between those at rest. */
function gapOf(/** @type {View} */ view) {
  return view.cellDots < 10 ? 0 : Math.max(1, Math.round(view.cellDots * 0.03));
}
