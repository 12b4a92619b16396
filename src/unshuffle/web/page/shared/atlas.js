// Pictures from the server in three sizes: sheets of small ones, kept as pixels; sheets of larger
// ones, as many as fit; and single pictures at the closest zoom.
import { ImageCache, drawMiddle, loadBitmap } from "../../../images/page/sheets.js";
import { Pixels } from "./pixels.js";

/** @typedef {import("./album.js").Album} Album */

export const SMALL = 16; // pixels of a picture in the sheets of small ones
export const LARGE = 64;
export const MOST_SHEETS = 180; // large ones, of 1 MB each, that are wanted at the same time
export const MOST_PICTURES = 260;
const ACROSS = 8; // pictures in a row of a sheet
const WAIT = 350; // milliseconds until a sheet that fills up is asked for again

/** Sheets of one size: what was ready in the versions that were asked for and have come. */
class Versions {
  constructor() {
    /** @type {Map<number, {n: number, at: number}>} the version of each sheet asked for last */
    this.asked = new Map();
    /** @type {Map<string, Uint8Array>} which pictures were ready in a version, by its key */
    this.ready = new Map();
    /** @type {Map<number, {key: string, n: number}>} the version of each sheet that came last */
    this.loaded = new Map();
    this.late = false; // whether some could not be asked for yet
  }

  /** Key of the version of a sheet to ask for now. */
  next(/** @type {Album} */ album, /** @type {number} */ sheet) {
    const n = album.readyIn(sheet);
    const last = this.asked.get(sheet);
    const now = performance.now();
    if (last && last.n !== n && n < album.inSheet && now - last.at < WAIT) {
      this.late = true;
      return `${sheet} ${last.n}`;
    }
    const key = `${sheet} ${n}`;
    if (!last || last.n !== n) {
      this.asked.set(sheet, { n, at: now });
      const start = sheet * album.inSheet;
      this.ready.set(key, album.ready.slice(start, start + album.inSheet));
    }
    return key;
  }

  /** Remembers that a version has come; false if a newer one was there. */
  take(/** @type {string} */ key) {
    const [sheet, n] = key.split(" ").map(Number);
    const before = this.loaded.get(sheet);
    if (before && before.n >= n) return false;
    if (before) this.ready.delete(before.key);
    this.loaded.set(sheet, { key, n });
    return true;
  }

  /** Whether a picture was ready in the version that came last. */
  holds(/** @type {number} */ sheet, /** @type {number} */ k) {
    const { key } = this.loaded.get(sheet) ?? { key: "" };
    return this.ready.get(key)?.[k] === 1;
  }
}

export class Atlas {
  /**
   * @param {Album} album
   * @param {(sheets: number[]) => void} changed called when more can be drawn, with the sheets of
   *   small pictures that have come
   */
  constructor(album, changed) {
    this.album = album;
    this.changed = changed;
    this.pixels = new Pixels();
    this.nDrawn = 0; // pictures whose small pixels are there
    this.nLarge = 0; // sheets of larger pictures that have come
    this.timer = 0;
    const { run } = album;
    const sheet = (/** @type {number} */ side) => (/** @type {string} */ key) => {
      const [k, n] = key.split(" ");
      return `/api/sheet/${side}/${k}?v=${n}&run=${run}`;
    };
    const picture = (/** @type {string} */ key) => `/api/picture/${key}?side=320&run=${run}`;
    this.smallVersions = new Versions();
    this.largeVersions = new Versions();
    this.small = new ImageCache(sheet(SMALL), 1e6, () => this.takeSmall());
    this.large = new ImageCache(sheet(LARGE), 48e6, () => this.takeLarge());
    this.pictures = new ImageCache(picture, 28e6, () => this.changed([]));
  }

  /** Calls `changed` later, once, when sheets may be asked for again. */
  wait(/** @type {Versions} */ versions) {
    if (!versions.late || this.timer) return;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      this.changed([]);
    }, WAIT);
  }

  /** Asks for sheets of small pictures in which more are ready now. */
  wantSmall() {
    const { album, smallVersions: versions } = this;
    const wanted = [];
    versions.late = false;
    for (let sheet = 0; sheet * album.inSheet < album.ready.length; sheet++) {
      if (album.readyIn(sheet) === (versions.loaded.get(sheet)?.n ?? 0)) continue;
      const key = versions.next(album, sheet);
      if (versions.loaded.get(sheet)?.key !== key) wanted.push(key);
    }
    this.small.want(wanted);
    this.wait(versions);
  }

  /** Copies the pixels of sheets that have come. */
  takeSmall() {
    const fresh = [];
    for (const [key, image] of this.small.ready) {
      const [sheet, n] = key.split(" ").map(Number);
      const before = this.smallVersions.loaded.get(sheet)?.n ?? 0;
      if (!this.smallVersions.take(key)) continue;
      this.pixels.put(sheet, image);
      this.nDrawn += n - before;
      fresh.push(sheet);
    }
    this.changed(fresh);
  }

  takeLarge() {
    for (const key of this.large.ready.keys()) {
      if (this.largeVersions.take(key)) this.nLarge++;
    }
    this.changed([]);
  }

  /** Whether a picture can be drawn from its small pixels. */
  hasSmall(/** @type {number} */ slot) {
    const { inSheet } = this.album;
    return this.smallVersions.holds(Math.floor(slot / inSheet), slot % inSheet);
  }

  /** Asks for sheets of larger pictures, and for pictures by themselves. */
  want(/** @type {Set<number>} */ sheets, /** @type {string[]} */ pictures) {
    const versions = this.largeVersions;
    versions.late = false;
    const some = sheets.size <= MOST_SHEETS ? [...sheets] : [];
    this.large.want(some.map((sheet) => versions.next(this.album, sheet)));
    this.pictures.want(pictures);
    this.wait(versions);
  }

  get idle() {
    return this.small.idle && this.large.idle && this.pictures.idle;
  }

  /** The sheet of larger pictures that came last, if it holds a picture. */
  largeSheet(/** @type {number} */ slot) {
    const { inSheet } = this.album;
    const sheet = Math.floor(slot / inSheet);
    if (!this.largeVersions.holds(sheet, slot % inSheet)) return null;
    return this.large.get(this.largeVersions.loaded.get(sheet)?.key ?? "");
  }

  /**
   * Draws a picture from a sheet of larger ones, or by itself; returns what it was drawn from.
   * @param {CanvasRenderingContext2D} context
   * @param {number} slot
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {number} height
   * @returns {"picture" | "sheet" | ""}
   */
  draw(context, slot, x, y, width, height) {
    const alone = width > LARGE ? this.pictures.get(String(slot)) : null;
    if (alone) {
      drawMiddle(context, alone, x, y, width, height);
      return "picture";
    }
    const image = this.largeSheet(slot);
    if (!image) return "";
    const k = slot % this.album.inSheet;
    const [left, top] = [(k % ACROSS) * LARGE, Math.floor(k / ACROSS) * LARGE];
    // Enlarged, a picture would show a rim of its neighbors.
    const rim = width > LARGE ? 0.5 : 0;
    const part = LARGE - 2 * rim;
    context.drawImage(image, left + rim, top + rim, part, part, x, y, width, height);
    return "sheet";
  }

  /** A small picture by itself, as a canvas that is filled when its sheet has come. */
  thumbnail(/** @type {number} */ slot) {
    const picture = document.createElement("canvas");
    picture.width = picture.height = LARGE;
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", this.album.nameOf(slot));
    this.fill(picture, slot).catch(() => {});
    return picture;
  }

  async fill(/** @type {HTMLCanvasElement} */ picture, /** @type {number} */ slot) {
    const context = /** @type {CanvasRenderingContext2D} */ (picture.getContext("2d"));
    if (this.draw(context, slot, 0, 0, LARGE, LARGE)) return;
    const { inSheet, run } = this.album;
    const sheet = Math.floor(slot / inSheet);
    const n = this.album.readyIn(sheet);
    const image = await loadBitmap(`/api/sheet/${LARGE}/${sheet}?v=${n}&run=${run}`);
    const k = slot % inSheet;
    const [x, y] = [(k % ACROSS) * LARGE, Math.floor(k / ACROSS) * LARGE];
    context.drawImage(image, x, y, LARGE, LARGE, 0, 0, LARGE, LARGE);
    image.close();
  }
}
