// Boxes and lassos that are drawn around cells of a wall.
import { clamp } from "./view.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {{x: number, y: number}} Point */

/** Corners of what is drawn: two points are those of a box. */
export function cornersOf(/** @type {Point[]} */ outline) {
  const [a, b] = [outline[0], outline[outline.length - 1]];
  if (outline.length > 2) return outline;
  return [a, { x: b.x, y: a.y }, b, { x: a.x, y: b.y }];
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {View} view
 * @param {Point[]} outline
 * @param {string} color
 */
export function drawOutline(context, view, outline, color) {
  if (outline.length < 2) return;
  context.beginPath();
  for (const { x, y } of cornersOf(outline)) context.lineTo(x * view.dots, y * view.dots);
  context.closePath();
  context.lineWidth = 2 * view.dots;
  context.strokeStyle = color;
  context.globalAlpha = 0.15;
  context.fillStyle = color;
  context.fill();
  context.globalAlpha = 1;
  context.stroke();
}

/**
 * Filled cells whose middles lie inside an outline.
 * @param {Point[]} outline
 * @param {View} view
 * @param {Int32Array} cells
 */
export function cellsInside(outline, view, cells) {
  const { columns, rows } = view;
  const shape = cornersOf(outline).map(({ x, y }) => view.placeAt(x, y));
  const downs = shape.map((each) => each.row);
  const top = clamp(Math.floor(Math.min(...downs)), 0, rows);
  const bottom = clamp(Math.ceil(Math.max(...downs)), 0, rows);
  const found = [];
  for (let row = top; row < bottom; row++) {
    // The middles of the cells of this row that lie between pairs of sides.
    const crossings = [];
    for (let k = 0; k < shape.length; k++) {
      const [a, b] = [shape[k], shape[(k + 1) % shape.length]];
      const y = row + 0.5;
      if (a.row <= y === b.row <= y) continue;
      crossings.push(a.column + ((y - a.row) / (b.row - a.row)) * (b.column - a.column));
    }
    crossings.sort((a, b) => a - b);
    for (let k = 0; k + 1 < crossings.length; k += 2) {
      const first = clamp(Math.ceil(crossings[k] - 0.5), 0, columns);
      const end = clamp(Math.ceil(crossings[k + 1] - 0.5), 0, columns);
      for (let column = first; column < end; column++) {
        if (cells[row * columns + column] >= 0) found.push(row * columns + column);
      }
    }
  }
  return found;
}
