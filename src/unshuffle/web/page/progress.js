// Cards above the wall: what is under way, with count, time left and Cancel, and messages.
import { byId, make } from "../../images/page/panel.js";

/** @typedef {import("./server.js").Job} Job */
/** @typedef {import("./server.js").State} State */
/** @typedef {import("./uploads.js").Uploads} Uploads */

const PATIENCE = 300; // milliseconds before work is shown; most is done by then
const BRIEF = 10000; // milliseconds that a message stays which reports no error

/**
 * @typedef {object} Work
 * @property {string} id
 * @property {string} words
 * @property {number} fraction
 * @property {string} left
 * @property {string} key other for other jobs
 * @property {() => void} cancel
 */

class Card {
  constructor(/** @type {Work} */ work) {
    this.since = performance.now();
    this.words = make("span", "words");
    this.left = make("span", "left");
    this.bar = document.createElement("progress");
    this.bar.max = 1;
    this.cancel = /** @type {HTMLButtonElement} */ (make("button", "", "Cancel"));
    this.cancel.type = "button";
    this.work = work;
    this.cancel.addEventListener("click", () => {
      this.cancel.disabled = true;
      this.work.cancel();
    });
    const top = make("div", "top");
    top.append(this.words, this.left, this.cancel);
    this.element = make("div", "card");
    this.element.append(top, this.bar);
  }

  show(/** @type {Work} */ work) {
    if (work.key !== this.work.key) this.cancel.disabled = false;
    this.work = work;
    this.words.textContent = work.words;
    this.left.textContent = work.left;
    this.bar.value = work.fraction;
    this.bar.setAttribute("aria-label", work.words);
    this.cancel.setAttribute("aria-label", `Cancel: ${work.words}`);
  }
}

function jobWords(/** @type {Job} */ job, /** @type {string} */ noun) {
  if (!job.total) return job.words;
  const [done, total] = [job.done, job.total].map((n) => n.toLocaleString("en"));
  return `${job.words} ${done} of ${total} ${noun}`;
}

export class Progress {
  /**
   * @param {Uploads[]} uploads
   * @param {(id: string) => void} cancel
   * @param {string} noun of what is read and sent
   */
  constructor(uploads, cancel, noun = "pictures") {
    this.uploads = uploads;
    this.cancel = cancel;
    this.noun = noun;
    /** @type {Map<string, Card>} */
    this.cards = new Map();
    /** @type {Job[]} */
    this.jobs = [];
    this.timer = 0;
    this.seen = sessionStorage.getItem("notice") ?? "";
    for (const each of uploads) each.addEventListener("change", () => this.show());
  }

  follow(/** @type {{jobs: Job[], notice: State["notice"]}} */ state) {
    this.jobs = state.jobs;
    this.show();
    const { notice } = state;
    if (!notice) return;
    // A reload shows no message again that was dismissed.
    const key = `${notice.id} ${notice.message}`;
    if (key === this.seen) return;
    this.seen = key;
    this.tell(notice.message, notice.kind, () => sessionStorage.setItem("notice", key));
  }

  /** @returns {Work[]} */
  works() {
    /** @type {Map<string, Work>} one card is enough for jobs of one kind */
    const kinds = new Map();
    for (const job of this.jobs) {
      const { kind, fraction, left } = job;
      const ids = this.jobs.filter((each) => each.kind === kind).map((each) => each.id);
      const cancel = () => ids.forEach((id) => this.cancel(id));
      const key = ids.join(" ");
      const work = { id: kind, words: jobWords(job, this.noun), fraction, left, key, cancel };
      if (!kinds.has(kind)) kinds.set(kind, work);
    }
    const active = this.uploads.filter((uploads) => uploads.active);
    if (active.length) kinds.delete("reading");
    const sent = active.map((uploads, k) => {
      const [done, all] = [uploads.nDone, uploads.nAll].map((n) => n.toLocaleString("en"));
      const words = `Adding ${done} of ${all} ${this.noun}`;
      const cancel = () => uploads.cancel();
      return { id: `uploads${k}`, words, fraction: uploads.fraction, left: "", key: "", cancel };
    });
    return [...sent, ...kinds.values()];
  }

  show() {
    const works = this.works();
    const now = performance.now();
    let waits = false;
    for (const work of works) {
      let card = this.cards.get(work.id);
      if (!card) this.cards.set(work.id, (card = new Card(work)));
      card.show(work);
      if (now - card.since < PATIENCE) waits = true;
      else if (!card.element.isConnected) byId("work").append(card.element);
    }
    const ids = new Set(works.map((work) => work.id));
    for (const [id, card] of this.cards) {
      if (ids.has(id)) continue;
      card.element.remove();
      this.cards.delete(id);
    }
    if (!waits || this.timer) return;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      this.show();
    }, PATIENCE);
  }

  /**
   * Shows a message until it is dismissed.
   * @param {string} message
   * @param {string} kind
   * @param {() => void} dismissed
   */
  tell(message, kind = "error", dismissed = () => {}) {
    const all = byId("notices");
    for (const each of [...all.children]) {
      if (each.querySelector(".words")?.textContent === message) each.remove();
    }
    const card = make("div", kind === "error" ? "card error-card" : "card");
    card.setAttribute("role", kind === "error" ? "alert" : "status");
    const close = make("button", "", "\u00d7");
    close.setAttribute("type", "button");
    close.setAttribute("aria-label", `Dismiss: ${message}`);
    close.addEventListener("click", () => {
      card.remove();
      dismissed();
    });
    const top = make("div", "top");
    top.append(make("span", "words", message), close);
    card.append(top);
    all.append(card);
    if (kind !== "error") setTimeout(() => card.remove(), BRIEF);
    while (all.children.length > 3) all.firstElementChild?.remove();
  }
}
