// Dialogs: a picture large, files that could not be read, help, and a question before it is late.
import { byId, make } from "../../../images/page/panel.js";
import { ARROWS } from "../../../images/page/wall.js";

/** @typedef {import("./album.js").Album} Album */

/** @param {string} id */
function dialog(id) {
  return /** @type {HTMLDialogElement} */ (byId(id));
}

/** Lets a click outside a dialog and its button close it. */
export function closable(/** @type {HTMLDialogElement} */ box) {
  box.addEventListener("click", (event) => {
    if (event.target === box) box.close();
  });
  for (const button of box.querySelectorAll(".close")) {
    button.addEventListener("click", () => box.close());
  }
}

/** Whether a dialog is open, which then has the keys. */
export function anyDialog() {
  return document.querySelector("dialog[open]") !== null;
}

/** One picture, large; arrow keys lead to its neighbors on the wall. */
export class Lightbox {
  /**
   * @param {Album} album
   * @param {(item: number, down: number, right: number) => number} neighbor
   * @param {(item: number) => void} closed
   */
  constructor(album, neighbor, closed) {
    this.album = album;
    this.neighbor = neighbor;
    this.box = dialog("large");
    this.item = -1;
    closable(this.box);
    byId("close-large").addEventListener("click", () => this.box.close());
    byId("large-previous").addEventListener("click", () => this.step(0, -1));
    byId("large-next").addEventListener("click", () => this.step(0, 1));
    this.box.addEventListener("keydown", (event) => {
      const arrow = ARROWS.get(event.key);
      if (!arrow || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      this.step(...arrow);
    });
    this.box.addEventListener("close", () => {
      byId("large-frame").replaceChildren();
      closed(this.item);
    });
  }

  show(/** @type {number} */ item) {
    this.item = item;
    const name = this.album.nameOf(item);
    byId("large-name").textContent = name;
    const picture = new Image();
    picture.alt = name;
    const frame = byId("large-frame");
    const answer = () => {
      if (item === this.item) frame.replaceChildren(picture);
    };
    picture.addEventListener("load", answer);
    picture.addEventListener("error", () => {
      const words = make("p", "quiet", "This picture can no longer be read.");
      if (item === this.item) frame.replaceChildren(words);
    });
    picture.src = `/api/picture/${item}?side=1600&run=${this.album.run}`;
    if (!this.box.open) this.box.showModal();
  }

  step(/** @type {number} */ down, /** @type {number} */ right) {
    const other = this.neighbor(this.item, down, right);
    if (other >= 0 && other !== this.item) this.show(other);
  }
}

/** The files that could not be read, with reasons. */
export class Problems {
  constructor() {
    this.box = dialog("problems");
    closable(this.box);
    /** @type {{name: string, reason: string}[]} */
    this.list = [];
    byId("show-problems").addEventListener("click", () => this.open());
  }

  title() {
    const n = this.list.length;
    return `${n.toLocaleString("en")} ${n === 1 ? "file" : "files"} could not be read`;
  }

  show(/** @type {{name: string, reason: string}[]} */ list) {
    this.list = list;
    const button = byId("show-problems");
    button.hidden = !list.length;
    button.textContent = this.title();
    if (this.box.open) this.fill();
  }

  fill() {
    byId("problems-title").textContent = this.title();
    const lines = this.list.slice(0, 2000).flatMap(({ name, reason }) => {
      return [make("dt", "", name), make("dd", "", reason)];
    });
    byId("problem-list").replaceChildren(...lines);
  }

  open() {
    this.fill();
    this.box.showModal();
  }
}

/** The list of keys. */
export function makeHelp() {
  const box = dialog("help");
  closable(box);
  byId("show-help").addEventListener("click", () => box.showModal());
  return () => box.showModal();
}

/** Asks before something cannot be taken back. */
export function ask(
  /** @type {string} */ title,
  /** @type {string} */ words,
  /** @type {string} */ yes,
) {
  const box = dialog("confirm");
  byId("confirm-title").textContent = title;
  byId("confirm-words").textContent = words;
  byId("confirm-yes").textContent = yes;
  box.showModal();
  return new Promise((resolve) => {
    const answer = (/** @type {boolean} */ value) => {
      stop.abort();
      box.close();
      resolve(value);
    };
    const stop = new AbortController();
    const { signal } = stop;
    byId("confirm-yes").addEventListener("click", () => answer(true), { signal });
    byId("confirm-no").addEventListener("click", () => answer(false), { signal });
    box.addEventListener("close", () => answer(false), { signal });
  });
}
