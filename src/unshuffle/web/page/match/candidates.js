// Partners to choose from: the best candidates of an item, and any other by its name.
import { byId, make } from "../../../images/page/panel.js";

/** @typedef {import("./answers.js").Answers} Answers */
/** @typedef {import("./thumbnails.js").Faces} Faces */
/** @typedef {import("./pairing.js").Pairing} Pairing */
/** @typedef {import("./pairing.js").Entry} Entry */
/** @typedef {import("./pairing.js").Side} Side */
/** @typedef {{item: number, taken: number, answered: boolean}} Candidate */

const MOST_FOUND = 12; // names that a search shows

/** Candidates of one item, as buttons. */
export class Candidates {
  /**
   * @param {Pairing} pairing
   * @param {Faces} faces
   * @param {string} title
   * @param {(item: number) => void} choose
   */
  constructor(pairing, faces, title, choose) {
    this.pairing = pairing;
    this.faces = faces;
    this.choose = choose;
    /** @type {Side} */
    this.side = 0;
    this.slot = -1;
    this.without = -1;
    this.shown = "";
    this.element = make("section", "candidates");
    this.element.setAttribute("aria-label", title);
    this.title = make("h3", "", title);
    this.list = make("div", "candidate-list");
    this.search = /** @type {HTMLInputElement} */ (make("input"));
    this.search.type = "search";
    this.search.autocomplete = "off";
    this.search.spellcheck = false;
    this.found = make("div", "candidate-list");
    this.element.append(this.title, this.list, this.search, this.found);
    this.search.addEventListener("input", () => this.find());
    this.element.addEventListener("click", (event) => {
      const target = /** @type {Element} */ (event.target);
      const chosen = /** @type {HTMLElement | null} */ (target.closest("button.candidate"));
      if (chosen) this.choose(Number(chosen.dataset.item));
    });
  }

  /**
   * @param {Side} side of the item
   * @param {number} slot
   * @param {number} without a candidate that need not be offered
   */
  show(side, slot, without = -1) {
    const same = side === this.side && slot === this.slot;
    this.side = side;
    this.slot = slot;
    this.without = without;
    this.element.classList.toggle("words-only", !this.pairing.isPictures);
    if (!same) {
      this.shown = "";
      this.list.replaceChildren();
      this.search.value = "";
      const where = side ? "left" : "right";
      this.search.placeholder = `Search all names on the ${where}`;
      this.search.setAttribute("aria-label", this.search.placeholder);
    }
    this.find();
    return this.fetch();
  }

  async fetch() {
    const { side, slot, pairing } = this;
    this.title.hidden = this.list.hidden = side === 1; // only left items have candidates
    if (side === 1 || slot < 0) return;
    /** @type {Candidate[]} */
    let all;
    try {
      const { server } = pairing;
      all = (await server.get(`${server.base}/candidates/${slot}`)).candidates;
    } catch {
      return; // a state follows, or the banner of a lost server
    }
    if (slot !== this.slot || side !== this.side) return;
    const offered = all.filter((each) => each.item !== this.without);
    const shown = JSON.stringify([pairing.run, offered, pairing.answered.has(slot), pairing.partner[slot]]);
    if (shown === this.shown) return;
    this.shown = shown;
    const focused = this.focusedItem();
    this.list.replaceChildren(...offered.map((each, k) => this.button(each, k)));
    this.title.hidden = !offered.length;
    if (focused >= 0) this.buttonOf(focused)?.focus();
  }

  focusedItem() {
    const { activeElement } = document;
    if (!(activeElement instanceof HTMLElement) || !this.list.contains(activeElement)) return -1;
    return Number(activeElement.dataset.item ?? -1);
  }

  /** @returns {HTMLButtonElement | null} */
  buttonOf(/** @type {number} */ item) {
    return this.list.querySelector(`[data-item="${item}"]:not(:disabled)`);
  }

  /** The candidate of a number key. */
  numbered(/** @type {string} */ key) {
    /** @type {HTMLButtonElement | undefined} */
    const found = /^[1-9]$/.test(key)
      ? this.list.querySelectorAll("button")[Number(key) - 1]
      : undefined;
    return found && !found.disabled ? Number(found.dataset.item) : -1;
  }

  /** What keeps an item from being free, in words. */
  note(/** @type {Candidate} */ { item, taken, answered }) {
    const { pairing, side, slot } = this;
    const other = side ? 0 : 1;
    const present = side ? pairing.holderOf(slot) : (pairing.partner[slot] ?? -1);
    if (item === present) return pairing.answered.has(side ? item : slot) ? "confirmed" : "proposed";
    if (pairing.aside[other].has(item)) return "set aside";
    if (taken < 0) return "free";
    const name = pairing.nameOf(side, taken);
    return answered ? `confirmed with ${name}` : `now with ${name}`;
  }

  /** @param {Candidate} candidate @param {number} k number of the key that chooses it, from 0 */
  button(candidate, k = -1) {
    const { item, answered, taken } = candidate;
    const other = this.side ? 0 : 1;
    const button = /** @type {HTMLButtonElement} */ (make("button", "candidate"));
    button.type = "button";
    button.dataset.item = String(item);
    button.disabled = answered && taken !== this.slot;
    const about = make("span", "about");
    if (k >= 0 && k < 9) about.append(make("kbd", "", String(k + 1)));
    button.append(this.faces.small(other, item), about, make("span", "note", this.note(candidate)));
    button.setAttribute("aria-label", `${this.pairing.nameOf(other, item)}, ${this.note(candidate)}`);
    return button;
  }

  /** Shows items whose names have the text that was typed. */
  find() {
    const { pairing, side } = this;
    const other = side ? 0 : 1;
    const text = this.search.value.trim().toLowerCase();
    const { names, ready } = pairing.items[other];
    const found = [];
    for (let item = 0; text && item < names.length && found.length < MOST_FOUND; item++) {
      if (!ready[item] || !names[item].toLowerCase().includes(text)) continue;
      const taken = side ? (pairing.partner[item] ?? -1) : pairing.holderOf(item);
      const answered = pairing.answered.has(side ? item : taken);
      found.push(this.button({ item, taken, answered }));
    }
    if (text && !found.length) this.found.replaceChildren(make("p", "quiet", "Nothing has this name."));
    else this.found.replaceChildren(...found);
  }
}

/** The side of the page that offers other partners for the current entry. */
export class PartnerPanel {
  /**
   * @param {Pairing} pairing
   * @param {Faces} faces
   * @param {Answers} answers
   * @param {(key: number) => void} done called when a partner was chosen
   */
  constructor(pairing, faces, answers, done) {
    this.pairing = pairing;
    this.faces = faces;
    this.answers = answers;
    this.done = done;
    this.root = byId("panel");
    /** @type {Entry | null} */
    this.entry = null;
    this.face = "";
    this.candidates = new Candidates(pairing, faces, "Candidates", (item) => this.choose(item));
    const { element } = this.candidates;
    byId("panel-candidates").append(element);
    // Pictures are best compared side by side.
    for (const kind of ["pointerover", "focusin"]) {
      element.addEventListener(kind, (event) => {
        const target = /** @type {Element} */ (event.target);
        const over = /** @type {HTMLElement | null} */ (target.closest("button.candidate"));
        if (over) this.preview(Number(over.dataset.item));
      });
    }
    byId("rule-out").addEventListener("click", () => this.ruleOut());
    byId("left-aside").addEventListener("click", () => this.setAside(0));
    byId("right-aside").addEventListener("click", () => this.setAside(1));
    this.root.addEventListener("keydown", (event) => {
      const typing = event.target === this.candidates.search;
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (this.press(event.key)) event.preventDefault();
    });
  }

  get open() {
    return !this.root.hidden;
  }

  /** Chooses by a number key; whether it was one. */
  press(/** @type {string} */ key) {
    const item = this.open ? this.candidates.numbered(key) : -1;
    if (item >= 0) this.choose(item);
    return item >= 0;
  }

  show(/** @type {Entry} */ entry) {
    if (entry.key !== this.entry?.key) this.root.scrollTop = 0;
    this.entry = entry;
    this.root.hidden = false;
    const { pairing } = this;
    /** @type {[Side, number]} */
    const [side, slot] = entry.left >= 0 ? [0, entry.left] : [1, entry.right];
    byId("panel-title").textContent = `Which belongs to ${pairing.nameOf(side, slot)}?`;
    this.preview(side ? entry.left : entry.right);
    const { left, right } = entry;
    byId("rule-out").hidden = left < 0 || right < 0;
    byId("rule-out").textContent = `Not ${pairing.nameOf(1, right)}, and I do not know which`;
    for (const [each, id, item] of /** @type {[Side, string, number][]} */ ([
      [0, "left-aside", entry.left],
      [1, "right-aside", entry.right],
    ])) {
      byId(id).hidden = item < 0 || entry.aside;
      byId(id).textContent = `${pairing.nameOf(each, item)} has no partner`;
    }
    return this.candidates.show(side, slot);
  }

  /** Shows the item, and beside it a picture that may be its partner. */
  preview(/** @type {number} */ item) {
    const { entry, pairing } = this;
    if (!entry) return;
    const slots = entry.left >= 0 ? [entry.left, item] : [item, entry.right];
    const face = [pairing.run, ...slots].join("/");
    if (face === this.face) return;
    this.face = face;
    const both = pairing.isPictures && item >= 0;
    /** @type {Side[]} */
    const sides = both ? [0, 1] : [entry.left >= 0 ? 0 : 1];
    const faces = sides.map((side) => this.faces.small(side, slots[side]));
    byId("panel-face").className = both ? "faces" : "";
    byId("panel-face").replaceChildren(...faces);
  }

  close() {
    this.root.hidden = true;
    this.entry = null;
  }

  choose(/** @type {number} */ item) {
    const { entry } = this;
    if (!entry) return;
    if (entry.left >= 0) this.answers.choose(entry.left, item);
    else this.answers.choose(item, entry.right);
    this.done(entry.key);
  }

  ruleOut() {
    const { entry } = this;
    if (!entry || entry.left < 0 || entry.right < 0) return;
    this.answers.ruleOut(entry.left, entry.right);
    this.done(entry.key);
  }

  setAside(/** @type {Side} */ side) {
    const { entry } = this;
    if (!entry) return;
    this.answers.noPartner(side, side ? entry.right : entry.left);
    this.done(entry.key);
  }

  /** Leads the keyboard to the first candidate, or to the search. */
  async focus() {
    await this.candidates.fetch();
    if (!this.open) return;
    const first = /** @type {HTMLElement | null} */ (
      this.candidates.list.querySelector("button:not(:disabled)")
    );
    (first ?? this.candidates.search).focus();
  }
}
