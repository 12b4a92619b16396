// The list of pairs: rows that follow what changes, and the keys that lead from pair to pair.
import { byId } from "../../../images/page/panel.js";
import { FILTERS, Ordering, isPair } from "./ordering.js";
import { Row } from "./rows.js";

/** @typedef {import("./answers.js").Answers} Answers */
/** @typedef {import("./thumbnails.js").Faces} Faces */
/** @typedef {import("./ordering.js").Filter} Filter */
/** @typedef {import("./pairing.js").Entry} Entry */
/** @typedef {import("./pairing.js").Pairing} Pairing */
/** @typedef {import("./pairing.js").Side} Side */

const CHUNK = 60; // rows that are made at a time
const NEAR = 20; // rows that are surely in the window, before its middle
const BUDGET = 25; // milliseconds of work at a time
const AHEAD = "800px"; // below the window, where more rows are made already

/** @type {Record<Filter, string>} */
const NOTHING = {
  all: "There is nothing to show yet.",
  check: "Every pair is confirmed.",
  changed: "The last match changed nothing.",
  confirmed: "No pair is confirmed yet.",
  lonely: "Every item has a partner.",
};

/** Events: "open" asks for the candidates of `current`, "enlarge" for a large view; "visit" when it changed. */
export class PairList extends EventTarget {
  /**
   * @param {Pairing} pairing
   * @param {Faces} faces
   * @param {Answers} answers
   * @param {() => boolean} isBusy whether somebody is at work in the list
   */
  constructor(pairing, faces, answers, isBusy) {
    super();
    this.pairing = pairing;
    this.faces = faces;
    this.answers = answers;
    this.isBusy = isBusy;
    this.element = byId("pairs");
    this.more = byId("more");
    this.search = /** @type {HTMLInputElement} */ (byId("search"));
    this.sort = /** @type {HTMLSelectElement} */ (byId("sort"));
    /** @type {Filter} */
    this.filter = "all";
    /** @type {number[]} keys of all entries that the list holds */
    this.order = [];
    /** @type {Map<number, Row>} those that were made, the first ones of the order */
    this.rows = new Map();
    /** @type {Set<number>} keys of rows that show an older state */
    this.behind = new Set();
    this.timer = 0;
    /** @type {number | null} key of the entry that keys are about */
    this.current = null;
    this.ordering = new Ordering(pairing);
    this.watcher = new IntersectionObserver(
      (seen) => {
        if (seen.some((each) => each.isIntersecting)) this.showMore();
      },
      { root: byId("scroll"), rootMargin: AHEAD },
    );
    this.listen();
  }

  listen() {
    for (const each of this.filterButtons()) {
      each.addEventListener("click", () => {
        this.filter = /** @type {Filter} */ (each.dataset.filter);
        for (const other of this.filterButtons()) {
          other.setAttribute("aria-pressed", String(other === each));
        }
        this.arrange();
        this.announce();
      });
    }
    this.sort.addEventListener("change", () => this.arrange());
    byId("sort-again").addEventListener("click", () => {
      this.arrange();
      this.sort.focus();
    });
    this.search.addEventListener("input", () => {
      this.arrange();
      this.announce();
    });
    this.more.addEventListener("click", () => {
      const next = this.order[this.rows.size];
      this.showMore();
      this.focus(next);
    });
    this.element.addEventListener("click", (event) => this.clicked(event));
    this.element.addEventListener("keydown", (event) => this.pressed(event));
    this.element.addEventListener("focusin", (event) => {
      const row = this.rowOf(event.target);
      if (row && row.key !== this.current) this.visit(row.key);
    });
  }

  /** @returns {NodeListOf<HTMLButtonElement>} */
  filterButtons() {
    return byId("filters-of-pairs").querySelectorAll("button");
  }

  announce() {
    this.answers.say(`${this.order.length.toLocaleString("en")} shown`);
  }

  /** Keys of the entries to show, in order. */
  ordered(/** @type {Entry[]} */ entries) {
    return this.ordering.keys(entries, this.filter, this.text, this.sort.value);
  }

  /** What is searched for. */
  get text() {
    return this.search.value.trim().toLowerCase();
  }

  /** Shows everything in its order, from the beginning. */
  arrange() {
    const entries = this.pairing.entries();
    this.order = this.ordered(entries);
    this.count(entries);
    const [inside, busy] = [this.element.contains(document.activeElement), this.isBusy()];
    const kept = this.rows;
    this.rows = new Map();
    this.element.replaceChildren();
    byId("scroll").scrollTop = Math.min(byId("scroll").scrollTop, this.element.offsetTop);
    this.showMore(kept);
    const stays = busy && this.current !== null && this.rows.has(this.current);
    if (!stays) this.current = this.order[0] ?? null;
    this.rowAt(this.current)?.setCurrent(true);
    if (inside) this.focus(this.current);
    byId("sort-again").hidden = true;
    this.dispatchEvent(new Event("visit"));
  }

  /** Shows what has changed, each pair where it is; sorts again if nobody would be disturbed. */
  follow() {
    const entries = this.pairing.entries();
    const order = this.ordered(entries);
    if (!this.isBusy()) return this.arrange();
    const there = new Map(entries.map((each) => [each.key, each]));
    const before = new Set(this.order);
    const gone = this.order.filter((key) => !there.has(key));
    for (const key of gone) this.drop(key);
    // What fits no longer stays; what is new comes last.
    const kept = this.order.filter((key) => there.has(key));
    this.order = [...kept, ...order.filter((key) => !before.has(key))];
    this.behind = new Set([...this.rowsFromWindow(), ...this.rows.keys()]);
    this.catchUp();
    byId("sort-again").hidden = this.order.every((key, k) => key === order[k]);
    this.count(entries);
    if (this.rows.size === kept.length) this.showMore(); // all were shown
    else this.offerMore();
  }

  /** Keys of the rows in the window and below. */
  rowsFromWindow() {
    const box = byId("scroll").getBoundingClientRect();
    const middle = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    const keys = [...this.rows.keys()];
    const found = this.rowOf(middle);
    return found ? keys.slice(Math.max(0, keys.indexOf(found.key) - NEAR)) : keys;
  }

  /** Updates rows, a few at a time, so that the page stays quick. */
  catchUp() {
    clearTimeout(this.timer);
    const end = performance.now() + BUDGET;
    for (const key of this.behind) {
      if (performance.now() > end) {
        this.timer = window.setTimeout(() => this.catchUp());
        return;
      }
      this.behind.delete(key);
      const entry = this.pairing.entry(key);
      if (entry) this.rows.get(key)?.update(entry);
    }
  }

  /** Takes a row away whose item has got a partner. */
  drop(/** @type {number} */ key) {
    const row = this.rows.get(key);
    this.rows.delete(key);
    const k = this.order.indexOf(key);
    const inside = row?.element.contains(document.activeElement);
    if (this.current === key) {
      const next = this.order.slice(k + 1).find((each) => this.rows.has(each));
      this.current = next ?? [...this.rows.keys()].at(-1) ?? null;
      this.rowAt(this.current)?.setCurrent(true);
      if (inside) this.rowAt(this.current)?.element.focus();
    }
    row?.element.remove();
  }

  count(/** @type {Entry[]} */ entries) {
    for (const each of this.filterButtons()) {
      const wanted = FILTERS[/** @type {Filter} */ (each.dataset.filter)];
      const n = entries.reduce((sum, entry) => sum + Number(wanted(entry)), 0);
      const number = /** @type {HTMLElement} */ (each.querySelector(".number"));
      number.textContent = n.toLocaleString("en");
    }
    const nothing = byId("nothing");
    nothing.hidden = this.order.length > 0;
    nothing.textContent = this.text ? "Nothing has this name." : NOTHING[this.filter];
  }

  /** Makes the next rows; those that were made before are used again. */
  showMore(/** @type {Map<number, Row>} */ kept = new Map()) {
    const rows = [];
    for (const key of this.order.slice(this.rows.size, this.rows.size + CHUNK)) {
      const entry = this.pairing.entry(key);
      if (!entry) continue;
      let row = kept.get(key);
      if (row) {
        row.update(entry);
        row.setCurrent(false);
      } else row = new Row(this.pairing, this.faces, entry);
      this.rows.set(key, row);
      rows.push(row.element);
    }
    this.element.append(...rows);
    this.offerMore();
  }

  offerMore() {
    const n = this.order.length - this.rows.size;
    this.more.hidden = n <= 0;
    this.more.textContent = `Show more (${n.toLocaleString("en")})`;
    this.watcher.unobserve(this.more);
    if (n > 0) this.watcher.observe(this.more); // tells again if it is still in sight
    let place = 0;
    for (const row of this.rows.values()) {
      row.element.setAttribute("aria-posinset", String(++place));
      row.element.setAttribute("aria-setsize", String(this.order.length));
    }
  }

  rowAt(/** @type {number | null} */ key) {
    return key === null ? undefined : this.rows.get(key);
  }

  rowOf(/** @type {EventTarget | null} */ target) {
    const found = target instanceof Element ? target.closest("article.duo") : null;
    return found instanceof HTMLElement ? this.rows.get(Number(found.dataset.key)) : undefined;
  }

  /** The entry that keys are about. */
  get entry() {
    return this.current === null ? null : this.pairing.entry(this.current);
  }

  /** Makes an entry the current one. */
  visit(/** @type {number} */ key) {
    this.rowAt(this.current)?.setCurrent(false);
    this.current = key;
    while (!this.rows.has(key) && this.rows.size < this.order.length) this.showMore();
    this.rowAt(key)?.setCurrent(true);
    this.dispatchEvent(new Event("visit"));
  }

  /** @param {number | null | undefined} key @param {string} act of the button to focus, if it is there */
  focus(key, act = "", scroll = true) {
    if (key === null || key === undefined) return;
    this.visit(key);
    const row = this.rowAt(key);
    if (!row) return;
    const found = act && row.acts.querySelector(`[data-act="${act}"]`);
    const target = found instanceof HTMLElement ? found : row.element;
    target.focus({ preventScroll: true });
    if (scroll) row.element.scrollIntoView({ block: "nearest" });
  }

  /** The next pair that nobody has answered, from the top again after the last one. */
  nextToCheck(/** @type {number} */ key) {
    const from = this.order.indexOf(key) + 1;
    const round = [...this.order.slice(from), ...this.order.slice(0, from)];
    return round.find((each) => {
      const entry = each === key ? null : this.pairing.entry(each);
      return entry && FILTERS.check(entry);
    });
  }

  /** The entry before or after another one, if there is one. */
  beside(/** @type {number} */ key, /** @type {number} */ step) {
    return this.order[this.order.indexOf(key) + step];
  }

  /** Does what a button or a key asks for. */
  act(/** @type {string} */ name, /** @type {Entry} */ entry, button = false, scroll = true) {
    const { answers } = this;
    /** @type {[Side, number]} */
    const [side, slot] = entry.left < 0 ? [1, entry.right] : [0, entry.left];
    if (name === "right" && isPair(entry) && !entry.answered) {
      answers.choose(entry.left, entry.right);
      this.focus(this.nextToCheck(entry.key) ?? entry.key, button ? "right" : "", scroll);
    } else if (name === "wrong" && isPair(entry)) {
      const next = this.nextToCheck(entry.key);
      answers.ruleOut(entry.left, entry.right);
      this.focus(next ?? entry.key, "", scroll);
    } else if (name === "none" && !entry.aside) {
      const next = this.nextToCheck(entry.key);
      answers.noPartner(side, slot);
      this.focus(next ?? entry.key, "", scroll);
    } else if (name === "back" && (entry.aside || entry.answered)) answers.takeBack(entry);
    else if (name === "open" && !entry.aside) this.dispatchEvent(new Event("open"));
    else if (name === "enlarge") this.dispatchEvent(new Event("enlarge"));
  }

  clicked(/** @type {MouseEvent} */ event) {
    const row = this.rowOf(event.target);
    if (!row) return;
    if (row.key !== this.current) this.visit(row.key);
    const entry = this.pairing.entry(row.key);
    const target = /** @type {Element} */ (event.target);
    const button = /** @type {HTMLElement | null} */ (target.closest("[data-act]"));
    // Browsers count no clicks when a key presses a button.
    if (entry && button) this.act(button.dataset.act ?? "", entry, true, event.detail === 0);
    else if (entry && target.closest(".face:not(.none)")) this.act("enlarge", entry);
  }

  pressed(/** @type {KeyboardEvent} */ event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = this.rowOf(event.target);
    const entry = row && this.pairing.entry(row.key);
    if (!row || !entry) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    /** @type {Record<string, string>} */
    const acts = { y: "right", x: "wrong", c: "open", n: "none", u: "back", l: "enlarge" };
    if (event.target === row.element) acts.Enter = "open";
    if (acts[key]) this.act(acts[key], entry);
    else if (!this.walk(key, row.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Goes to another entry by an arrow key; whether it was one. */
  walk(/** @type {string} */ key, /** @type {number} */ from) {
    const k = this.order.indexOf(from);
    const last = this.order.length - 1;
    /** @type {Record<string, number>} */
    const steps = {
      ArrowLeft: k - 1,
      ArrowRight: k + 1,
      ArrowUp: k - this.columns(),
      ArrowDown: k + this.columns(),
      Home: 0,
      End: this.rows.size - 1,
    };
    const to = steps[key];
    if (to === undefined) return false;
    if (to >= 0) this.focus(this.order[Math.min(to, last)]);
    return true;
  }

  /** How many pairs are side by side. */
  columns() {
    const [first, ...others] = /** @type {HTMLElement[]} */ ([...this.element.children].slice(0, 20));
    const n = others.findIndex((each) => each.offsetTop !== first.offsetTop);
    return n < 0 ? 1 : n + 1;
  }
}
