// A wall on a canvas: pan, zoom, hover, walk by keyboard, and select by box or lasso.
import { cellsInside, drawOutline } from "./outline.js";
import { clamp } from "./view.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {import("./marks.js").Marks} Marks */
/** @typedef {{draw: (context: CanvasRenderingContext2D, view: View) => void}} Layer */
/** @typedef {import("./outline.js").Point} Point */
/** @typedef {"move" | "box" | "lasso" | "carry"} Mode "carry" is for walls that can be changed */

const ZOOM_KEYS = new Map([
  ["+", 1.25],
  ["=", 1.25],
  ["-", 0.8],
  ["_", 0.8],
]);
/** @type {Map<string, [number, number]>} rows and columns of a step */
export const ARROWS = new Map([
  ["ArrowUp", [-1, 0]],
  ["ArrowDown", [1, 0]],
  ["ArrowLeft", [0, -1]],
  ["ArrowRight", [0, 1]],
]);
const CLICK = 5; // screen pixels that a click may move

/**
 * Events, all with a cell or cells in `detail`: "hover" and "visit" (cell, -1 for none), "open"
 * (cell), "choose" ({cells, how}), where `how` is "replace", "add", "remove" or "toggle".
 */
export class Wall extends EventTarget {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {View} view
   * @param {Layer} pictures
   * @param {Marks} marks
   */
  constructor(canvas, view, pictures, marks) {
    super();
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (
      canvas.getContext("2d", { alpha: false })
    );
    this.view = view;
    this.pictures = pictures;
    this.marks = marks;
    /** @type {Mode} */
    this.mode = "move";
    this.hovered = -1;
    this.current = -1;
    this.anchor = -1; // where a selection by keyboard began
    /** @type {Point[]} corners of a box, or points of a lasso, that is being drawn */
    this.outline = [];
    this.asked = false;
    /** @type {Map<number, Point>} where pointers that are down were last */
    this.held = new Map();
    this.moved = 0; // way of the first of them, in screen pixels
    this.spread = 0; // between two fingers
    /** @type {Mode} what dragging does until it ends */
    this.doing = "move";
    this.listenToPointers();
    canvas.addEventListener("keydown", (event) => this.press(event));
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.resize();
  }

  get cells() {
    return this.marks.cells;
  }

  resize() {
    const box = this.canvas.getBoundingClientRect();
    const dots = window.devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(box.width * dots));
    this.canvas.height = Math.max(1, Math.round(box.height * dots));
    this.view.resize(box.width, box.height, dots);
    if (this.current >= 0) this.bring(this.current);
    this.draw();
  }

  /** Draws in the next frame. */
  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.asked = false;
    const { context, view, marks } = this;
    context.fillStyle = marks.colors.paper;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.pictures.draw(context, view);
    marks.draw(context, view);
    if (this.hovered >= 0 && this.hovered !== this.current && !marks.gliding) {
      marks.ring(context, view, this.hovered, marks.colors.ink, 2);
    }
    if (this.current >= 0 && !marks.gliding) {
      marks.ring(context, view, this.current, marks.colors.mark, 3);
    }
    marks.drawLabels(context, view);
    this.drawOver(context);
    this.dispatchEvent(new Event("drawn"));
  }

  /** Draws what is above all else: a box or lasso, or in other walls what is carried. */
  drawOver(/** @type {CanvasRenderingContext2D} */ context) {
    drawOutline(context, this.view, this.outline, this.marks.colors.mark);
  }

  fit() {
    this.view.fit();
    this.ask();
  }

  zoom(/** @type {number} */ factor, /** @type {number} */ x, /** @type {number} */ y) {
    this.view.zoom(factor, x, y);
    this.ask();
  }

  cellAt(/** @type {Point} */ { x, y }) {
    const place = this.view.placeAt(x, y);
    const [row, column] = [Math.floor(place.row), Math.floor(place.column)];
    if (column < 0 || row < 0 || column >= this.view.columns || row >= this.view.rows) return -1;
    const cell = row * this.view.columns + column;
    return this.cells[cell] >= 0 ? cell : -1;
  }

  /** Middle of a cell on the screen. */
  middleOf(/** @type {number} */ cell) {
    const { columns } = this.view;
    return this.view.screenOf(Math.floor(cell / columns) + 0.5, (cell % columns) + 0.5);
  }

  hover(/** @type {number} */ cell, /** @type {Point | null} */ at) {
    this.canvas.classList.toggle("over", cell >= 0 && (this.mode === "move" || this.mode === "carry"));
    if (cell !== this.hovered) this.ask();
    this.hovered = cell;
    this.tell("hover", { cell, at });
  }

  /** Makes a cell the current one and brings it into the window, at least `least` pixels wide. */
  visit(/** @type {number} */ cell, least = 0) {
    this.current = cell;
    if (cell >= 0) {
      const width = this.view.tileWidth * this.view.scale;
      if (width < least) this.view.zoom(least / width);
      this.bring(cell);
    }
    this.tell("visit", { cell });
    this.ask();
  }

  /** Moves the wall so that a cell is not at the edge of the window or beyond; a whole one stays. */
  bring(/** @type {number} */ cell) {
    if (this.view.fitted) return;
    const { x, y } = this.middleOf(cell);
    const { width, height } = this.view;
    const edge = Math.min(60, width / 4, height / 4);
    if (x >= edge && y >= edge && x <= width - edge && y <= height - edge) return;
    this.view.pan(width / 2 - x, height / 2 - y);
  }

  /** The filled cell nearest to the middle of the window. */
  middle() {
    let best = -1;
    let least = Infinity;
    const { row, column } = this.view.placeAt(this.view.width / 2, this.view.height / 2);
    const { columns } = this.view;
    for (let cell = 0; cell < this.cells.length; cell++) {
      if (this.cells[cell] < 0) continue;
      const [down, across] = [Math.floor(cell / columns) + 0.5 - row, (cell % columns) + 0.5 - column];
      const far = down * down + across * across;
      if (far < least) [best, least] = [cell, far];
    }
    return best;
  }

  /** The next filled cell in a direction, or the same one. */
  step(/** @type {number} */ from, /** @type {number} */ down, /** @type {number} */ right) {
    const { rows, columns } = this.view;
    let [row, column] = [Math.floor(from / columns) + down, (from % columns) + right];
    while (row >= 0 && column >= 0 && row < rows && column < columns) {
      if (this.cells[row * columns + column] >= 0) return row * columns + column;
      [row, column] = [row + down, column + right];
    }
    return from;
  }

  /** The next filled and kept cell in reading order, around the end. */
  follow(/** @type {number} */ from, /** @type {number} */ direction) {
    const n = this.cells.length;
    const kept = this.marks.kept;
    if (from < 0 && direction < 0) from = 0; // the last one comes first
    for (let k = 1; k <= n; k++) {
      const cell = (from + direction * k + 2 * n) % n;
      const item = this.cells[cell];
      if (item >= 0 && (!kept || kept[item])) return cell;
    }
    return from;
  }

  /** Filled cells between two, as a box. */
  between(/** @type {number} */ one, /** @type {number} */ other) {
    const { columns } = this.view;
    const rows = [Math.floor(one / columns), Math.floor(other / columns)].sort((a, b) => a - b);
    const across = [one % columns, other % columns].sort((a, b) => a - b);
    const found = [];
    for (let row = rows[0]; row <= rows[1]; row++) {
      for (let column = across[0]; column <= across[1]; column++) {
        if (this.cells[row * columns + column] >= 0) found.push(row * columns + column);
      }
    }
    return found;
  }

  press(/** @type {KeyboardEvent} */ event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS.get(event.key);
    const factor = ZOOM_KEYS.get(event.key);
    if (factor) this.zoom(factor, this.view.width / 2, this.view.height / 2);
    else if (event.key === "0") this.fit();
    else if (arrow) {
      const before = this.current;
      const cell = before < 0 ? this.middle() : this.step(before, ...arrow);
      if (cell < 0) return;
      if (event.shiftKey) {
        if (this.anchor < 0) this.anchor = before < 0 ? cell : before;
        this.tell("choose", { cells: this.between(this.anchor, cell), how: "replace" });
      } else this.anchor = -1;
      this.visit(cell);
    } else if (event.key === "Enter") {
      const cell = this.current < 0 ? this.middle() : this.current;
      if (cell >= 0) this.tell("open", { cell });
    } else if (event.key === " ") {
      if (this.current >= 0) this.tell("choose", { cells: [this.current], how: "toggle" });
    } else return;
    event.preventDefault();
  }

  place(/** @type {MouseEvent} */ event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /**
   * What dragging from a place does; null leaves the event alone.
   * @param {PointerEvent} event
   * @param {Point} _at
   * @returns {Mode | null}
   */
  gripOf(event, _at) {
    if (event.button > 0) return null;
    return this.mode === "move" && event.shiftKey ? "box" : this.mode;
  }

  listenToPointers() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => this.grab(event));
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointercancel", (event) => this.release(event));
    canvas.addEventListener("pointerleave", () => this.hover(-1, null));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  grab(/** @type {PointerEvent} */ event) {
    const { canvas } = this;
    const at = this.place(event);
    const grip = this.gripOf(event, at);
    if (!grip) return;
    canvas.focus({ preventScroll: true });
    this.held.set(event.pointerId, at);
    canvas.setPointerCapture(event.pointerId);
    this.spread = 0;
    if (this.held.size === 1) {
      this.moved = 0;
      this.doing = grip;
      this.outline = grip === "box" || grip === "lasso" ? [at] : [];
    } else {
      this.outline = []; // two fingers zoom
      this.putBack();
    }
    canvas.classList.toggle("held", this.doing === "move");
  }

  drag(/** @type {PointerEvent} */ event) {
    const now = this.place(event);
    const last = this.held.get(event.pointerId);
    if (!last) {
      this.hover(this.cellAt(now), now);
      return;
    }
    this.held.set(event.pointerId, now);
    this.moved += Math.hypot(now.x - last.x, now.y - last.y);
    if (this.held.size === 2) {
      const [a, b] = [...this.held.values()];
      const apart = Math.hypot(a.x - b.x, a.y - b.y);
      this.view.pan((now.x - last.x) / 2, (now.y - last.y) / 2);
      const { spread } = this;
      if (spread > 0 && apart > 0) this.zoom(apart / spread, (a.x + b.x) / 2, (a.y + b.y) / 2);
      this.spread = apart;
    } else if (this.outline.length) {
      if (this.doing === "box") this.outline[1] = now;
      else this.outline.push(now);
      this.ask();
    } else if (this.moved > CLICK) {
      if (this.doing === "carry") this.carry(now);
      else if (this.doing === "move") this.view.pan(now.x - last.x, now.y - last.y);
      else return;
      this.hover(-1, null);
      this.ask();
    }
  }

  release(/** @type {PointerEvent} */ event) {
    const last = this.held.get(event.pointerId);
    this.held.delete(event.pointerId);
    this.spread = 0;
    if (this.held.size) return;
    this.canvas.classList.remove("held");
    const done = event.type === "pointerup" && last;
    if (done && this.moved <= CLICK) this.click(this.cellAt(last), this.doing, event);
    else if (done && this.outline.length > 1) this.chooseInside(this.doing, event);
    else if (done && this.doing === "carry") this.drop(last);
    else this.putBack();
    this.outline = [];
    this.ask();
  }

  wheel(/** @type {WheelEvent} */ event) {
    event.preventDefault();
    const at = this.place(event);
    const lines = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    // A pinch on a touch pad arrives as a wheel with Ctrl held, in smaller steps.
    const rate = event.ctrlKey ? 0.01 : 0.0016;
    this.zoom(Math.exp(-clamp(event.deltaY * lines, -400, 400) * rate), at.x, at.y);
    this.hover(this.cellAt(at), at);
  }

  /** Moves what is carried; walls that cannot be changed carry nothing. */
  carry(/** @type {Point} */ _at) {}

  drop(/** @type {Point} */ _at) {}

  putBack() {}

  click(/** @type {number} */ cell, /** @type {Mode} */ doing, /** @type {MouseEvent} */ event) {
    if (doing === "move" && !event.shiftKey && !event.ctrlKey && !event.metaKey) {
      if (cell >= 0) this.tell("open", { cell });
    } else if (cell >= 0) this.tell("choose", { cells: [cell], how: "toggle" });
    else this.tell("choose", { cells: [], how: "replace" });
  }

  chooseInside(/** @type {Mode} */ doing, /** @type {MouseEvent} */ event) {
    const cells = cellsInside(this.outline, this.view, this.cells);
    const adds = event.ctrlKey || event.metaKey || (event.shiftKey && this.mode === doing);
    this.tell("choose", { cells, how: event.altKey ? "remove" : adds ? "add" : "replace" });
  }

  tell(/** @type {string} */ name, /** @type {object} */ detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
