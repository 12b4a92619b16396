// Two collections: where their files are dropped or chosen, and how much is there of each.
import { byId } from "../../../images/page/panel.js";
import { sideWords } from "./summary.js";
import { filesIn } from "../shared/uploads.js";

/** @typedef {import("./pairing.js").MatchState} MatchState */
/** @typedef {import("../shared/uploads.js").Uploads} Uploads */

const SIDES = [0, 1];
const NARROW = "(max-width: 720px)"; // the left is above the right

/** Why a file cannot be matched, as far as its type tells. */
export function fileProblem(/** @type {File} */ file) {
  const wrong = /^(audio|video)\//.test(file.type);
  return wrong ? "This is not a picture, a text or a table." : "";
}

/** Sends files that are chosen or dropped to the left or the right. */
export class Zones {
  /** @param {Uploads[]} uploads left and right */
  constructor(uploads) {
    this.uploads = uploads;
    /** @type {MatchState | null} */
    this.state = null;
    for (const side of SIDES) {
      this.pick(side, `files-input-${side}`, [`choose-files-${side}`, `add-files-${side}`]);
      this.pick(side, `folder-input-${side}`, [`choose-folder-${side}`, `add-folder-${side}`]);
    }
    this.listenForDrops();
  }

  /** @param {number} side @param {string} input @param {string[]} buttons */
  pick(side, input, buttons) {
    const chooser = /** @type {HTMLInputElement} */ (byId(input));
    for (const id of buttons) byId(id).addEventListener("click", () => chooser.click());
    chooser.addEventListener("change", () => {
      this.uploads[side].add([...(chooser.files ?? [])]);
      chooser.value = "";
    });
  }

  /** The side below the mouse, or -1 if it takes no files. */
  sideAt(/** @type {DragEvent} */ event) {
    const stage = byId("drop-sides").getBoundingClientRect();
    const right = matchMedia(NARROW).matches
      ? event.clientY > stage.top + stage.height / 2
      : event.clientX > stage.left + stage.width / 2;
    const side = right ? 1 : 0;
    return this.state?.sides[side].fixed ? -1 : side;
  }

  listenForDrops() {
    const box = byId("drop-sides");
    const hasFiles = (/** @type {DragEvent} */ event) =>
      event.dataTransfer?.types.includes("Files") ?? false;
    addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      box.hidden = false;
      const side = this.sideAt(event);
      for (const each of /** @type {NodeListOf<HTMLElement>} */ (box.querySelectorAll("p"))) {
        each.classList.toggle("over", each.dataset.side === String(side));
      }
    });
    addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) box.hidden = true;
    });
    addEventListener("drop", async (event) => {
      if (!event.dataTransfer || !hasFiles(event)) return;
      event.preventDefault();
      const side = this.sideAt(event);
      box.hidden = true;
      if (side >= 0) this.uploads[side].add(await filesIn(event.dataTransfer));
    });
  }

  show(/** @type {MatchState} */ state) {
    this.state = state;
    for (const side of SIDES) {
      const { title, fixed, total } = state.sides[side];
      const where = side ? "Right" : "Left";
      const words = total ? sideWords(state, side) : "";
      const empty = "Drop pictures, text files or a table here.";
      const name = title && title !== where ? `${where}: ${title}` : where;
      byId(`zone-title-${side}`).textContent = name;
      byId(`zone-words-${side}`).textContent = total || fixed ? words : empty;
      byId(`zone-${side}`).classList.toggle("full", total > 0);
      byId(`choose-files-${side}`).classList.toggle("main", total === 0);
      byId(`collection-${side}`).textContent = name;
      byId(`about-${side}`).textContent = words || "nothing yet";
      for (const id of ["choose-files", "add-files"]) {
        /** @type {HTMLElement} */ (byId(`${id}-${side}`).parentElement).hidden = fixed;
      }
      const drop = /** @type {HTMLElement} */ (byId("drop-sides").children[side]);
      const there = side ? "right" : "left";
      drop.textContent = fixed
        ? `The ${there} was chosen when the page was started`
        : `Drop to add to the ${there}`;
    }
    const begun = state.sides.some(({ total }) => total > 0);
    byId("missing").textContent = begun ? state.missing : ""; // the zones say the rest
  }
}
