// What people do to pairs; each is said, and what the server refuses is shown.

/** @typedef {import("./pairing.js").Pairing} Pairing */
/** @typedef {import("./pairing.js").Entry} Entry */
/** @typedef {import("./pairing.js").Side} Side */

export class Answers {
  /**
   * @param {Pairing} pairing
   * @param {(error: unknown) => void} tell shows what went wrong
   * @param {(words: string) => void} say
   */
  constructor(pairing, tell, say) {
    this.pairing = pairing;
    this.server = pairing.server;
    this.tell = tell;
    this.say = say;
  }

  /** Says what is done, and whether the server did it. */
  async attempt(/** @type {string} */ words, /** @type {() => Promise<any>} */ change) {
    try {
      const done = change();
      if (words) this.say(words);
      await done;
      return true;
    } catch (error) {
      this.tell(error);
      return false;
    }
  }

  post(/** @type {string} */ path, /** @type {object} */ body = {}, words = "") {
    return this.attempt(words, () => this.pairing.change(path, body));
  }

  /** Names of a pair or of the item that has none. */
  namesOf(/** @type {Entry} */ { left, right }) {
    const { pairing } = this;
    const names = [left >= 0 && pairing.nameOf(0, left), right >= 0 && pairing.nameOf(1, right)];
    return names.filter(Boolean).join(" and ");
  }

  /** Confirms or corrects a pair. */
  choose(/** @type {number} */ left, /** @type {number} */ right) {
    const { pairing } = this;
    const names = `${pairing.nameOf(0, left)} and ${pairing.nameOf(1, right)}`;
    const same = pairing.partner[left] === right;
    const words = same ? `${names} are confirmed` : `${names} are a pair now`;
    return this.attempt(words, () => pairing.answer(left, right));
  }

  /** Says that a pair is wrong, without knowing what is right. */
  ruleOut(/** @type {number} */ left, /** @type {number} */ right) {
    const { pairing } = this;
    const names = `${pairing.nameOf(0, left)} and ${pairing.nameOf(1, right)}`;
    return this.attempt(`${names} are ruled out`, () => pairing.ruleOut(left, right));
  }

  /** Sets an item aside. */
  noPartner(/** @type {Side} */ side, /** @type {number} */ slot) {
    const { pairing } = this;
    const words = `${pairing.nameOf(side, slot)} is set aside`;
    return this.attempt(words, () => pairing.setAside(side, slot));
  }

  /** Takes back what was said of an entry. */
  takeBack(/** @type {Entry} */ entry) {
    const { pairing } = this;
    if (entry.aside) {
      /** @type {[Side, number]} */
      const [side, slot] = entry.left >= 0 ? [0, entry.left] : [1, entry.right];
      const words = `${pairing.nameOf(side, slot)} is matched again`;
      return this.attempt(words, () => pairing.putBack(side, slot));
    }
    const words = `${this.namesOf(entry)} are no longer confirmed`;
    return this.attempt(words, () => pairing.release(entry.left));
  }

  cancel(/** @type {string} */ job) {
    const path = `${this.server.base}/jobs/${job}`;
    return this.attempt("", () => this.server.request("DELETE", path));
  }

  /** Goes back or forth in the history. */
  async step(/** @type {"undo" | "redo"} */ which) {
    const what = this.server.state?.[which];
    if (what === null || what === undefined) return;
    if (!(await this.post(which))) return;
    this.say(which === "undo" ? `Undone: ${what}` : `Redone: ${what}`);
  }
}
