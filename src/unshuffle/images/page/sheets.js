// The pictures of a wall: sheets of a pyramid, of which only those in sight are loaded, and each
// picture by itself at the closest zoom.

/**
 * @typedef {object} Level One size of the whole wall, cut into sheets.
 * @property {number} width of a cell in a sheet, in pixels
 * @property {number} height
 * @property {number} rows cells in a sheet, from top to bottom
 * @property {number} columns
 */

/**
 * @typedef {object} Source Where pictures and data come from.
 * @property {(level: number, row: number, column: number) => string} sheet address of a sheet
 * @property {(item: number) => Promise<string>} picture address of a larger picture
 * @property {(name: string) => Promise<any>} read a named part of the data
 */

const AT_ONCE = 4; // pictures that load at the same time
const WAIT_TO_RETRY = 4000;

/**
 * A picture as pixels, whose memory is freed when it is closed. Decoded once, by createImageBitmap:
 * what image.decode() decodes stays in a cache of the browser for minutes.
 */
export async function loadBitmap(/** @type {string} */ address) {
  const image = new Image();
  await new Promise((resolve, reject) => {
    image.onload = resolve;
    image.onerror = reject;
    image.src = address;
  });
  const bitmap = await createImageBitmap(image);
  image.src = "";
  return bitmap;
}

/**
 * Draws the largest central part of a picture that fills a cell, as in the sheets.
 * @param {CanvasRenderingContext2D} context
 * @param {ImageBitmap} image
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 */
export function drawMiddle(context, image, x, y, width, height) {
  const part = Math.min(image.width / width, image.height / height);
  const [across, down] = [part * width, part * height];
  const [left, top] = [(image.width - across) / 2, (image.height - down) / 2];
  context.drawImage(image, left, top, across, down, x, y, width, height);
}

/** Pictures that are loaded when they are first wanted; the least recently used ones are let go. */
export class ImageCache {
  /**
   * @param {(key: string) => string | Promise<string>} address
   * @param {number} mostPixels
   * @param {() => void} changed called when a picture has come
   */
  constructor(address, mostPixels, changed) {
    this.address = address;
    this.mostPixels = mostPixels;
    this.changed = changed;
    /** @type {Map<string, ImageBitmap>} in order of their last use */
    this.ready = new Map();
    /** @type {Set<string>} */
    this.loading = new Set();
    /** @type {Map<string, number>} keys that failed, and when */
    this.failed = new Map();
    /** @type {string[]} most wanted first */
    this.wanted = [];
    this.pixels = 0;
  }

  /** The picture, or null while it is not there. */
  get(/** @type {string} */ key) {
    const image = this.ready.get(key);
    if (!image) return null;
    this.ready.delete(key);
    this.ready.set(key, image);
    return image;
  }

  /** Replaces the list of pictures to load; what is not wanted any more is not started. */
  want(/** @type {string[]} */ keys) {
    const now = performance.now();
    this.wanted = keys.filter((key) => {
      const failed = this.failed.get(key);
      return !this.ready.has(key) && (failed === undefined || now - failed > WAIT_TO_RETRY);
    });
    this.start();
  }

  get idle() {
    return !this.wanted.length && !this.loading.size;
  }

  start() {
    while (this.loading.size < AT_ONCE) {
      const key = this.wanted.shift();
      if (key === undefined) return;
      if (!this.loading.has(key) && !this.ready.has(key)) this.load(key);
    }
  }

  async load(/** @type {string} */ key) {
    this.loading.add(key);
    try {
      const image = await loadBitmap(await this.address(key));
      this.ready.set(key, image);
      this.pixels += image.width * image.height;
      this.letGo();
    } catch {
      this.failed.set(key, performance.now());
    }
    this.loading.delete(key);
    this.start();
    this.changed();
  }

  letGo() {
    for (const [key, image] of this.ready) {
      if (this.pixels <= this.mostPixels || this.ready.size <= 1) return;
      this.ready.delete(key);
      this.pixels -= image.width * image.height;
      image.close();
    }
  }
}

export class Sheets {
  /**
   * @param {Level[]} levels finest first
   * @param {boolean} exact whether enlarged pixels keep their edges
   * @param {Source} source
   * @param {Int32Array | null} cells item in each cell, once known, for larger pictures
   * @param {() => void} changed
   */
  constructor(levels, exact, source, cells, changed) {
    this.levels = levels;
    this.exact = exact;
    this.cells = cells;
    this.hasPictures = false;
    const address = (/** @type {string} */ key) => {
      const [level, row, column] = key.split(" ").map(Number);
      return source.sheet(level, row, column);
    };
    this.sheets = new ImageCache(address, 14e6, changed);
    this.pictures = new ImageCache((key) => source.picture(Number(key)), 10e6, changed);
    // The coarsest sheets stay, to be drawn wherever finer ones are on their way.
    this.base = new ImageCache(address, 64e6, changed);
    this.complete = false; // whether all that is in sight was drawn as sharp as can be
  }

  /** The coarsest level that is as fine as the screen. */
  levelFor(/** @type {import("./view.js").View} */ view) {
    const needed = view.cellDots * 0.9; // a tenth too few pixels cannot be seen
    let level = this.levels.length - 1;
    while (level > 0 && this.levels[level].width < needed) level--;
    return level;
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {import("./view.js").View} view
   */
  draw(context, view) {
    const last = this.levels.length - 1;
    const level = this.levelFor(view);
    const smooth = !this.exact || view.cellDots < this.levels[0].width;
    context.imageSmoothingEnabled = smooth;
    context.imageSmoothingQuality = "medium";
    this.base.want(this.keysInSight(last, view));
    this.complete = this.drawLevel(context, view, last, this.base);
    if (level < last) {
      this.sheets.want(this.keysInSight(level, view));
      this.complete = this.drawLevel(context, view, level, this.sheets);
    }
    const finest = this.levels[0];
    if (this.hasPictures && this.cells && view.cellDots > finest.width * 1.1) {
      this.complete = this.drawPictures(context, view, this.cells) && this.complete;
    } else this.pictures.want([]);
    context.imageSmoothingEnabled = true;
  }

  /** Sheets of a level in sight, those in the middle first. */
  keysInSight(/** @type {number} */ level, /** @type {import("./view.js").View} */ view) {
    const { rows, columns } = this.levels[level];
    const range = view.inSight();
    if (range.right <= range.left || range.bottom <= range.top) return [];
    const middle = view.placeAt(view.width / 2, view.height / 2);
    const found = [];
    for (let row = Math.floor(range.top / rows); row * rows < range.bottom; row++) {
      for (let column = Math.floor(range.left / columns); column * columns < range.right; column++) {
        const down = (row + 0.5) * rows - middle.row;
        const across = (column + 0.5) * columns - middle.column;
        found.push({ key: `${level} ${row} ${column}`, far: Math.hypot(down, across) });
      }
    }
    found.sort((a, b) => a.far - b.far);
    return found.map((each) => each.key);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {import("./view.js").View} view
   * @param {number} level
   * @param {ImageCache} cache
   */
  drawLevel(context, view, level, cache) {
    const { rows, columns } = this.levels[level];
    let all = true;
    for (const key of this.keysInSight(level, view)) {
      const image = cache.get(key);
      if (!image) {
        all = false;
        continue;
      }
      const [, row, column] = key.split(" ").map(Number);
      const left = view.edgeX(column * columns);
      const top = view.edgeY(row * rows);
      const right = view.edgeX(Math.min((column + 1) * columns, view.columns));
      const bottom = view.edgeY(Math.min((row + 1) * rows, view.rows));
      context.drawImage(image, left, top, right - left, bottom - top);
    }
    return all;
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {import("./view.js").View} view
   * @param {Int32Array} cells
   */
  drawPictures(context, view, cells) {
    const range = view.inSight();
    const wanted = [];
    let all = true;
    for (let row = range.top; row < range.bottom; row++) {
      for (let column = range.left; column < range.right; column++) {
        const item = cells[row * view.columns + column];
        if (item < 0) continue;
        const image = this.pictures.get(String(item));
        if (!image) {
          wanted.push(String(item));
          all = false;
          continue;
        }
        const [left, top] = [view.edgeX(column), view.edgeY(row)];
        const [width, height] = [view.edgeX(column + 1) - left, view.edgeY(row + 1) - top];
        drawMiddle(context, image, left, top, width, height);
      }
    }
    this.pictures.want(wanted);
    return all;
  }

  /**
   * Draws one cell into a small canvas, when its sheet has come.
   * @param {HTMLCanvasElement} target
   * @param {number} row
   * @param {number} column
   * @param {Source} source
   */
  async drawCell(target, row, column, source) {
    let number = this.levels.length - 1;
    while (number > 0 && this.levels[number].width < target.width) number--;
    const level = this.levels[number];
    const [down, across] = [Math.floor(row / level.rows), Math.floor(column / level.columns)];
    const held = this.sheets.get(`${number} ${down} ${across}`);
    const image = held ?? (await loadBitmap(source.sheet(number, down, across)));
    const context = /** @type {CanvasRenderingContext2D} */ (target.getContext("2d"));
    context.imageSmoothingEnabled = !this.exact;
    const [x, y] = [(column % level.columns) * level.width, (row % level.rows) * level.height];
    // Enlarged, a cell would show a rim of its neighbors.
    const rim = level.width < target.width && !this.exact ? 0.5 : 0;
    const [width, height] = [level.width - 2 * rim, level.height - 2 * rim];
    context.drawImage(image, x + rim, y + rim, width, height, 0, 0, target.width, target.height);
    if (!held) image.close();
  }
}
