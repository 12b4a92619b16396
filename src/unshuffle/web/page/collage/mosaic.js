// The collage on the screen: what the server drew and, closer, the pictures themselves.
import { decodeNumbers } from "../../../images/page/items.js";
import { Marks } from "../../../images/page/marks.js";
import { loadBitmap } from "../../../images/page/sheets.js";
import { Album } from "../shared/album.js";
import { Atlas, LARGE, MOST_PICTURES } from "../shared/atlas.js";

/** @typedef {import("../../../images/page/view.js").View} View */

const LOOKED_AT = 3000; // cells in sight that are drawn one by one

/**
 * The pictures of the wall, and their places in the collage. Events, as of an album: "pictures",
 * "others", and "wall" when the collage or its template has changed.
 */
export class Mosaic extends Album {
  /** @param {import("../shared/server.js").Server} server */
  constructor(server) {
    super(server);
    /** @type {ImageBitmap | null} */
    this.preview = null;
    /** @type {ImageBitmap | null} */
    this.template = null;
    this.templateKey = "";
  }

  get current() {
    const { state } = this.server;
    return !!state && this.wallVersion >= state.collageVersion && this.hasTemplate(state);
  }

  hasTemplate(/** @type {any} */ state) {
    return this.templateKey === (state.template?.key ?? "");
  }

  /** Fetches the newest collage and template, until they are here. */
  async fetchWall() {
    const { epoch } = this;
    if (this.asking.wall) return;
    this.asking.wall = true;
    try {
      while (epoch === this.epoch && this.server.state && !this.current) {
        await this.fetchTemplate(epoch);
        await this.fetchCollage(epoch);
        if (epoch === this.epoch) this.dispatchEvent(new Event("wall"));
      }
    } catch {
      // The next state leads here again.
    } finally {
      if (epoch === this.epoch) this.asking.wall = false;
    }
  }

  async fetchTemplate(/** @type {number} */ epoch) {
    const { state } = this.server;
    if (this.hasTemplate(state)) return;
    const key = state.template?.key ?? "";
    const readable = state.template?.width > 0;
    const found = readable ? await loadBitmap(`/api/collage/template?key=${key}&run=${this.run}`) : null;
    if (epoch !== this.epoch) return;
    this.template?.close();
    [this.template, this.templateKey] = [found, key];
  }

  async fetchCollage(/** @type {number} */ epoch) {
    const { collage, collageVersion } = this.server.state;
    if (this.wallVersion >= collageVersion) return;
    let found = { version: collageVersion, rows: 0, columns: 0, cells: "" };
    /** @type {ImageBitmap | null} */
    let image = null;
    if (collage) {
      const address = `/api/collage/preview?version=${collageVersion}&run=${this.run}`;
      [found, image] = await Promise.all([this.server.get("/api/collage/cells"), loadBitmap(address)]);
    }
    if (epoch !== this.epoch) return;
    this.preview?.close();
    this.preview = image;
    this.wallVersion = found.version;
    this.place(found.rows, found.columns, decodeNumbers(found.cells));
  }
}

/** Rings around cells; the pictures of a collage touch each other. */
export class Rings extends Marks {
  drawGaps() {}
}

/** Draws a collage, or its template in its place. */
export class MosaicLayer {
  /**
   * @param {Mosaic} mosaic
   * @param {() => void} changed called when there is more to draw
   */
  constructor(mosaic, changed) {
    this.mosaic = mosaic;
    this.changed = changed;
    this.comparing = false;
    this.atlas = new Atlas(mosaic, () => this.changed());
  }

  /** Forgets all pictures, when slots may hold others. */
  forget() {
    this.atlas = new Atlas(this.mosaic, () => this.changed());
  }

  /** @param {CanvasRenderingContext2D} context @param {View} view */
  draw(context, view) {
    const { mosaic } = this;
    const image = this.comparing ? mosaic.template : mosaic.preview;
    if (!image || !mosaic.cells.length) return;
    context.imageSmoothingEnabled = true;
    context.imageSmoothingQuality = "high";
    const [x, y] = [view.edgeX(0), view.edgeY(0)];
    context.drawImage(image, x, y, view.edgeX(view.columns) - x, view.edgeY(view.rows) - y);
    const { left, top, right, bottom } = view.inSight();
    const n = (right - left) * (bottom - top);
    const close = view.cellDots > (1.2 * image.width) / view.columns && n <= LOOKED_AT;
    if (close && !this.comparing) this.drawSharp(context, view, n);
    else this.atlas.want(new Set(), []);
  }

  /**
   * Draws pictures one by one, over the preview.
   * @param {CanvasRenderingContext2D} context
   * @param {View} view
   * @param {number} n how many are in sight
   */
  drawSharp(context, view, n) {
    const { atlas, mosaic } = this;
    const { left, top, right, bottom } = view.inSight();
    const alone = view.cellDots > LARGE && n <= MOST_PICTURES;
    /** @type {Set<number>} */
    const sheets = new Set();
    /** @type {Set<string>} */
    const pictures = new Set();
    for (let row = top; row < bottom; row++) {
      for (let column = left; column < right; column++) {
        const slot = mosaic.cells[row * view.columns + column];
        if (!mosaic.ready[slot]) continue;
        const [x, y] = [view.edgeX(column), view.edgeY(row)];
        const [width, height] = [view.edgeX(column + 1) - x, view.edgeY(row + 1) - y];
        atlas.draw(context, slot, x, y, width, height);
        sheets.add(Math.floor(slot / mosaic.inSheet));
        if (alone) pictures.add(String(slot));
      }
    }
    atlas.want(sheets, [...pictures]);
  }
}
