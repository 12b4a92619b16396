// Where the pictures of a wall are: in their cells, or on their way from where they were.

/** @typedef {import("../../../images/page/view.js").View} View */

const DURATION = 500; // milliseconds

/**
 * @typedef {object} Glide
 * @property {Float32Array} rows where each picture comes from, in rows of the new wall
 * @property {Float32Array} columns NaN for pictures that were not there
 * @property {number} growth size that they had, in cells
 * @property {number} start
 */

/** @typedef {{item: number, at: {x: number, y: number}}} Dropped a picture, and where on the screen */

/** Whether the system asks for no animation. */
function still() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

export class Places {
  constructor() {
    /** @type {Int32Array} picture in each cell; negative if there is none */
    this.cells = new Int32Array();
    this.columns = 1;
    /** @type {Glide | null} */
    this.glide = null;
  }

  get moving() {
    return this.glide !== null;
  }

  /** Ends what has arrived. */
  settle() {
    if (this.progress() >= 1) this.glide = null;
  }

  /**
   * Takes another arrangement, or another window on the same one.
   * @param {Int32Array} cells
   * @param {number} columns
   * @param {number} n pictures
   * @param {View} before the window as it was
   * @param {View} view as it is now
   * @param {Dropped | null} dropped a picture that comes from elsewhere
   */
  arrange(cells, columns, n, before, view, dropped) {
    const glide = still() ? null : this.start(cells, n, before, view, dropped);
    [this.cells, this.columns, this.glide] = [cells, columns, glide];
  }

  /**
   * Where pictures are now, seen through a new window; null if none of them will move.
   * @param {Int32Array} cells
   * @param {number} n
   * @param {View} before
   * @param {View} view
   * @param {Dropped | null} dropped
   * @returns {Glide | null}
   */
  start(cells, n, before, view, dropped) {
    const [rows, columns] = [new Float32Array(n).fill(NaN), new Float32Array(n).fill(NaN)];
    this.each((slot, row, column) => {
      if (slot >= n) return;
      const { x, y } = before.screenOf(row, column);
      const place = view.placeAt(x, y);
      [rows[slot], columns[slot]] = [place.row, place.column];
    });
    if (dropped) {
      const place = view.placeAt(dropped.at.x, dropped.at.y);
      [rows[dropped.item], columns[dropped.item]] = [place.row - 0.5, place.column - 0.5];
    }
    const growth = (this.size() * before.scale) / view.scale;
    let moves = false;
    for (let cell = 0; cell < cells.length && !moves; cell++) {
      const slot = cells[cell];
      if (slot < 0 || Number.isNaN(rows[slot])) continue; // a new one just appears
      if (Math.abs(growth - 1) > 1e-3) moves = true;
      const [row, column] = [Math.floor(cell / view.columns), cell % view.columns];
      if (Math.abs(rows[slot] - row) + Math.abs(columns[slot] - column) > 1e-3) moves = true;
    }
    return moves ? { rows, columns, growth, start: performance.now() } : null;
  }

  /** Share of the way that pictures have gone: quick at first, 1 at the end. */
  progress() {
    if (!this.glide) return 1;
    const t = Math.min(1, (performance.now() - this.glide.start) / DURATION);
    return 1 - (1 - t) ** 3;
  }

  /** Size of the pictures now, in cells. */
  size() {
    return this.glide ? this.glide.growth + (1 - this.glide.growth) * this.progress() : 1;
  }

  /** @param {(slot: number, row: number, column: number) => void} use */
  each(use) {
    const { cells, columns, glide } = this;
    const done = this.progress();
    for (let cell = 0; cell < cells.length; cell++) {
      const slot = cells[cell];
      if (slot < 0) continue;
      let row = Math.floor(cell / columns);
      let column = cell % columns;
      if (glide && slot < glide.rows.length && !Number.isNaN(glide.rows[slot])) {
        row = glide.rows[slot] + (row - glide.rows[slot]) * done;
        column = glide.columns[slot] + (column - glide.columns[slot]) * done;
      }
      use(slot, row, column);
    }
  }
}
