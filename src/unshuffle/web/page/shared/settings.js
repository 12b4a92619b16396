// The settings: shape, features and quality, each applied as soon as it is changed.
import { byId, make, pictureButton } from "../../../images/page/panel.js";
import { Features } from "./features.js";
import { Refused } from "./server.js";

/** @typedef {import("./album.js").Album} Album */
/** @typedef {import("./atlas.js").Atlas} Atlas */
/** @typedef {import("./server.js").Server} Server */
/** @typedef {import("./server.js").State} State */

/** Names of errors, and the controls that they concern. */
/** @type {("rows" | "columns")[]} */
const SIZE = ["rows", "columns"];
const FIELDS = ["shape", "rows", "columns", "letters", "mask", "features", "quality"];

function input(/** @type {string} */ id) {
  return /** @type {HTMLInputElement} */ (byId(id));
}

function inputs(/** @type {string} */ name) {
  const found = document.querySelectorAll(`input[name="${name}"]`);
  return /** @type {HTMLInputElement[]} */ ([...found]);
}

/** A number of rows or columns as typed; the server says what is wrong with anything else. */
function typedCount(/** @type {string} */ id) {
  const text = input(id).value.trim();
  if (text === "") return null;
  return /^\d{1,9}$/.test(text) ? Number(text) : text;
}

function sideWords(/** @type {number | string} */ n, /** @type {string} */ noun) {
  return `${n.toLocaleString("en")} ${n === 1 ? noun : `${noun}s`}`;
}

/** Shows an error beside the control it concerns, or takes it away; false if there is none. */
export function showError(/** @type {string} */ field, /** @type {string} */ message) {
  const line = document.getElementById(`error-${field}`);
  if (!line) return false;
  line.textContent = message;
  line.hidden = !message;
  const named = field === "mask" ? "choose-mask" : field;
  const controls = [document.getElementById(named), ...inputs(field === "features" ? "feature" : field)];
  for (const each of controls) {
    if (message) each?.setAttribute("aria-invalid", "true");
    else each?.removeAttribute("aria-invalid");
  }
  return true;
}

export class SettingsForm {
  /**
   * @param {Server} server
   * @param {Album} album
   * @param {() => Atlas} atlas
   * @param {import("../wall/actions.js").Actions} actions
   */
  constructor(server, album, atlas, actions) {
    this.server = server;
    this.album = album;
    this.atlas = atlas;
    this.actions = actions;
    /** @type {string | null} a shape that waits for its letters or its mask */
    this.pending = null;
    this.size = ""; // rows and columns that were chosen, when last shown
    this.shownOut = "";
    this.features = new Features((features) => this.send({ features }, "features"));
    this.listen();
  }

  listen() {
    for (const each of inputs("shape")) {
      each.addEventListener("change", () => this.chooseShape(each.value));
    }
    for (const each of inputs("quality")) {
      each.addEventListener("change", () => this.send({ quality: each.value }, "quality"));
    }
    for (const id of SIZE) {
      input(id).addEventListener("input", () => this.showSize());
      input(id).addEventListener("keydown", (event) => {
        if (event.key === "Enter") this.useSize(id);
        else if (event.key === "Escape" && this.typed) this.forgetSize(event);
      });
    }
    byId("use-size").addEventListener("click", () => this.useSize("rows"));
    input("letters").addEventListener("change", () => {
      this.send({ shape: "letters", letters: input("letters").value }, "letters");
    });
    input("invert").addEventListener("change", () => {
      this.send({ invert: input("invert").checked }, "mask");
    });
    byId("choose-mask").addEventListener("click", () => input("mask-input").click());
    input("mask-input").addEventListener("change", () => this.sendMask());
    byId("again").addEventListener("click", () => this.actions.post("/api/arrange", {}));
    byId("unfreeze-all").addEventListener("click", () => {
      this.actions.post("/api/unfreeze", { items: [] });
    });
    byId("put-back-all").addEventListener("click", () => {
      this.actions.post("/api/put-back", { items: [] });
    });
  }

  /** Whether rows and columns were typed that the wall does not have: they wait to be used. */
  get typed() {
    const known = this.server.state?.settings;
    return !!known && SIZE.some((id) => typedCount(id) !== known[id]);
  }

  /** Says what the rows and columns that are typed come to, and offers to use them. */
  showSize() {
    const { state } = this.server;
    if (!state) return;
    const [rows, columns] = SIZE.map(typedCount);
    const other = (/** @type {number | string | null} */ side) =>
      typeof side === "number" && side > 0 ? Math.ceil(state.wall.nPlaced / side) : null;
    const found = {
      rows: rows ?? other(columns) ?? (this.typed ? null : state.wall.rows),
      columns: columns ?? other(rows) ?? (this.typed ? null : state.wall.columns),
    };
    for (const id of SIZE) input(id).placeholder = found[id] ? `auto (${found[id]})` : "auto";
    const button = byId("use-size");
    button.hidden = !this.typed;
    button.textContent =
      found.rows && found.columns
        ? `Use ${sideWords(found.rows, "row")}, ${sideWords(found.columns, "column")}`
        : "Choose rows and columns for me";
  }

  useSize(/** @type {string} */ field) {
    const [rows, columns] = SIZE.map(typedCount);
    this.send({ rows, columns }, field);
  }

  /** Puts the rows and columns of the wall back. */
  forgetSize(/** @type {KeyboardEvent} */ event) {
    event.stopPropagation();
    for (const id of SIZE) {
      input(id).value = String(this.server.state?.settings[id] ?? "");
      showError(id, "");
    }
    this.showSize();
  }

  /** A shape that needs more waits for it. */
  chooseShape(/** @type {string} */ shape) {
    const has = { letters: input("letters").value.trim(), mask: this.server.state?.settings.mask };
    for (const field of FIELDS.slice(0, 5)) showError(field, "");
    if ((shape === "letters" || shape === "mask") && !has[shape]) {
      this.pending = shape;
      this.showParts(shape);
      byId(shape === "letters" ? "letters" : "choose-mask").focus();
      return;
    }
    this.pending = null;
    this.showParts(shape);
    this.send(shape === "letters" ? { shape, letters: has.letters } : { shape }, shape);
  }

  showParts(/** @type {string} */ shape) {
    byId("for-rectangle").hidden = shape !== "rectangle" && shape !== "torus";
    byId("torus-hint").hidden = shape !== "torus";
    byId("for-letters").hidden = shape !== "letters";
    byId("for-mask").hidden = shape !== "mask";
  }

  /** @param {object} change @param {string} field that the change was made in */
  async send(change, field) {
    for (const each of FIELDS) if (each in change || each === field) showError(each, "");
    try {
      await this.server.post("/api/settings", change);
      this.pending = null;
    } catch (error) {
      this.refused(error, field);
    }
  }

  refused(/** @type {unknown} */ error, /** @type {string} */ field) {
    const words = error instanceof Error ? error.message : String(error);
    const known = error instanceof Refused && error.status > 0;
    const named = (error instanceof Refused && error.field) || field;
    if (known && (showError(named, words) || showError(field, words))) this.actions.say(words);
    else this.actions.tell(error);
    if (this.server.state) this.follow(this.server.state);
  }

  async sendMask() {
    const chosen = input("mask-input");
    const file = chosen.files?.[0];
    chosen.value = "";
    if (!file) return;
    showError("mask", "");
    byId("mask-name").textContent = file.name;
    try {
      await this.server.request("PUT", `/api/mask?name=${encodeURIComponent(file.name)}`, file);
      this.pending = null;
    } catch (error) {
      this.refused(error, "mask");
    }
  }

  /** Shows the settings of the server, but leaves alone what is being typed or was refused. */
  follow(/** @type {State} */ state) {
    const { settings, wall } = state;
    if (this.pending && this.pending === settings.shape) this.pending = null;
    const shape = this.pending ?? settings.shape;
    for (const each of inputs("shape")) each.checked = each.value === shape;
    this.showParts(shape);
    const free = (/** @type {HTMLInputElement} */ each) =>
      document.activeElement !== each && !each.hasAttribute("aria-invalid");
    if (free(input("letters"))) input("letters").value = settings.letters;
    const size = JSON.stringify([settings.rows, settings.columns]);
    if (size !== this.size) {
      this.size = size;
      for (const id of SIZE) input(id).value = String(settings[id] ?? "");
    }
    this.showSize();
    input("invert").checked = settings.invert;
    byId("mask-name").textContent = settings.mask;
    this.features.show(settings.features, state.content);
    for (const each of inputs("quality")) each.checked = each.value === settings.quality;
    /** @type {HTMLButtonElement} */ (byId("again")).disabled = wall.nPlaced === 0;
    this.showFacts(state);
    byId("clear").hidden = state.pictures.total === 0 && state.pictures.nFailed === 0;
  }

  showFacts(/** @type {State} */ { wall }) {
    byId("about-wall").hidden = wall.nPlaced === 0;
    const facts = byId("wall-facts");
    facts.replaceChildren();
    const add = (/** @type {string} */ key, /** @type {string} */ value) =>
      facts.append(make("dt", "", key), make("dd", "", value));
    facts.title = "How similar the pictures are that hang side by side; 100 is best";
    add("size", `${wall.rows} rows, ${wall.columns} columns`);
    if (wall.score !== null) add("neighbors", `similarity ${Math.round(100 * wall.score)} of 100`);
    add("frozen", wall.nFrozen ? wall.nFrozen.toLocaleString("en") : "none");
    byId("unfreeze-all").hidden = wall.nFrozen === 0;
  }

  /** Lists the pictures that were left out. */
  showOut() {
    const { out } = this.album;
    byId("left-out").hidden = !out.length;
    byId("left-out-title").textContent = `Left out (${out.length.toLocaleString("en")})`;
    const key = out.join(" ");
    if (key === this.shownOut) return;
    this.shownOut = key;
    const shown = out.slice(0, 60).map((slot) => {
      const name = this.album.nameOf(slot);
      const picture = this.atlas().thumbnail(slot);
      const button = pictureButton(picture, `Put back ${name}`, () => {
        this.actions.post("/api/put-back", { items: [slot] });
      });
      button.setAttribute("aria-label", button.title);
      return button;
    });
    byId("out").replaceChildren(...shown);
  }
}
