// Questions about the pairs whose answers help most, one after the other.
import { byId } from "../../../images/page/panel.js";
import { closable } from "../shared/dialogs.js";
import { Candidates } from "./candidates.js";
import { percent } from "./rows.js";

/** @typedef {import("./answers.js").Answers} Answers */
/** @typedef {import("./thumbnails.js").Faces} Faces */
/** @typedef {import("./pairing.js").Pairing} Pairing */

const MOST = 10; // questions at a time

export function questions(/** @type {number} */ n) {
  return n === 1 ? "1 question" : `${n} questions`;
}

export class Asking {
  /**
   * @param {Pairing} pairing
   * @param {Faces} faces
   * @param {Answers} answers
   * @param {() => void} closed
   */
  constructor(pairing, faces, answers, closed) {
    this.pairing = pairing;
    this.faces = faces;
    this.answers = answers;
    this.box = /** @type {HTMLDialogElement} */ (byId("asking"));
    /** @type {Set<number>} left items that were asked about */
    this.asked = new Set();
    this.nAnswered = 0;
    this.n = 0;
    this.slot = -1;
    this.item = -1;
    /** @type {number[]} partners before the first question */
    this.before = [];
    /** @type {number | null} share believed right before the first question */
    this.believed = null;
    closable(this.box);
    this.candidates = new Candidates(pairing, faces, "Or is it one of these?", (item) => {
      this.answered(answers.choose(this.slot, item));
    });
    byId("question-candidates").append(this.candidates.element);
    const on = (/** @type {string} */ id, /** @type {() => void} */ action) =>
      byId(id).addEventListener("click", action);
    on("yes", () => this.yes());
    on("no", () => this.no());
    on("no-partner", () => this.none());
    on("skip", () => this.next());
    on("asked-done", () => this.box.close());
    on("ask-more", () => this.start());
    on("asked-again", () => answers.post("again"));
    this.box.addEventListener("keydown", (event) => this.pressed(event));
    this.box.addEventListener("close", () => {
      this.asked.clear();
      byId("question-faces").replaceChildren();
      closed();
    });
  }

  /** How many questions can be asked now. */
  get nLeft() {
    return Math.min(MOST, this.open().length);
  }

  /** Left items that were neither answered nor asked about, the most helpful first. */
  open() {
    const { questions, answered, aside, partner } = this.pairing;
    return questions.filter(
      (slot) =>
        !answered.has(slot) &&
        !aside[0].has(slot) &&
        !this.asked.has(slot) &&
        (partner[slot] ?? -1) >= 0,
    );
  }

  start() {
    if (!this.box.open) {
      this.nAnswered = 0;
      this.before = [...this.pairing.partner];
      this.believed = this.pairing.state?.matching.expected ?? null;
      this.box.showModal();
    }
    this.n = this.asked.size + this.nLeft;
    byId("asked").hidden = true;
    byId("question").hidden = false;
    this.next();
  }

  /** Asks the next question, or says what came of the answers. */
  next() {
    const slot = this.asked.size < this.n ? this.open()[0] : undefined;
    if (slot === undefined) return this.finish();
    this.slot = slot;
    this.item = this.pairing.partner[slot];
    this.asked.add(slot);
    byId("asking-title").textContent = `Question ${this.asked.size} of ${this.n}`;
    this.showProgress((this.asked.size - 1) / this.n);
    byId("question-faces").replaceChildren(
      this.faces.large(0, slot),
      this.faces.large(1, this.item),
    );
    const names = [this.pairing.nameOf(0, slot), this.pairing.nameOf(1, this.item)];
    byId("question-words").textContent = `Do ${names[0]} and ${names[1]} belong together?`;
    this.candidates.show(0, slot, this.item);
    this.box.scrollTop = 0;
    byId("yes").focus({ preventScroll: true });
    this.answers.say(`${byId("asking-title").textContent}. ${byId("question-words").textContent}`);
  }

  showProgress(/** @type {number} */ fraction) {
    const bar = /** @type {HTMLProgressElement} */ (byId("asking-progress"));
    bar.value = fraction;
  }

  yes() {
    this.answered(this.answers.choose(this.slot, this.item));
  }

  /** The pair is wrong, whatever is right. */
  no() {
    this.answered(this.answers.ruleOut(this.slot, this.item));
  }

  none() {
    this.answered(this.answers.noPartner(0, this.slot));
  }

  /** Goes on at once; an answer that the server refuses does not count. */
  async answered(/** @type {Promise<boolean>} */ done) {
    this.nAnswered++;
    this.next();
    if (await done) return;
    this.nAnswered--;
    this.follow();
  }

  finish() {
    this.slot = -1;
    byId("question").hidden = true;
    byId("asked").hidden = false;
    byId("asking-title").textContent = "Thank you";
    this.showProgress(1);
    this.follow();
    byId("asked-done").focus();
  }

  /** Says what the answers changed, once that is known. */
  follow() {
    const { state } = this.pairing;
    if (!this.box.open || byId("asked").hidden || !state) return;
    const { matching, settings } = state;
    byId("asked-words").textContent = `You answered ${questions(this.nAnswered)} of ${this.asked.size}.`;
    const left = this.nLeft;
    byId("ask-more").hidden = left === 0;
    byId("ask-more").textContent = `Answer ${left} more`;
    byId("asked-again").hidden = settings.automatic || matching.stale === 0;
    const waits = !matching.settled || !this.pairing.current;
    const effect = waits ? "Matching again \u2026" : this.effect();
    if (byId("asked-effect").textContent !== effect) byId("asked-effect").textContent = effect;
  }

  effect() {
    const { partner, state } = this.pairing;
    const moved = partner.filter(
      (right, left) => right !== (this.before[left] ?? -1) && !this.asked.has(left),
    ).length;
    const now = state?.matching.expected ?? null;
    const n = moved.toLocaleString("en");
    const others = moved === 1 ? "1 other pair has changed." : `${n} other pairs have changed.`;
    if (now === null || this.believed === null) return others;
    const [after, before] = [percent(now), percent(this.believed)];
    return `${others} ${after} of the other pairs are believed right; it was ${before}.`;
  }

  pressed(/** @type {KeyboardEvent} */ event) {
    if (event.target === this.candidates.search || byId("question").hidden) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.toLowerCase();
    const item = this.candidates.numbered(key);
    if (key === "y") this.yes();
    else if (key === "x") this.no();
    else if (key === "n") this.none();
    else if (key === "s") this.next();
    else if (item >= 0) this.candidates.choose(item);
    else return;
    event.preventDefault();
  }
}
