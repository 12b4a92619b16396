// Names and columns of the items of a wall: loading, searching, counting, saving.

/**
 * @typedef {object} Column
 * @property {string} name
 * @property {string[]} values different texts; the first is ""
 * @property {Uint32Array} codes number of the text of each item
 */

/**
 * @typedef {object} Groups Items by a column: by its texts, or numbers in ranges.
 * @property {string[]} labels
 * @property {number[]} counts
 * @property {Uint16Array} of group of each item
 */

const SLICE = 40000; // items that are looked at in one task
const MOST_GROUPS = 60;
const MOST_RANGES = 6;
const MOST_PLAIN_NUMBERS = 16; // more different numbers are put into ranges

/** Lets the browser draw and react before the next slice of long work. */
export function pause() {
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => resolve(undefined);
    channel.port2.postMessage(0);
  });
}

/** Numbers from text in base64. */
export function decodeNumbers(/** @type {string} */ text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return new Int32Array(bytes.buffer);
}

/** Where a cell is, counted from 1; tables and programs count from 0. */
export function placeWords(/** @type {number} */ cell, /** @type {number} */ columns) {
  return `row ${Math.floor(cell / columns) + 1}, column ${(cell % columns) + 1}`;
}

export class Items {
  /**
   * @param {{n: number, rows: number, columns: number, chunk: number, headings: string[]}} meta
   * @param {import("./sheets.js").Source} source
   */
  constructor(meta, source) {
    this.n = meta.n;
    this.gridColumns = meta.columns;
    this.chunk = meta.chunk;
    this.source = source;
    this.cells = new Int32Array(meta.rows * meta.columns).fill(-1);
    this.cellOf = new Int32Array(meta.n).fill(-1); // the first one of each item
    /** @type {string[]} */
    this.names = [];
    /** @type {string[]} in small letters, to search */
    this.plain = [];
    /** @type {Column[]} */
    this.columns = meta.headings.map((name) => ({
      name,
      values: [""],
      codes: new Uint32Array(meta.n),
    }));
    this.nPlaced = 0;
    this.complete = false;
    /** @type {Map<number, Groups>} */
    this.groups = new Map();
  }

  /** @param {() => void} placed called when it is known which item is in each cell */
  async load(placed) {
    this.cells.set(decodeNumbers(await this.source.read("cells")));
    for (let cell = this.cells.length - 1; cell >= 0; cell--) {
      const item = this.cells[cell];
      if (item < 0) continue;
      if (this.cellOf[item] < 0) this.nPlaced++;
      this.cellOf[item] = cell;
    }
    placed();
    /** @type {Map<string, number>[]} */
    const known = this.columns.map(() => new Map([["", 0]]));
    for (let start = 0, k = 0; start < this.n; start += this.chunk, k++) {
      const part = await this.source.read(`items-${k}`);
      for (const name of part.names) {
        this.names.push(name);
        this.plain.push(name.toLowerCase());
      }
      this.columns.forEach((column, j) => {
        const codes = decodeNumbers(part.columns[j].codes);
        const own = part.columns[j].values.map((/** @type {string} */ value) => {
          let code = known[j].get(value);
          if (code === undefined) {
            code = column.values.push(value) - 1;
            known[j].set(value, code);
          }
          return code;
        });
        for (let i = 0; i < codes.length; i++) column.codes[start + i] = own[codes[i]];
      });
      await pause();
    }
    this.complete = true;
  }

  value(/** @type {number} */ item, /** @type {number} */ column) {
    return this.columns[column].values[this.columns[column].codes[item]];
  }

  row(/** @type {number} */ item) {
    return Math.floor(this.cellOf[item] / this.gridColumns);
  }

  column(/** @type {number} */ item) {
    return this.cellOf[item] % this.gridColumns;
  }

  /** The first item of a name, or -1. */
  find(/** @type {string} */ name) {
    return this.names.indexOf(name);
  }

  /**
   * Items that hold a text, in their names or in a column; null if there is nothing to look for.
   * @param {string} text
   * @param {string} field "all", "name" or the number of a column
   * @param {() => boolean} stale whether the answer is not wanted any more
   * @returns {Promise<Uint8Array | null>}
   */
  async search(text, field, stale) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return null;
    const found = new Uint8Array(this.n);
    if (field === "all" || field === "name") {
      for (let start = 0; start < this.n; start += SLICE) {
        const end = Math.min(start + SLICE, this.n);
        for (let i = start; i < end; i++) if (this.plain[i].includes(wanted)) found[i] = 1;
        if (end < this.n) await pause();
        if (stale()) return null;
      }
    }
    for (let j = 0; j < this.columns.length; j++) {
      if (field !== "all" && field !== String(j)) continue;
      const { values, codes } = this.columns[j];
      const holds = new Uint8Array(values.length);
      for (let start = 0; start < values.length; start += SLICE) {
        const end = Math.min(start + SLICE, values.length);
        for (let k = start; k < end; k++) {
          if (values[k].toLowerCase().includes(wanted)) holds[k] = 1;
        }
        if (end < values.length) await pause();
        if (stale()) return null;
      }
      for (let i = 0; i < this.n; i++) if (holds[codes[i]]) found[i] = 1;
      await pause();
    }
    return found;
  }

  /** Items by a column, the largest group first; numbers by ranges. */
  groupsOf(/** @type {number} */ column) {
    const known = this.groups.get(column);
    if (known) return known;
    const { values, codes } = this.columns[column];
    const counts = new Float64Array(values.length);
    for (let i = 0; i < this.n; i++) if (this.cellOf[i] >= 0) counts[codes[i]]++;
    const made = rangesOf(values, counts) ?? largest(values, counts);
    /** @type {Groups} */
    const groups = { labels: made.labels, counts: [], of: new Uint16Array(this.n) };
    groups.counts = made.labels.map(() => 0);
    values.forEach((_, code) => (groups.counts[made.of[code]] += counts[code]));
    for (let i = 0; i < this.n; i++) groups.of[i] = made.of[codes[i]];
    if (this.complete) this.groups.set(column, groups);
    return groups;
  }

  /** CSV of some items: name, place and all columns. */
  csv(/** @type {number[]} */ chosen) {
    const quote = (/** @type {string | number} */ cell) => {
      const text = String(cell);
      return /[",\n\r]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const heading = ["name", "row", "column", ...this.columns.map((each) => each.name)];
    const lines = chosen.map((item) => [
      this.names[item],
      this.row(item),
      this.column(item),
      ...this.columns.map((_, j) => this.value(item, j)),
    ]);
    return [heading, ...lines].map((cells) => cells.map(quote).join(",") + "\n").join("");
  }
}

/** @typedef {{labels: string[], of: Uint16Array}} Made */

/** Groups of a column of texts; all but the most common share the last one. */
function largest(/** @type {string[]} */ values, /** @type {Float64Array} */ counts) {
  const order = values.map((_, code) => code).filter((code) => counts[code] > 0);
  order.sort((a, b) => counts[b] - counts[a] || (values[a] < values[b] ? -1 : 1));
  const kept = order.length > MOST_GROUPS ? order.slice(0, MOST_GROUPS - 1) : order;
  const labels = kept.map((code) => values[code] || "(empty)");
  if (kept.length < order.length) labels.push(`(${order.length - kept.length} others)`);
  const of = new Uint16Array(values.length).fill(kept.length);
  kept.forEach((code, group) => (of[code] = group));
  return { labels, of };
}

/**
 * Groups of a column of many different numbers: ranges with about as many items each.
 * @param {string[]} values
 * @param {Float64Array} counts
 * @returns {Made | null}
 */
function rangesOf(values, counts) {
  const numbers = values.map((value) => (value.trim() === "" ? NaN : Number(value)));
  const used = values.map((_, code) => code).filter((code) => counts[code] > 0 && values[code]);
  if (used.length <= MOST_PLAIN_NUMBERS) return null;
  if (used.some((code) => !Number.isFinite(numbers[code]))) return null;
  used.sort((a, b) => numbers[a] - numbers[b]);
  const total = used.reduce((sum, code) => sum + counts[code], 0);
  const of = new Uint16Array(values.length);
  /** @type {[number, number][]} */
  const ranges = [];
  let before = 0;
  for (const code of used) {
    const group = Math.min(Math.floor((before * MOST_RANGES) / total), MOST_RANGES - 1);
    if (ranges.length <= group) ranges.push([numbers[code], numbers[code]]);
    const last = ranges.length - 1;
    ranges[last][1] = numbers[code];
    of[code] = last;
    before += counts[code];
  }
  const shown = (/** @type {number} */ x) => String(Number(x.toPrecision(4)));
  const labels = ranges.map(([low, high]) =>
    low === high ? shown(low) : `${shown(low)} to ${shown(high)}`,
  );
  const empty = values.some((value, code) => counts[code] > 0 && !value);
  if (empty) {
    labels.push("(empty)");
    values.forEach((value, code) => {
      if (!value) of[code] = labels.length - 1;
    });
  }
  return { labels, of };
}
