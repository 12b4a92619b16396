// The larger picture, with what is known of it and its nearest look-alikes.
import { decodeNumbers, placeWords } from "./items.js";
import { clamp } from "./view.js";

/** @typedef {import("./items.js").Items} Items */
/** @typedef {import("./sheets.js").Sheets} Sheets */
/** @typedef {import("./sheets.js").Source} Source */

const THUMBNAIL = 96;
const LARGE = 320;

/** An element with a class and a text, which is never read as HTML. */
export function make(/** @type {string} */ tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

export function byId(/** @type {string} */ id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/**
 * Shows words beside a point of the window, or hides them if there are none.
 * @param {HTMLElement} label
 * @param {string} words
 * @param {{x: number, y: number} | null} at
 * @param {{width: number, height: number}} window
 */
export function showBeside(label, words, at, window) {
  label.hidden = !words || !at;
  if (!words || !at) return;
  label.textContent = words;
  const left = clamp(at.x + 14, 4, Math.max(4, window.width - label.offsetWidth - 4));
  const below = at.y + 18 + label.offsetHeight < window.height;
  const top = below ? at.y + 18 : at.y - label.offsetHeight - 10;
  label.style.transform = `translate(${left}px, ${top}px)`;
}

/** A small picture that leads to its item. */
export function pictureButton(
  /** @type {HTMLElement} */ picture,
  /** @type {string} */ name,
  /** @type {() => void} */ go,
) {
  const button = make("button", "near");
  button.setAttribute("type", "button");
  button.title = name;
  button.append(picture);
  button.addEventListener("click", go);
  return button;
}

/** The part of an address that leads to an item. */
export function addressOf(/** @type {Items} */ items, /** @type {number} */ item) {
  const name = items.names[item];
  const number = `#item=${item}`;
  // Not there yet, or the name of an earlier item too.
  if (name === undefined || items.find(name) !== item) return number;
  try {
    return `#picture=${encodeURIComponent(name)}`;
  } catch {
    return number; // a name that is not valid Unicode
  }
}

/** The item that an address leads to, or -1. */
export function itemOf(/** @type {Items} */ items, /** @type {string} */ address) {
  const [, key, value] = address.match(/^#(picture|item)=(.*)$/s) ?? [];
  if (key === "item") return /^\d+$/.test(value) && Number(value) < items.n ? Number(value) : -1;
  try {
    return key ? items.find(decodeURIComponent(value)) : -1;
  } catch {
    return -1;
  }
}

export class Panel {
  /**
   * @param {Items} items
   * @param {Sheets} sheets
   * @param {Source} source
   * @param {{neighbors: number, links: boolean, chunk: number}} has
   * @param {(item: number) => void} go called when a look-alike is chosen
   */
  constructor(items, sheets, source, has, go) {
    this.items = items;
    this.sheets = sheets;
    this.source = source;
    this.has = has;
    this.go = go;
    this.item = -1;
    /** @type {Map<string, Promise<any>>} */
    this.parts = new Map();
    this.root = byId("panel");
  }

  get open() {
    return !this.root.hidden;
  }

  close() {
    this.root.hidden = true;
    this.item = -1;
  }

  /** A part of the data, of which the last few are kept. */
  part(/** @type {string} */ name) {
    let found = this.parts.get(name);
    if (!found) {
      found = this.source.read(name);
      this.parts.set(name, found);
      if (this.parts.size > 6) this.parts.delete([...this.parts.keys()][0]);
    }
    return found;
  }

  show(/** @type {number} */ item) {
    this.item = item;
    this.root.hidden = false;
    const { items } = this;
    const name = items.names[item] ?? "";
    byId("name").textContent = name;
    this.showPicture(item, name);
    const facts = byId("facts");
    facts.replaceChildren();
    const add = (/** @type {string} */ key, /** @type {string} */ value) =>
      facts.append(make("dt", "", key), make("dd", "", value));
    items.columns.forEach((column, j) => {
      const value = items.value(item, j);
      if (value) add(column.name, value);
    });
    add("place", placeWords(items.cellOf[item], items.gridColumns));
    const address = /** @type {HTMLAnchorElement} */ (byId("address"));
    address.href = addressOf(items, item);
    byId("original").hidden = true;
    byId("alike").hidden = true;
    const k = Math.floor(item / this.has.chunk);
    if (this.has.links) this.showLink(item, k);
    if (this.has.neighbors) this.showNeighbors(item, k);
  }

  async showPicture(/** @type {number} */ item, /** @type {string} */ name) {
    const frame = byId("frame");
    if (this.sheets.hasPictures) {
      const picture = new Image();
      picture.alt = name;
      picture.src = await this.source.picture(item);
      if (item === this.item) frame.replaceChildren(picture);
    } else frame.replaceChildren(this.thumbnail(item, LARGE));
  }

  thumbnail(/** @type {number} */ item, /** @type {number} */ width) {
    const { width: across, height: down } = this.sheets.levels[0];
    const picture = document.createElement("canvas");
    picture.width = width;
    picture.height = Math.max(1, Math.round((width * down) / across));
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", this.items.names[item] ?? "");
    const [row, column] = [this.items.row(item), this.items.column(item)];
    this.sheets.drawCell(picture, row, column, this.source).catch(() => {});
    return picture;
  }

  async showLink(/** @type {number} */ item, /** @type {number} */ k) {
    const links = await this.part(`links-${k}`);
    if (item !== this.item) return;
    const href = links[item - k * this.has.chunk];
    const link = /** @type {HTMLAnchorElement} */ (byId("original"));
    link.hidden = !href;
    if (href) link.href = href;
  }

  async showNeighbors(/** @type {number} */ item, /** @type {number} */ k) {
    const text = await this.part(`neighbors-${k}`);
    if (item !== this.item) return;
    const n = this.has.neighbors;
    const start = (item - k * this.has.chunk) * n;
    const near = [...decodeNumbers(text).subarray(start, start + n)];
    const shown = near.filter((each) => each >= 0 && this.items.cellOf[each] >= 0);
    byId("near").replaceChildren(
      ...shown.map((each) => {
        const name = this.items.names[each] ?? "";
        return pictureButton(this.thumbnail(each, THUMBNAIL), name, () => this.go(each));
      }),
    );
    byId("alike").hidden = !shown.length;
  }
}
