// A wall on which pictures can be carried to other cells, by mouse, finger or keyboard.
import { clamp } from "../../../images/page/view.js";
import { ARROWS, Wall } from "../../../images/page/wall.js";

/** @typedef {import("../../../images/page/outline.js").Point} Point */
/** @typedef {import("../../../images/page/view.js").View} View */
/** @typedef {import("../../../images/page/wall.js").Mode} Mode */
/** @typedef {import("../shared/album.js").Album} Album */
/** @typedef {import("./tiles.js").Tiles} Tiles */

const LONG = 450; // milliseconds that a finger rests on a picture to lift it
const LIFTED = [76, 160]; // least and most screen pixels of a picture that is carried
const EDGE = 36; // screen pixels at the edge where a carried picture moves the wall
const DOUBLE = 400; // milliseconds between two clicks that belong together
const LEAST_PINNED = 9; // screen pixels of a cell that can carry the mark of frozen pictures

/**
 * @typedef {object} Load What is carried.
 * @property {number} item
 * @property {number} from its cell
 * @property {number} target cell below it, or -1
 * @property {Point | null} at null if it is carried by keyboard
 */

/**
 * Further events: "lift" and "aim" (load), "put" ({item, cell, at}), "back" (load), "enlarge" and
 * "enter" (cell; by double-click and by key), "nothing" when empty space was clicked.
 */
export class Hands extends Wall {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {View} view
   * @param {Tiles} tiles
   * @param {import("../../../images/page/marks.js").Marks} marks
   * @param {Album} album
   */
  constructor(canvas, view, tiles, marks, album) {
    super(canvas, view, tiles, marks);
    this.tiles = tiles;
    this.album = album;
    this.mode = /** @type {Mode} */ ("carry");
    /** @type {Load | null} */
    this.load = null;
    this.spaced = false; // Space is held, which moves the wall
    this.timer = 0;
    this.clicked = { item: -1, time: -Infinity, x: 0, y: 0 };
    canvas.addEventListener("keyup", (event) => {
      if (event.key === " ") this.setSpaced(false);
    });
    canvas.addEventListener("blur", () => {
      this.setSpaced(false);
      if (this.load && !this.load.at) this.putBack();
    });
    // The middle button moves the wall and does not scroll; a long press opens no menu.
    canvas.addEventListener("mousedown", (event) => {
      if (event.button === 1) event.preventDefault();
    });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  setSpaced(/** @type {boolean} */ on) {
    this.spaced = on;
    this.canvas.classList.toggle("spaced", on);
  }

  draw() {
    this.tiles?.places.settle();
    this.marks.gliding = this.tiles?.moving ?? false;
    super.draw();
    if (this.tiles?.moving) this.ask();
  }

  /** The cell at a point, empty ones too, or -1 outside the shape. */
  anyCellAt(/** @type {Point} */ { x, y }) {
    const place = this.view.placeAt(x, y);
    const [row, column] = [Math.floor(place.row), Math.floor(place.column)];
    if (column < 0 || row < 0 || column >= this.view.columns || row >= this.view.rows) return -1;
    const cell = row * this.view.columns + column;
    return this.album.inShape(cell) ? cell : -1;
  }

  /**
   * @param {PointerEvent} event
   * @param {Point} at
   * @returns {Mode | null}
   */
  gripOf(event, at) {
    if (event.button > 1) return null;
    if (event.button === 1 || this.spaced || this.mode === "move") return "move";
    if (event.pointerType === "touch") {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.liftByFinger(at), LONG);
      return "move";
    }
    return this.cellAt(at) >= 0 ? "carry" : "move";
  }

  liftByFinger(/** @type {Point} */ at) {
    const cell = this.cellAt(at);
    if (this.held.size !== 1 || this.moved > 8 || cell < 0) return;
    this.doing = "carry";
    this.moved = Infinity; // the end of this is a drop, not a click
    navigator.vibrate?.(15);
    this.lift(cell, at);
  }

  lift(/** @type {number} */ cell, /** @type {Point | null} */ at) {
    const item = this.cells[cell];
    if (item < 0) return;
    this.load = { item, from: cell, target: cell, at };
    this.canvas.classList.add("carrying");
    this.tell("lift", { load: this.load });
    this.ask();
  }

  carry(/** @type {Point} */ at) {
    if (!this.load) {
      // Where the pointer went down, not where it is now.
      const cell = this.cellAt(this.grabbed);
      if (cell >= 0) this.lift(cell, at);
      this.followEdge();
    }
    if (!this.load) return;
    this.load.at = at;
    this.aim(this.anyCellAt(at));
  }

  grabbed = { x: 0, y: 0 };

  grab(/** @type {PointerEvent} */ event) {
    this.grabbed = this.place(event);
    this.canvas.classList.add("pointed");
    super.grab(event);
  }

  drag(/** @type {PointerEvent} */ event) {
    super.drag(event);
    if (this.moved > 8 && this.doing === "move") clearTimeout(this.timer);
  }

  release(/** @type {PointerEvent} */ event) {
    clearTimeout(this.timer);
    super.release(event);
  }

  aim(/** @type {number} */ cell) {
    if (!this.load || this.load.target === cell) return;
    this.load.target = cell;
    this.tell("aim", { load: this.load });
    this.ask();
  }

  /** Moves the wall while a picture is held at the edge of the window. */
  followEdge() {
    const at = this.load?.at;
    if (!at) return;
    const { width, height } = this.view;
    const push = (/** @type {number} */ x, /** @type {number} */ end) =>
      x < EDGE ? 1 : x > end - EDGE ? -1 : 0;
    const [right, down] = [push(at.x, width), push(at.y, height)];
    if ((right || down) && !this.view.fitted) {
      this.view.pan(8 * right, 8 * down);
      this.aim(this.anyCellAt(at));
      this.ask();
    }
    requestAnimationFrame(() => this.followEdge());
  }

  drop() {
    const { load } = this;
    if (!load) return;
    if (load.target < 0 || load.target === load.from || load.from < 0) {
      this.putBack();
      return;
    }
    this.end();
    this.tell("put", { item: load.item, cell: load.target, at: load.at });
  }

  putBack() {
    const { load } = this;
    if (this.doing === "carry") this.doing = "move";
    if (!load) return;
    this.end();
    this.tell("back", { load });
  }

  /** After another arrangement: a picture that is carried comes from where it is now. */
  keepLoad() {
    if (!this.load) return;
    this.load.from = this.album.cellOf[this.load.item] ?? -1;
    const gone = this.load.target >= 0 && !this.album.inShape(this.load.target);
    if (this.load.from < 0 || gone) this.putBack();
  }

  end() {
    this.load = null;
    this.canvas.classList.remove("carrying");
    this.ask();
  }

  press(/** @type {KeyboardEvent} */ event) {
    this.canvas.classList.remove("pointed");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS.get(event.key);
    if (event.key === " ") this.setSpaced(true);
    else if (this.load && event.key === "Escape") {
      event.stopPropagation();
      this.putBack();
    } else if (this.load && !this.load.at && arrow) {
      const cell = this.stepAnywhere(this.load.target, ...arrow);
      this.current = cell;
      this.bring(cell);
      this.aim(cell);
    } else if (this.load && !this.load.at && event.key === "Enter") this.drop();
    else if (this.load) return;
    else if (event.key === "Enter") {
      const cell = this.current < 0 ? this.middle() : this.current;
      if (cell >= 0) this.tell("enter", { cell });
    } else if (event.key === "m" || event.key === "M") {
      const cell = this.current < 0 ? this.middle() : this.current;
      if (cell < 0) return;
      this.current = cell;
      this.bring(cell);
      this.lift(cell, null);
    } else {
      super.press(event);
      return;
    }
    event.preventDefault();
  }

  /** The next cell of the shape in a direction, empty ones too, or the same one. */
  stepAnywhere(/** @type {number} */ from, /** @type {number} */ down, /** @type {number} */ right) {
    const { rows, columns } = this.view;
    let [row, column] = [Math.floor(from / columns) + down, (from % columns) + right];
    while (row >= 0 && column >= 0 && row < rows && column < columns) {
      if (this.album.inShape(row * columns + column)) return row * columns + column;
      [row, column] = [row + down, column + right];
    }
    return from;
  }

  click(/** @type {number} */ cell, /** @type {Mode} */ _doing, /** @type {MouseEvent} */ event) {
    const now = performance.now();
    const last = this.clicked;
    const { clientX: x, clientY: y } = event;
    const near = Math.hypot(x - last.x, y - last.y) < 12;
    // The first click may have opened the details, which moves the wall below the pointer.
    if (last.item >= 0 && near && now - last.time < DOUBLE) {
      this.clicked = { ...last, time: -Infinity };
      this.tell("enlarge", { cell: this.album.cellOf[last.item] });
      return;
    }
    this.clicked = { item: cell < 0 ? -1 : this.cells[cell], time: now, x, y };
    if (cell >= 0) this.tell("open", { cell });
    else this.tell("nothing", {});
  }

  drawOver(/** @type {CanvasRenderingContext2D} */ context) {
    if (!this.tiles) return;
    if (!this.tiles.moving) this.drawPins(context);
    if (this.load) this.drawLoad(context, this.load);
  }

  /** Marks frozen pictures: a pin in the corner, or a dot where cells are small. */
  drawPins(/** @type {CanvasRenderingContext2D} */ context) {
    const { view, album, marks } = this;
    const side = view.tileWidth * view.scale;
    if (side < LEAST_PINNED) return;
    const radius = Math.min(10, Math.max(2, side * 0.13)) * view.dots;
    const inset = radius + Math.max(1.5, side * 0.04) * view.dots;
    for (const item of album.frozen) {
      const cell = album.cellOf[item] ?? -1;
      if (cell < 0 || item === this.load?.item) continue;
      const [row, column] = [Math.floor(cell / view.columns), cell % view.columns];
      const [x, y] = [view.edgeX(column + 1) - inset, view.edgeY(row) + inset];
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.fillStyle = marks.colors.mark;
      context.fill();
      context.lineWidth = Math.max(1, radius * 0.22);
      context.strokeStyle = marks.colors.paper;
      context.stroke();
      if (radius < 5 * view.dots) continue;
      // The head of a pin and its needle.
      context.fillStyle = marks.colors.paper;
      context.beginPath();
      context.arc(x, y - radius * 0.22, radius * 0.3, 0, 2 * Math.PI);
      context.fill();
      context.fillRect(x - radius * 0.08, y, radius * 0.16, radius * 0.6);
    }
  }

  /** Draws what is carried, where it would go and where it came from. */
  drawLoad(/** @type {CanvasRenderingContext2D} */ context, /** @type {Load} */ load) {
    const { view, marks } = this;
    const { columns, dots } = view;
    const [row, column] = [Math.floor(load.from / columns), load.from % columns];
    const [left, top] = [view.edgeX(column), view.edgeY(row)];
    const [right, bottom] = [view.edgeX(column + 1), view.edgeY(row + 1)];
    context.globalAlpha = 0.75;
    context.fillStyle = marks.colors.paper;
    context.fillRect(left, top, right - left, bottom - top);
    context.globalAlpha = 1;
    context.setLineDash([4 * dots, 3 * dots]);
    marks.ring(context, view, load.from, marks.colors.ink, 1.5);
    context.setLineDash([]);
    if (load.target >= 0) marks.ring(context, view, load.target, marks.colors.mark, 4);
    const [least, most] = LIFTED.map((pixels) => pixels * dots);
    const side = clamp(view.cellDots * 0.8, least, most);
    const middle = load.at ?? this.middleOf(load.target);
    const x = middle.x * dots - side / 2;
    // A picture that would hide its target hangs above it.
    const above = side > view.cellDots * 0.85;
    const y = middle.y * dots - (above ? side + view.cellDots * 0.6 : side / 2);
    context.save();
    context.shadowColor = "rgb(0 0 0 / 45%)";
    context.shadowBlur = 18 * dots;
    context.shadowOffsetY = 6 * dots;
    context.fillStyle = marks.colors.paper;
    context.fillRect(x - 3 * dots, y - 3 * dots, side + 6 * dots, side + 6 * dots);
    context.restore();
    this.tiles.drawOne(context, load.item, x, y, side);
    context.lineWidth = 2 * dots;
    context.strokeStyle = load.target >= 0 ? marks.colors.mark : marks.colors.ink;
    context.strokeRect(x - 2 * dots, y - 2 * dots, side + 4 * dots, side + 4 * dots);
  }
}
