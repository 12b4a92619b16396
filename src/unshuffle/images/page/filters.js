// Facets: frames by a column, and the items of some of its groups kept while the others are dimmed.
import { groupColor } from "./marks.js";
import { byId, make } from "./panel.js";

/** @typedef {import("./items.js").Items} Items */

const MOST_FRAMED = 10; // groups with a color of their own

export class Filters {
  /**
   * @param {Items} items
   * @param {() => void} changed
   */
  constructor(items, changed) {
    this.items = items;
    this.changed = changed;
    /** @type {Map<number, Set<number>>} groups that are kept, by column */
    this.chosen = new Map();
    this.framed = -1; // column that colors the frames
    /** @type {Uint8Array | null} items that the search found; null for all */
    this.found = null;
    /** @type {HTMLDetailsElement[]} */
    this.parts = [];
  }

  get active() {
    return this.chosen.size > 0;
  }

  /** Makes the controls, once all columns are there. */
  build() {
    const frame = /** @type {HTMLSelectElement} */ (byId("frame-by"));
    this.items.columns.forEach((column, j) => {
      frame.append(new Option(column.name, String(j)));
      const part = /** @type {HTMLDetailsElement} */ (make("details"));
      part.append(make("summary", "", column.name));
      part.addEventListener("toggle", () => this.fill(j));
      byId("facets").append(part);
      this.parts.push(part);
    });
    frame.addEventListener("change", () => {
      this.framed = Number(frame.value);
      if (this.framed >= 0) this.parts[this.framed].open = true;
      this.parts.forEach((_, j) => this.fill(j));
      this.changed();
    });
    if (this.parts.length === 1) this.parts[0].open = true;
    byId("clear-filters").addEventListener("click", () => {
      this.chosen.clear();
      frame.value = "-1";
      this.framed = -1;
      this.parts.forEach((_, j) => this.fill(j));
      this.changed();
    });
  }

  /** Group of each item by the column of the frames, or null. */
  frames() {
    return this.framed < 0 ? null : this.items.groupsOf(this.framed).of;
  }

  /**
   * Items that are in the chosen groups of every column but one.
   * @param {Uint8Array | null} found items to choose from; null for all
   * @param {number} except
   * @returns {Uint8Array | null}
   */
  keep(found, except = -1) {
    const rules = [...this.chosen].filter(([column]) => column !== except);
    if (!rules.length) return found;
    const kept = found ? found.slice() : new Uint8Array(this.items.n).fill(1);
    for (const [column, groups] of rules) {
      const { of } = this.items.groupsOf(column);
      for (let i = 0; i < kept.length; i++) if (kept[i] && !groups.has(of[i])) kept[i] = 0;
    }
    return kept;
  }

  /** Fills an open part with its groups. */
  fill(/** @type {number} */ column) {
    const part = this.parts[column];
    if (!part.open) return;
    const { labels } = this.items.groupsOf(column);
    const list = make("div", "groups");
    labels.forEach((label, group) => {
      const line = make("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.checked = this.chosen.get(column)?.has(group) ?? false;
      box.addEventListener("change", () => this.choose(column, group, box.checked));
      line.append(box);
      if (column === this.framed) {
        const color = make("span", "color");
        color.style.background = groupColor(Math.min(group, MOST_FRAMED));
        line.append(color);
      }
      line.append(make("span", "value", label), make("span", "number"));
      list.append(line);
    });
    part.replaceChildren(part.firstElementChild ?? make("summary"), list);
    this.count(column);
  }

  choose(/** @type {number} */ column, /** @type {number} */ group, /** @type {boolean} */ on) {
    const groups = this.chosen.get(column) ?? new Set();
    if (on) groups.add(group);
    else groups.delete(group);
    if (groups.size) this.chosen.set(column, groups);
    else this.chosen.delete(column);
    this.changed();
  }

  /** Writes how many of the items that are found, by search and other columns, each group holds. */
  countAll(/** @type {Uint8Array | null} */ found) {
    this.found = found;
    this.parts.forEach((part, column) => {
      if (part.open) this.count(column);
    });
    byId("clear-filters").hidden = !this.active && this.framed < 0;
  }

  count(/** @type {number} */ column) {
    const { labels, counts, of } = this.items.groupsOf(column);
    const kept = this.keep(this.found, column);
    let shown = counts;
    if (kept) {
      shown = labels.map(() => 0);
      for (let i = 0; i < kept.length; i++) {
        if (kept[i] && this.items.cellOf[i] >= 0) shown[of[i]]++;
      }
    }
    this.parts[column].querySelectorAll(".number").forEach((element, group) => {
      element.textContent = shown[group].toLocaleString("en");
    });
  }
}
