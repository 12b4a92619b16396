// Two collections and their pairs, as the server last told and as they were answered since.

/** @typedef {import("../shared/server.js").Server} Server */
/** @typedef {import("../shared/server.js").Job} Job */
/** @typedef {0 | 1} Side left or right */

/**
 * @typedef {object} MatchState What the server tells after every change.
 * @property {number} version
 * @property {string} title
 * @property {null | "pictures" | "texts" | "table"} kind
 * @property {{title: string, fixed: boolean, total: number, nReady: number, nFailed: number}[]} sides
 * @property {string} missing why nothing can be matched yet
 * @property {{version: number, settled: boolean, nPairs: number, nAnswered: number,
 *   nChanged: number, nAside: number, nWrong: number, expected: number | null,
 *   interval: [number, number] | null, doubts: string[], summary: string, advice: string,
 *   seconds: number | null, stale: number}} matching
 * @property {{automatic: boolean, features: string[]}} settings
 * @property {{available: boolean, why: string}} content
 * @property {Job[]} jobs
 * @property {string | null} undo
 * @property {string | null} redo
 * @property {import("../shared/server.js").Notice | null} notice
 * @property {{id: string, name: string, bytes: number}[]} downloads
 * @property {{uploadBytes: number, items: number}} limits
 */

/**
 * @typedef {object} Collection
 * @property {string[]} names
 * @property {string[] | null} words
 * @property {boolean[]} ready
 * @property {{name: string, reason: string}[]} failed
 */

/**
 * @typedef {object} Entry A line of the list: a pair, or an item without partner.
 * @property {number} key
 * @property {number} left slot, or -1
 * @property {number} right slot, or -1
 * @property {number} share probability that the pair is right, as far as known
 * @property {boolean} answered
 * @property {boolean} changed
 * @property {boolean} aside
 */

const BETWEEN = 500; // milliseconds between two lists of names while files are read

/** Entries are named by numbers: pairs and left items by the left slot, right items below 0. */
export function rightKey(/** @type {number} */ slot) {
  return -1 - slot;
}

/** @returns {Collection} */
function nobody() {
  return { names: [], words: null, ready: [], failed: [] };
}

/** Other text if the items may be others. */
function itemsKey(/** @type {MatchState} */ state) {
  const sides = state.sides.map((side) => [side.title, side.total, side.nReady, side.nFailed]);
  return JSON.stringify([state.kind, ...sides]);
}

/** Events: "items" when names or what is ready has changed, "pairs" when pairs or answers have. */
export class Pairing extends EventTarget {
  /** @param {Server} server */
  constructor(server) {
    super();
    this.server = server;
    /** @type {Collection[]} left and right */
    this.items = [nobody(), nobody()];
    /** @type {number[]} right slot of each left one, or -1 */
    this.partner = [];
    /** @type {number[]} left slot of each right one, or -1 */
    this.holder = [];
    /** @type {number[]} of each left slot */
    this.confidence = [];
    /** @type {Set<number>} left slots */
    this.answered = new Set();
    /** @type {Set<number>} left slots */
    this.changed = new Set();
    /** @type {Set<number>[]} slots of both sides */
    this.aside = [new Set(), new Set()];
    /** @type {number[]} left slots, the most helpful first */
    this.questions = [];
    this.version = -1;
    this.itemsKey = "";
    this.asking = { items: false, pairs: false };
    this.nSending = 0; // changes that the server has not answered
    this.nSent = 0; // changes so far
    this.askedAt = -1; // version of the state when pairs were asked for last
    this.isStale = false; // pairs here may differ from those of the server
    this.epoch = 0; // how often all was forgotten; late answers to older questions are ignored
    this.run = Date.now().toString(36); // part of addresses: other runs have other pictures
  }

  /** @type {MatchState | null} */
  get state() {
    return this.server.state;
  }

  get isPictures() {
    return this.state?.kind === "pictures";
  }

  /** Forgets what is known of an earlier run of the server. */
  forget() {
    this.version = this.askedAt = -1;
    this.itemsKey = "";
    this.asking = { items: false, pairs: false };
    this.nSending = 0;
    this.epoch++;
    this.run = Date.now().toString(36);
  }

  nameOf(/** @type {number} */ side, /** @type {number} */ slot) {
    return this.items[side].names[slot] ?? "";
  }

  /** Whether all that the server has is here. */
  get current() {
    const { state } = this;
    return (
      !!state &&
      !this.nSending &&
      this.version === state.matching.version &&
      this.itemsKey === itemsKey(state)
    );
  }

  /** Fetches what has changed. */
  follow() {
    this.fetchItems();
    this.fetchPairs();
  }

  async fetchItems() {
    if (this.asking.items) return;
    const { epoch } = this;
    this.asking.items = true;
    try {
      while (this.state && this.itemsKey !== itemsKey(this.state)) {
        const key = itemsKey(this.state);
        const { sides } = await this.server.get(`${this.server.base}/items`);
        if (epoch !== this.epoch) return;
        const others = this.items.some((before, side) =>
          before.names.some((name, slot) => name !== sides[side].names[slot]),
        );
        if (others) this.run = Date.now().toString(36);
        this.items = sides;
        this.itemsKey = key;
        this.dispatchEvent(new Event("items"));
        const reading = this.state?.jobs.some((job) => job.kind === "reading");
        if (reading) await new Promise((resolve) => setTimeout(resolve, BETWEEN));
      }
    } catch {
      // The next state asks again; a server that is gone is shown by its banner.
    } finally {
      if (epoch === this.epoch) this.asking.items = false;
    }
  }

  async fetchPairs() {
    if (this.asking.pairs) return;
    const { epoch } = this;
    this.asking.pairs = true;
    try {
      while (this.state && !this.nSending) {
        const { version, matching } = this.state;
        // Pairs may be newer than the state; then the next state comes soon.
        const known = this.version === matching.version || this.askedAt === version;
        if (known && !this.isStale) break;
        this.askedAt = version;
        const { nSent } = this;
        const found = await this.server.get(`${this.server.base}/pairs`);
        if (epoch !== this.epoch) return;
        if (nSent === this.nSent) this.take(found); // otherwise it is older than what is shown
      }
    } catch {
      this.isStale = true; // the next state asks again
    } finally {
      if (epoch === this.epoch) this.asking.pairs = false;
    }
  }

  take(/** @type {any} */ found) {
    this.isStale = false;
    this.version = found.version;
    this.partner = found.partner;
    this.confidence = found.confidence;
    this.answered = new Set(found.answered);
    this.changed = new Set(found.changed);
    this.aside = found.aside.map((/** @type {number[]} */ slots) => new Set(slots));
    this.questions = found.questions;
    this.holder = [];
    this.partner.forEach((right, left) => {
      if (right >= 0) this.holder[right] = left;
    });
    this.dispatchEvent(new Event("pairs"));
  }

  /** The pair of a key, or the item that has none; null if the key names neither. */
  entry(/** @type {number} */ key) {
    const side = key < 0 ? 1 : 0;
    const slot = side ? -1 - key : key;
    if (!this.items[side].ready[slot]) return null;
    if (side && this.holderOf(slot) >= 0) return null; // has a line with its partner
    const right = side ? slot : (this.partner[slot] ?? -1);
    /** @type {Entry} */
    const found = {
      key,
      left: side ? -1 : slot,
      right,
      share: this.confidence[slot] ?? 0,
      answered: !side && this.answered.has(slot),
      changed: !side && this.changed.has(slot),
      aside: this.aside[side].has(slot),
    };
    return found;
  }

  /** Left item that has a right one, or -1. */
  holderOf(/** @type {number} */ right) {
    return this.holder[right] ?? -1;
  }

  /** All pairs and items without partner. */
  entries() {
    const keys = [
      ...this.items[0].names.keys(),
      ...[...this.items[1].names.keys()].map(rightKey),
    ];
    return keys.map((key) => this.entry(key)).filter((entry) => entry !== null);
  }

  /** Shows a change at once and sends it; what the server refuses goes back. */
  async change(
    /** @type {string} */ path,
    /** @type {object} */ body,
    /** @type {() => void} */ show = () => {},
  ) {
    this.nSent++;
    this.nSending++;
    const { epoch } = this;
    show();
    this.dispatchEvent(new Event("pairs"));
    try {
      await this.server.post(`${this.server.base}/${path}`, body);
    } finally {
      if (epoch === this.epoch) {
        this.nSending--;
        this.isStale = true;
        this.fetchPairs();
      }
    }
  }

  /** Confirms or corrects a pair. */
  answer(/** @type {number} */ left, /** @type {number} */ right) {
    return this.change("answer", { pairs: [[left, right]] }, () => {
      const [before, other] = [this.partner[left] ?? -1, this.holderOf(right)];
      if (before !== right) {
        if (other >= 0) this.join(other, before);
        else if (before >= 0) this.holder[before] = -1;
        this.join(left, right);
      }
      this.answered.add(left);
      this.aside[0].delete(left);
      this.aside[1].delete(right);
    });
  }

  join(/** @type {number} */ left, /** @type {number} */ right) {
    this.partner[left] = right;
    this.changed.add(left);
    if (right >= 0) this.holder[right] = left;
  }

  /** Takes a pair apart that is wrong; it does not come again. */
  ruleOut(/** @type {number} */ left, /** @type {number} */ right) {
    return this.change("wrong", { pairs: [[left, right]] }, () => {
      this.partner[left] = -1;
      this.holder[right] = -1;
      this.answered.delete(left);
    });
  }

  release(/** @type {number} */ left) {
    return this.change("release", { items: [left] }, () => this.answered.delete(left));
  }

  setAside(/** @type {Side} */ side, /** @type {number} */ slot) {
    return this.change("aside", { side, items: [slot] }, () => {
      const left = side ? this.holderOf(slot) : slot;
      const right = side ? slot : (this.partner[slot] ?? -1);
      if (left >= 0) this.partner[left] = -1;
      if (right >= 0) this.holder[right] = -1;
      this.answered.delete(left);
      this.aside[side].add(slot);
    });
  }

  putBack(/** @type {Side} */ side, /** @type {number} */ slot) {
    return this.change("back", { side, items: [slot] }, () => this.aside[side].delete(slot));
  }
}
