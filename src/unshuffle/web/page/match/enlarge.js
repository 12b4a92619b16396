// Both items of a pair, large, in a dialog that leads from pair to pair.
import { byId } from "../../../images/page/panel.js";
import { closable } from "../shared/dialogs.js";

/** @typedef {import("./thumbnails.js").Faces} Faces */
/** @typedef {import("./pairs.js").PairList} PairList */

export class Enlarging {
  /**
   * @param {PairList} list
   * @param {Faces} faces
   */
  constructor(list, faces) {
    this.list = list;
    this.faces = faces;
    this.box = /** @type {HTMLDialogElement} */ (byId("large"));
    this.shown = "";
    /** @type {number | null} key of the pair that is shown */
    this.key = null;
    closable(this.box);
    byId("large-previous").addEventListener("click", () => this.step(-1));
    byId("large-next").addEventListener("click", () => this.step(1));
    byId("large-right").addEventListener("click", () => this.right());
    byId("large-wrong").addEventListener("click", () => this.wrong());
    this.box.addEventListener("keydown", (event) => this.pressed(event));
    this.box.addEventListener("close", () => {
      byId("large-faces").replaceChildren();
      this.shown = "";
      // The browser led back to the pair that was shown first.
      if (byId("panel").hidden) list.focus(this.key);
    });
  }

  /** Shows the current pair. */
  show() {
    const { entry, pairing } = this.list;
    if (!entry) return;
    this.key = entry.key;
    const names = [pairing.nameOf(0, entry.left), pairing.nameOf(1, entry.right)].filter(Boolean);
    byId("large-name").textContent = names.join(" and ");
    const shown = [entry.left, entry.right].join("/");
    if (shown !== this.shown) {
      this.shown = shown;
      const faces = [this.faces.large(0, entry.left), this.faces.large(1, entry.right)];
      byId("large-faces").replaceChildren(...faces);
    }
    const open = entry.left >= 0 && entry.right >= 0 && !entry.answered;
    const right = /** @type {HTMLButtonElement} */ (byId("large-right"));
    right.textContent = entry.answered ? "\u2713 Confirmed" : "Correct";
    right.disabled = !open;
    byId("large-wrong").hidden = entry.aside;
    byId("large-wrong").textContent = open ? "Wrong" : entry.answered ? "Change" : "Find its partner";
    for (const step of [-1, 1]) {
      const id = step < 0 ? "large-previous" : "large-next";
      const button = /** @type {HTMLButtonElement} */ (byId(id));
      button.disabled = this.list.beside(entry.key, step) === undefined;
    }
    if (!this.box.open) this.box.showModal();
    else if (document.activeElement !== document.body) return;
    // Where the focus is lost, or begins.
    byId(right.disabled ? "large-next" : "large-right").focus();
  }

  /** Shows what has changed meanwhile. */
  follow() {
    if (this.box.open) this.show();
  }

  step(/** @type {number} */ by) {
    const { list } = this;
    const to = list.current === null ? undefined : list.beside(list.current, by);
    if (to === undefined) return;
    list.visit(to);
    this.show();
  }

  right() {
    const { entry, answers } = this.list;
    if (!entry || entry.left < 0 || entry.right < 0 || entry.answered) return;
    answers.choose(entry.left, entry.right);
    const next = this.list.nextToCheck(entry.key);
    if (next !== undefined) this.list.visit(next);
    this.show();
  }

  wrong() {
    const { entry } = this.list;
    this.box.close();
    if (!entry) return;
    this.list.visit(entry.key);
    this.list.act("open", entry);
  }

  pressed(/** @type {KeyboardEvent} */ event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    // Up and down scroll long texts.
    if (key === "ArrowLeft") this.step(-1);
    else if (key === "ArrowRight") this.step(1);
    else if (key === "y") this.right();
    else if (key === "c") this.wrong();
    else return;
    event.preventDefault();
  }
}
