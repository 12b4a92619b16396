// Which pairs a list holds, and in which order.

/** @typedef {import("./pairing.js").Entry} Entry */
/** @typedef {import("./pairing.js").Pairing} Pairing */
/** @typedef {"all" | "check" | "changed" | "confirmed" | "lonely"} Filter */

const COLLATOR = new Intl.Collator("en", { numeric: true });

export function isPair(/** @type {Entry} */ entry) {
  return entry.left >= 0 && entry.right >= 0;
}

/** @type {Record<Filter, (entry: Entry) => boolean>} */
export const FILTERS = {
  all: () => true,
  check: (entry) => isPair(entry) && !entry.answered,
  changed: (entry) => entry.changed,
  confirmed: (entry) => entry.answered,
  lonely: (entry) => !isPair(entry),
};

/** Pairs to check come first, then items without partner, then what was answered. */
function bucket(/** @type {Entry} */ entry) {
  if (entry.aside) return 3;
  return entry.answered ? 2 : isPair(entry) ? 0 : 1;
}

export class Ordering {
  /** @param {Pairing} pairing */
  constructor(pairing) {
    this.pairing = pairing;
    /** @type {number[][]} place of each item among the sorted names of its side */
    this.places = [[], []];
  }

  /** Sorts names once, not at every change. */
  sortNames() {
    this.places = this.pairing.items.map(({ names }) => {
      const order = [...names.keys()].sort((a, b) => COLLATOR.compare(names[a], names[b]));
      /** @type {number[]} */
      const places = [];
      order.forEach((slot, place) => (places[slot] = place));
      return places;
    });
  }

  /** Whether a name of an entry has a text. */
  has(/** @type {Entry} */ { left, right }, /** @type {string} */ text) {
    const { pairing } = this;
    return [pairing.nameOf(0, left), pairing.nameOf(1, right)].some((name) =>
      name.toLowerCase().includes(text),
    );
  }

  byName(/** @type {Entry} */ a, /** @type {Entry} */ b) {
    const [lefts, rights] = this.places;
    if (a.left < 0 !== b.left < 0) return a.left < 0 ? 1 : -1;
    return a.left < 0 ? rights[a.right] - rights[b.right] : lefts[a.left] - lefts[b.left];
  }

  /**
   * Keys of the entries to show, in order.
   * @param {Entry[]} entries
   * @param {Filter} filter
   * @param {string} text that names must have
   * @param {string} how they are sorted
   */
  keys(entries, filter, text, how) {
    const wanted = FILTERS[filter];
    const shown = entries.filter((each) => wanted(each) && (!text || this.has(each, text)));
    const sign = how === "surest" ? -1 : 1;
    shown.sort((a, b) => {
      if (how === "name") return this.byName(a, b);
      if (how === "changed" && a.changed !== b.changed) return a.changed ? -1 : 1;
      return bucket(a) - bucket(b) || sign * (a.share - b.share) || this.byName(a, b);
    });
    return shown.map((each) => each.key);
  }
}
