// What is drawn over the pictures of a wall: dimmed and framed cells, selections, rings, labels.
import { clamp } from "./view.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {{text: string, row: number, column: number, size: number}} Region */

/**
 * @typedef {object} Colors of the page, as CSS writes them
 * @property {string} paper
 * @property {string} ink
 * @property {string} mark
 * @property {string} [hole] of cells that hold nothing but could; as the paper if left out
 */

/** The colors that the page has now: they change when the system turns dark. */
export function readColors() {
  const style = getComputedStyle(document.documentElement);
  const color = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return { paper: color("--paper"), ink: color("--ink"), mark: color("--mark") };
}

const DIMMED = 0.86; // share of the background over a dimmed cell
const TINTED = 0.5;
const LEAST_FRAMED = 16; // device pixels of a cell that can carry a frame; smaller ones are tinted
const LEAST_GAPPED = 10;
const EDGE = 4; // screen pixels between a label and the edge of the window
const APART = 4; // half the least distance of two labels
const LARGEST_LABELED = 150; // screen pixels of a cell above which labels would hide pictures

/** Colors of groups, also for the color-blind; further groups share the last one. */
export const GROUP_COLORS = [
  ...["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#44bb99"],
  ...["#bbcc33", "#7755cc", "#999999"],
];

export function groupColor(/** @type {number} */ group) {
  return GROUP_COLORS[Math.min(group, GROUP_COLORS.length - 1)];
}

function channels(/** @type {string} */ color) {
  const found = color.match(/[\da-f]{2}/gi) ?? ["80", "80", "80"];
  return found.slice(0, 3).map((pair) => parseInt(pair, 16));
}

/** A picture with one pixel for each cell, drawn over the wall in one go at any zoom. */
class CellLayer {
  constructor(/** @type {number} */ rows, /** @type {number} */ columns) {
    this.canvas = document.createElement("canvas");
    this.canvas.width = columns;
    this.canvas.height = rows;
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.empty = true;
  }

  /** @param {((cell: number) => number) | null} paint color of a cell as 0xAABBGGRR, 0 for none */
  fill(paint) {
    this.empty = true;
    if (!paint) return;
    const image = this.context.createImageData(this.canvas.width, this.canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    for (let cell = 0; cell < pixels.length; cell++) {
      pixels[cell] = paint(cell);
      if (pixels[cell]) this.empty = false;
    }
    this.context.putImageData(image, 0, 0);
  }

  draw(/** @type {CanvasRenderingContext2D} */ context, /** @type {View} */ view) {
    if (this.empty) return;
    const { left, top, right, bottom } = view.inSight();
    if (right <= left || bottom <= top) return;
    context.imageSmoothingEnabled = view.cellDots < 1;
    const [x, y] = [view.edgeX(left), view.edgeY(top)];
    const [width, height] = [view.edgeX(right) - x, view.edgeY(bottom) - y];
    context.drawImage(this.canvas, left, top, right - left, bottom - top, x, y, width, height);
    context.imageSmoothingEnabled = true;
  }
}

/** A place as near as can be to another one, at least `half` from both ends; null if there is none. */
function within(
  /** @type {number} */ place,
  /** @type {number} */ half,
  /** @type {number} */ low,
  /** @type {number} */ high,
) {
  return high - low < 2 * half ? null : clamp(place, low + half, high - half);
}

function packed(/** @type {string} */ color, /** @type {number} */ alpha) {
  const [red, green, blue] = channels(color);
  return ((Math.round(alpha * 255) << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

export class Marks {
  /**
   * @param {number} rows
   * @param {number} columns
   * @param {Int32Array} cells
   */
  constructor(rows, columns, cells) {
    this.rows = rows;
    this.columns = columns;
    this.cells = cells;
    this.cover = new CellLayer(rows, columns);
    this.tint = new CellLayer(rows, columns);
    this.chosen = new CellLayer(rows, columns);
    this.gliding = false; // while pictures are between cells, they are dimmed where they are drawn
    /** @type {Colors} */
    this.colors = { paper: "#ffffff", ink: "#000000", mark: "#008800" };
    /** @type {Uint8Array | null} items that are not dimmed; null for all */
    this.kept = null;
    /** @type {Set<number> | null} items that get rings though no other is dimmed */
    this.ringed = null;
    /** @type {number[]} cells of a few items that get rings: those, or the kept ones */
    this.few = [];
    /** @type {Uint16Array | null} group of each item, for frames */
    this.groups = null;
    /** @type {Uint8Array | null} */
    this.selected = null;
    /** @type {Region[]} */
    this.regions = [];
    this.shownLabels = 0;
  }

  /**
   * Takes another arrangement; `repaint` has to follow.
   * @param {number} rows
   * @param {number} columns
   * @param {Int32Array} cells
   */
  arrange(rows, columns, cells) {
    this.cells = cells;
    if (rows === this.rows && columns === this.columns) return;
    [this.rows, this.columns] = [rows, columns];
    this.cover = new CellLayer(rows, columns);
    this.tint = new CellLayer(rows, columns);
    this.chosen = new CellLayer(rows, columns);
  }

  /** Repaints what depends on colors, items that are kept and groups. */
  repaint() {
    const { cells, kept, groups, selected } = this;
    const empty = packed(this.colors.paper, 1);
    const hole = packed(this.colors.hole ?? this.colors.paper, 1);
    const dim = packed(this.colors.paper, DIMMED);
    this.cover.fill((cell) => {
      const item = cells[cell];
      if (item < 0) return item === -1 ? hole : empty;
      return kept && !kept[item] ? dim : 0;
    });
    const tints = GROUP_COLORS.map((color) => packed(color, TINTED));
    const tint = (/** @type {number} */ cell) => {
      const item = cells[cell];
      if (!groups || item < 0 || (kept && !kept[item])) return 0;
      return tints[Math.min(groups[item], tints.length - 1)];
    };
    this.tint.fill(groups && tint);
    const mark = packed(this.colors.mark, TINTED);
    const chosen = (/** @type {number} */ cell) => (selected && selected[cells[cell]] ? mark : 0);
    this.chosen.fill(selected && chosen);
    this.few = [];
    const { ringed } = this;
    if (!kept && !ringed) return;
    const rings = (/** @type {number} */ item) => (ringed ? ringed.has(item) : kept?.[item]);
    for (let cell = 0; cell < cells.length && this.few.length <= 300; cell++) {
      if (cells[cell] >= 0 && rings(cells[cell])) this.few.push(cell);
    }
    // Zoomed out, a few cells among thousands are invisible without a ring; many are not.
    if (this.few.length > 300) this.few = [];
  }

  draw(/** @type {CanvasRenderingContext2D} */ context, /** @type {View} */ view) {
    if (this.gliding) return;
    const large = view.cellDots >= LEAST_FRAMED;
    this.cover.draw(context, view);
    if (!large) {
      this.tint.draw(context, view);
      this.chosen.draw(context, view);
    }
    this.drawGaps(context, view);
    if (large) this.drawFrames(context, view);
    for (const cell of this.few) {
      // Beside pictures in full color, a ring needs an edge.
      if (this.ringed) this.ring(context, view, cell, this.colors.paper, 6);
      this.ring(context, view, cell, this.colors.mark, this.ringed ? 3.5 : 1.5);
    }
  }

  drawGaps(/** @type {CanvasRenderingContext2D} */ context, /** @type {View} */ view) {
    const side = Math.min(view.tileWidth, view.tileHeight) * view.scale * view.dots;
    if (side < LEAST_GAPPED) return;
    const gap = Math.max(1, Math.round(side * 0.03));
    const before = Math.floor(gap / 2);
    const range = view.inSight();
    const [left, right] = [view.edgeX(range.left), view.edgeX(range.right)];
    const [top, bottom] = [view.edgeY(range.top), view.edgeY(range.bottom)];
    context.fillStyle = this.colors.paper;
    for (let column = range.left; column <= range.right; column++) {
      context.fillRect(view.edgeX(column) - before, top, gap, bottom - top);
    }
    for (let row = range.top; row <= range.bottom; row++) {
      context.fillRect(left, view.edgeY(row) - before, right - left, gap);
    }
  }

  drawFrames(/** @type {CanvasRenderingContext2D} */ context, /** @type {View} */ view) {
    const { cells, groups, kept, selected } = this;
    if (!groups && !selected) return;
    const width = Math.max(1, Math.round(view.cellDots * 0.06));
    const range = view.inSight();
    /** @type {Map<string, Path2D>} */
    const paths = new Map();
    for (let row = range.top; row < range.bottom; row++) {
      for (let column = range.left; column < range.right; column++) {
        const item = cells[row * this.columns + column];
        if (item < 0) continue;
        const isSelected = selected && selected[item];
        if (!isSelected && (!groups || (kept && !kept[item]))) continue;
        const color = isSelected ? this.colors.mark : groupColor(groups ? groups[item] : 0);
        const [left, top] = [view.edgeX(column), view.edgeY(row)];
        const [right, bottom] = [view.edgeX(column + 1), view.edgeY(row + 1)];
        let path = paths.get(color);
        if (!path) paths.set(color, (path = new Path2D()));
        const inset = width / 2 + 1;
        path.rect(left + inset, top + inset, right - left - 2 * inset, bottom - top - 2 * inset);
      }
    }
    for (const [color, path] of paths) {
      context.lineWidth = color === this.colors.mark ? width * 1.6 : width;
      context.strokeStyle = color;
      context.stroke(path);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {View} view
   * @param {number} cell
   * @param {string} color
   * @param {number} width
   */
  ring(context, view, cell, color, width) {
    const [row, column] = [Math.floor(cell / this.columns), cell % this.columns];
    const [left, top] = [view.edgeX(column), view.edgeY(row)];
    const [right, bottom] = [view.edgeX(column + 1), view.edgeY(row + 1)];
    // Zoomed out, a cell is a dot; the ring stays large enough to see.
    const room = Math.max(0, 5 * view.dots - (right - left) / 2);
    context.lineWidth = width * view.dots;
    context.strokeStyle = color;
    context.strokeRect(left - room, top - room, right - left + 2 * room, bottom - top + 2 * room);
  }

  /** Writes the names of regions that have room for them, the largest first. */
  drawLabels(/** @type {CanvasRenderingContext2D} */ context, /** @type {View} */ view) {
    this.shownLabels = 0;
    if (view.tileWidth * view.scale > LARGEST_LABELED) return;
    /** @type {{left: number, top: number, right: number, bottom: number}[]} */
    const taken = [];
    const [first, last] = [view.screenOf(0, 0), view.screenOf(this.rows, this.columns)];
    const [left, right] = [Math.max(0, first.x), Math.min(view.width, last.x)];
    const [top, bottom] = [Math.max(0, first.y), Math.min(view.height, last.y)];
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    for (const region of this.regions) {
      const across = region.size * view.tileWidth * view.scale;
      if (across < 24) break;
      const side = Math.min(Math.max(across / 7, 11), 30);
      context.font = `600 ${side * view.dots}px system-ui, sans-serif`;
      const text = region.text.length > 40 ? region.text.slice(0, 39) + "\u2026" : region.text;
      const width = context.measureText(text).width / view.dots;
      if (width > across * 1.6) continue;
      const { x: middle, y: center } = view.screenOf(region.row, region.column);
      // Near an edge of the wall or of the window, a label moves inward; one that does not fit there
      // is left out.
      const away = middle < 0 || center < 0 || middle > view.width || center > view.height;
      const [halfWidth, halfHeight] = [width / 2 + side / 4, side * 0.8];
      const x = within(middle, halfWidth + EDGE, left, right);
      const y = within(center, halfHeight + EDGE, top, bottom);
      if (away || x === null || y === null) continue;
      const box = {
        left: x - halfWidth - APART,
        right: x + halfWidth + APART,
        top: y - halfHeight - APART,
        bottom: y + halfHeight + APART,
      };
      const hits = (/** @type {typeof box} */ other) =>
        box.left < other.right &&
        box.right > other.left &&
        box.top < other.bottom &&
        box.bottom > other.top;
      if (taken.some(hits)) continue;
      taken.push(box);
      context.lineWidth = Math.max(3, side / 4.5) * view.dots;
      context.strokeStyle = this.colors.paper;
      context.fillStyle = this.colors.ink;
      context.strokeText(text, x * view.dots, y * view.dots);
      context.fillText(text, x * view.dots, y * view.dots);
      this.shownLabels++;
    }
  }
}
