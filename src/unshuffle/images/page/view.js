// What part of a wall a window shows, in three units: cells, world (pixels of the finest sheets)
// and screen (CSS pixels; `dots` device pixels each).

/**
 * @typedef {object} Range Cells in sight; `right` and `bottom` are one past the last.
 * @property {number} left
 * @property {number} top
 * @property {number} right
 * @property {number} bottom
 */

/** @param {number} value @param {number} low @param {number} high */
export function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

const MARGIN = 24; // screen pixels around a wall that is fitted into the window
const MOST_FITTED = 4; // a small wall is not enlarged beyond this

export class View {
  /**
   * @param {number} rows
   * @param {number} columns
   * @param {number} tileWidth width of a cell in the world
   * @param {number} tileHeight
   * @param {number} largest width of a cell on the screen at the closest zoom
   */
  constructor(rows, columns, tileWidth, tileHeight, largest) {
    this.rows = rows;
    this.columns = columns;
    this.tileWidth = tileWidth;
    this.tileHeight = tileHeight;
    this.largest = largest;
    this.x = 0; // world coordinates of the window's upper left corner
    this.y = 0;
    this.scale = 1; // screen pixels for each pixel of the world
    this.width = 1; // of the window, on the screen
    this.height = 1;
    this.dots = 1;
    this.fitted = true;
    this.foot = 0; // screen pixels at the bottom that a fitted wall leaves free
  }

  get worldWidth() {
    return this.columns * this.tileWidth;
  }

  get worldHeight() {
    return this.rows * this.tileHeight;
  }

  /** Width of a cell in device pixels. */
  get cellDots() {
    return this.tileWidth * this.scale * this.dots;
  }

  /** @param {number} width @param {number} height @param {number} dots */
  resize(width, height, dots) {
    this.width = Math.max(1, width);
    this.height = Math.max(1, height);
    this.dots = dots;
    if (this.fitted) this.fit();
    else this.keepInSight();
  }

  /** Takes another number of rows and columns; the window stays where it is if it was moved. */
  reshape(/** @type {number} */ rows, /** @type {number} */ columns) {
    [this.rows, this.columns] = [rows, columns];
    if (this.fitted) this.fit();
    else this.keepInSight();
  }

  fitScale() {
    const across = (this.width - 2 * MARGIN) / this.worldWidth;
    const down = (this.height - 2 * MARGIN - this.foot) / this.worldHeight;
    return Math.max(1e-4, Math.min(across, down));
  }

  /** Shows the whole wall. */
  fit() {
    this.scale = Math.min(this.fitScale(), MOST_FITTED, this.mostScale());
    this.x = this.worldWidth / 2 - this.width / this.scale / 2;
    this.y = this.worldHeight / 2 - (this.height - this.foot) / this.scale / 2;
    this.fitted = true;
  }

  mostScale() {
    const window = Math.min(this.width / this.tileWidth, this.height / this.tileHeight);
    // A wall of one picture may fill the window, a cell of a large one may not hide all others.
    return Math.max(Math.min(this.largest / this.tileWidth, window), Math.min(this.fitScale(), 1));
  }

  /** The center of the window stays on the wall, so that some of it is always visible. */
  keepInSight() {
    const width = this.width / this.scale;
    const height = this.height / this.scale;
    this.x = clamp(this.x, -width / 2, this.worldWidth - width / 2);
    this.y = clamp(this.y, -height / 2, this.worldHeight - height / 2);
  }

  /** @param {number} factor @param {number} x @param {number} y a point that stays in place */
  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const least = Math.min(this.fitScale() / 2, 1);
    const scale = clamp(this.scale * factor, least, this.mostScale());
    this.x += x / this.scale - x / scale;
    this.y += y / this.scale - y / scale;
    this.scale = scale;
    this.fitted = false;
    this.keepInSight();
  }

  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.fitted = false;
    this.keepInSight();
  }

  /** Device pixel of the left edge of a column; whole, so that cells meet without seams. */
  edgeX(/** @type {number} */ column) {
    return Math.round((column * this.tileWidth - this.x) * this.scale * this.dots);
  }

  edgeY(/** @type {number} */ row) {
    return Math.round((row * this.tileHeight - this.y) * this.scale * this.dots);
  }

  /** @returns {Range} */
  inSight() {
    const right = (this.x + this.width / this.scale) / this.tileWidth;
    const bottom = (this.y + this.height / this.scale) / this.tileHeight;
    return {
      left: clamp(Math.floor(this.x / this.tileWidth), 0, this.columns),
      top: clamp(Math.floor(this.y / this.tileHeight), 0, this.rows),
      right: clamp(Math.ceil(right), 0, this.columns),
      bottom: clamp(Math.ceil(bottom), 0, this.rows),
    };
  }

  /** Row and column, with fractions, at a point of the screen. */
  placeAt(/** @type {number} */ x, /** @type {number} */ y) {
    return {
      column: (x / this.scale + this.x) / this.tileWidth,
      row: (y / this.scale + this.y) / this.tileHeight,
    };
  }

  /** Screen coordinates of a place in rows and columns. */
  screenOf(/** @type {number} */ row, /** @type {number} */ column) {
    return {
      x: (column * this.tileWidth - this.x) * this.scale,
      y: (row * this.tileHeight - this.y) * this.scale,
    };
  }
}
