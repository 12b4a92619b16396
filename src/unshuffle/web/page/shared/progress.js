// What is under way, with count, time left and Cancel, in cards over the wall; and messages above.
import { byId, make } from "../../../images/page/panel.js";

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
   * @param {() => void} undo
   */
  constructor(uploads, cancel, noun = "pictures", undo = () => {}) {
    this.uploads = uploads;
    this.cancel = cancel;
    this.noun = noun;
    this.undo = undo;
    /** @type {Map<string, Card>} */
    this.cards = new Map();
    /** @type {Job[]} */
    this.jobs = [];
    this.timer = 0;
    this.seen = sessionStorage.getItem("notice") ?? "";
    /** @type {HTMLElement | null} the last message of the server, while it is about what is shown */
    this.card = null;
    for (const each of uploads) each.addEventListener("change", () => this.show());
  }

  follow(/** @type {{jobs: Job[], notice: State["notice"]}} */ state) {
    this.jobs = state.jobs;
    this.show();
    const { notice } = state;
    // One about a step that was left is gone; its Undo would undo something else.
    if (!notice) {
      this.card?.remove();
      this.card = null;
      return;
    }
    // A reload shows no message again that was dismissed.
    const key = `${notice.id} ${notice.message}`;
    if (key === this.seen) return;
    this.seen = key;
    const gone = () => sessionStorage.setItem("notice", key);
    this.card = this.tell(notice.message, notice.kind, gone, notice.undoes);
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
   * Shows a message until it is dismissed; one that reports no error goes by itself.
   * @param {string} message
   * @param {string} kind
   * @param {() => void} gone called when it is dismissed or goes
   * @param {boolean} undoes whether to offer Undo
   */
  tell(message, kind = "error", gone = () => {}, undoes = false) {
    const all = byId("notices");
    for (const each of [...all.children]) {
      if (each.querySelector(".words")?.textContent === message) each.remove();
    }
    const card = make("div", kind === "error" ? "notice error-card" : "notice");
    card.setAttribute("role", kind === "error" ? "alert" : "status");
    const end = () => {
      card.remove();
      gone();
    };
    card.append(make("span", "words", message));
    const add = (/** @type {string} */ words, /** @type {string} */ label, /** @type {() => void} */ action) => {
      const button = make("button", "", words);
      button.setAttribute("type", "button");
      button.setAttribute("aria-label", label);
      button.addEventListener("click", () => {
        end();
        action();
      });
      card.append(button);
    };
    if (undoes) add("Undo", `Undo: ${message}`, this.undo);
    add("\u00d7", `Dismiss: ${message}`, () => {});
    all.append(card);
    if (kind !== "error") goLater(card, end);
    while (all.children.length > 3) all.firstElementChild?.remove();
    return card;
  }
}

/** Ends a message after a while, but not while somebody points at it or its buttons have the focus. */
function goLater(/** @type {HTMLElement} */ card, /** @type {() => void} */ end) {
  setTimeout(() => {
    if (card.matches(":hover, :focus-within")) goLater(card, end);
    else if (card.isConnected) end();
  }, BRIEF);
}
