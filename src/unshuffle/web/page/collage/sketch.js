// What people choose for a collage: the template, the settings, and the size in print.
import { byId, make, pictureButton } from "../../../images/page/panel.js";
import { closable } from "../shared/dialogs.js";
import { Refused } from "../shared/server.js";
import { showError } from "../shared/settings.js";
import { sizeWords } from "../shared/uploads.js";

/** @typedef {import("./mosaic.js").Mosaic} Mosaic */
/** @typedef {import("../shared/atlas.js").Atlas} Atlas */
/** @typedef {import("../shared/server.js").Server} Server */

const FIELDS = ["template", "smoothness", "rows", "repeat", "detail", "neighbors"];
const PAUSE = 150; // milliseconds without a change of a slider after which it is sent
const SAME_STEP = 1500; // milliseconds in which changes of a slider are one step to undo
const AT_ONCE = 240; // pictures that the picker shows
const CM = 2.54; // per inch

function input(/** @type {string} */ id) {
  return /** @type {HTMLInputElement} */ (byId(id));
}

/** A number of rows or repeats as typed; the server says what is wrong with anything else. */
function typedCount(/** @type {string} */ id) {
  const text = input(id).value.trim();
  if (text === "" || text === "auto") return null;
  return /^\d{1,9}$/.test(text) ? Number(text) : text;
}

/** A size in print, as typed. */
function typedNumber(/** @type {string} */ id) {
  const text = input(id).value.trim().replace(",", ".");
  return /^\d*\.?\d+$|^\d+\.$/.test(text) ? Number(text) : NaN;
}

export class SketchForm {
  /**
   * @param {Server} server
   * @param {Mosaic} mosaic
   * @param {(error: unknown) => void} tell
   * @param {(words: string) => void} say
   * @param {() => void} changed called when something is or is no longer on its way
   */
  constructor(server, mosaic, tell, say, changed) {
    this.server = server;
    this.mosaic = mosaic;
    this.tell = tell;
    this.say = say;
    this.changed = changed;
    this.nSending = 0;
    /** @type {{field: string, change: object} | null} a slider that waits to be sent */
    this.waiting = null;
    this.timer = 0;
    this.last = { field: "", at: 0 }; // the slider that was sent last
    this.shownProblem = ""; // field of an error that came with the state
    this.toldProblem = ""; // its words
    this.listen();
  }

  get idle() {
    return this.nSending === 0 && !this.waiting;
  }

  listen() {
    const slide = (/** @type {string} */ id, /** @type {(value: number) => number} */ read) => {
      input(id).addEventListener("input", () => {
        this.nameValues();
        this.slide(id, { [id]: read(Number(input(id).value)) });
      });
      input(id).addEventListener("pointerdown", () => (this.last.field = ""));
    };
    slide("smoothness", (value) => value / 100);
    slide("detail", (value) => value);
    for (const id of ["rows", "repeat"]) {
      input(id).addEventListener("change", () => this.send({ [id]: typedCount(id) }, id));
    }
    input("neighbors").addEventListener("change", () => {
      this.send({ neighbors: input("neighbors").checked ? "laplacian" : "kernel" }, "neighbors");
    });
    for (const id of ["choose-template", "zone-template"]) {
      byId(id).addEventListener("click", () => input("template-input").click());
    }
    input("template-input").addEventListener("change", () => {
      const file = input("template-input").files?.[0];
      input("template-input").value = "";
      if (file) this.sendTemplate(file);
    });
  }

  /**
   * Sends a slider as soon as the last change is in sight, or when it rests.
   * @param {string} field
   * @param {object} change
   */
  slide(field, change) {
    if (this.waiting && this.waiting.field !== field) this.sendWaiting();
    this.waiting = { field, change };
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.sendWaiting(), PAUSE);
    if (this.nSending === 0 && this.mosaic.current && this.server.state?.settled) this.sendWaiting();
    else this.changed();
  }

  sendWaiting() {
    const { waiting, last } = this;
    window.clearTimeout(this.timer);
    if (!waiting) return;
    this.waiting = null;
    const now = performance.now();
    const merge = last.field === waiting.field && now - last.at < SAME_STEP;
    this.last = { field: waiting.field, at: now };
    this.send({ ...waiting.change, merge }, waiting.field);
  }

  /** @param {object} change @param {string} field that the change was made in */
  send(change, field) {
    showError(field, "");
    if (!("merge" in change)) this.last.field = "";
    return this.attempt(() => this.server.post("/api/collage/settings", change), field);
  }

  async attempt(/** @type {() => Promise<any>} */ change, /** @type {string} */ field) {
    this.nSending++;
    this.changed();
    try {
      await change();
      return true;
    } catch (error) {
      this.refused(error, field);
      return false;
    } finally {
      this.nSending--;
      this.changed();
    }
  }

  refused(/** @type {unknown} */ error, /** @type {string} */ field) {
    const words = error instanceof Error ? error.message : String(error);
    const known = error instanceof Refused && error.status > 0;
    const named = (error instanceof Refused && error.field) || field;
    const beside = known && (showError(named, words) || showError(field, words));
    if (beside && !byId("settings").hidden) this.say(words);
    else this.tell(error);
  }

  /** Makes a file the template. */
  sendTemplate(/** @type {File} */ file) {
    const most = this.server.state?.limits.uploadBytes ?? Infinity;
    showError("template", "");
    let words = "";
    if (file.type && !file.type.startsWith("image/")) words = `${file.name} is not a picture.`;
    else if (file.size > most) {
      words = `${file.name} is too large: ${sizeWords(file.size)}; the limit is ${sizeWords(most)}.`;
    }
    if (words) {
      this.refused(new Refused(words, "template", 400), "template");
      return Promise.resolve(false);
    }
    const path = `/api/collage/template?name=${encodeURIComponent(file.name)}`;
    return this.attempt(() => this.server.request("PUT", path, file), "template");
  }

  useItem(/** @type {number} */ item) {
    showError("template", "");
    return this.attempt(() => this.server.post("/api/collage/template", { item }), "template");
  }

  /** Shows the settings of the server, but leaves alone what is being changed or was refused. */
  follow(/** @type {any} */ state) {
    const { settings, usual, template } = state;
    const busy = !this.idle;
    const free = (/** @type {HTMLInputElement} */ each) =>
      document.activeElement !== each && !each.hasAttribute("aria-invalid");
    for (const id of ["rows", "repeat"]) {
      if (free(input(id))) input(id).value = settings[id] === null ? "" : String(settings[id]);
      input(id).placeholder = usual ? `auto (${usual[id].toLocaleString("en")})` : "auto";
    }
    if (!busy) {
      input("smoothness").value = String(Math.round(100 * settings.smoothness));
      input("detail").value = String(settings.detail);
      input("neighbors").checked = settings.neighbors === "laplacian";
    }
    this.nameValues();
    byId("template-frame").hidden = !template;
    if (template) this.showTemplate(template);
    /** @type {HTMLButtonElement} */ (byId("open-picker")).disabled = state.nPictures === 0;
    this.showFacts(state);
    this.showProblem(state.problem);
  }

  /** What screen readers say of the sliders. */
  nameValues() {
    const smoothness = input("smoothness");
    smoothness.setAttribute("aria-valuetext", `${smoothness.value} percent`);
    const detail = input("detail");
    const words = detail.value === "1" ? "mean colors" : `${detail.value} by ${detail.value} parts`;
    detail.setAttribute("aria-valuetext", words);
  }

  showTemplate(/** @type {{name: string, key: string}} */ { name, key }) {
    byId("template-name").textContent = name;
    const picture = /** @type {HTMLImageElement} */ (byId("template-picture"));
    picture.alt = `The template, ${name}`;
    const source = `/api/collage/template?key=${key}&run=${this.mosaic.run}`;
    if (picture.getAttribute("src") !== source) picture.src = source;
  }

  /** Shows what keeps the collage from being composed, beside the setting it concerns. */
  showProblem(/** @type {{message: string, field: string | null} | null} */ problem) {
    const field = problem?.field && FIELDS.includes(problem.field) ? problem.field : "";
    if (this.shownProblem && this.shownProblem !== field) showError(this.shownProblem, "");
    const hidden = byId("settings").hidden || (!field && byId("about").hidden);
    if (field && problem) showError(field, problem.message);
    if (problem && hidden && problem.message !== this.toldProblem) this.tell(problem.message);
    this.shownProblem = field;
    this.toldProblem = problem?.message ?? "";
  }

  showFacts(/** @type {any} */ { collage, problem, nPictures }) {
    byId("about").hidden = !collage;
    if (!collage) return;
    byId("likeness").textContent = problem && !problem.field ? problem.message : collage.words;
    byId("likeness").hidden = !byId("likeness").textContent;
    const facts = byId("facts");
    facts.replaceChildren();
    const add = (/** @type {string} */ key, /** @type {string} */ value) =>
      facts.append(make("dt", "", key), make("dd", "", value));
    const n = (/** @type {number} */ value) => value.toLocaleString("en");
    add("size", `${n(collage.rows)} rows, ${n(collage.columns)} columns`);
    add("used", `${n(collage.nUsed)} of ${n(nPictures)} pictures`);
    add("most used", collage.mostUsed === 1 ? "once" : `${n(collage.mostUsed)} times`);
    if (collage.nTried < nPictures) add("tried", `${n(collage.nTried)}, drawn at random`);
  }
}

/** The pictures of the wall, of which one can be drawn. */
export class Picker {
  /**
   * @param {Mosaic} mosaic
   * @param {() => Atlas} atlas
   * @param {(item: number) => void} choose
   */
  constructor(mosaic, atlas, choose) {
    this.mosaic = mosaic;
    this.atlas = atlas;
    this.choose = choose;
    this.nShown = 0;
    this.box = /** @type {HTMLDialogElement} */ (byId("picker"));
    closable(this.box);
    for (const id of ["open-picker", "zone-picker"]) {
      byId(id).addEventListener("click", () => this.open());
    }
    byId("picker-more").addEventListener("click", () => this.more());
  }

  open() {
    byId("picker-pictures").replaceChildren();
    this.nShown = 0;
    this.more();
    this.box.showModal();
  }

  more() {
    const { mosaic } = this;
    const slots = [...mosaic.ready.keys()].filter((slot) => mosaic.ready[slot]);
    const next = slots.slice(this.nShown, this.nShown + AT_ONCE);
    this.nShown += next.length;
    const buttons = next.map((slot) => {
      const name = mosaic.nameOf(slot);
      const button = pictureButton(this.atlas().thumbnail(slot), name, () => {
        this.box.close();
        this.choose(slot);
      });
      button.setAttribute("aria-label", name);
      return button;
    });
    byId("picker-pictures").append(...buttons);
    byId("picker-more").hidden = this.nShown >= slots.length;
    if (this.box.open) buttons[0]?.focus();
  }
}

/** The size in print: what was typed, and the pixels that come of it. */
export class PrintForm {
  /** @param {Server} server */
  constructor(server) {
    this.server = server;
    for (const id of ["width", "dpi"]) {
      input(id).addEventListener("input", () => {
        showError(id, "");
        this.show();
      });
    }
    byId("unit").addEventListener("change", () => this.convert());
  }

  get inches() {
    return /** @type {HTMLSelectElement} */ (byId("unit")).value === "in";
  }

  /** Keeps the size when the unit changes. */
  convert() {
    const width = typedNumber("width");
    const other = this.inches ? width / CM : width * CM;
    if (width > 0) input("width").value = String(Number(other.toFixed(1)));
    this.show();
  }

  /** What the server is asked for; it says what is wrong with it. */
  options() {
    const width = typedNumber("width") * (this.inches ? CM : 1);
    const dpi = typedNumber("dpi");
    return { width: Number.isFinite(width) ? width : null, dpi: Number.isFinite(dpi) ? dpi : null };
  }

  /** Shows an error in the menu; false if it is not about the size. */
  refused(/** @type {unknown} */ error) {
    if (!(error instanceof Refused) || !error.field) return false;
    return ["width", "dpi"].includes(error.field) && showError(error.field, error.message);
  }

  show() {
    const { collage, limits } = this.server.state ?? {};
    if (!collage) return;
    const { width, dpi } = this.options();
    const across = Math.floor(((width ?? 0) / CM) * (dpi ?? 0) + 0.5);
    const down = Math.floor((across * collage.rows) / collage.columns + 0.5);
    const good = across > 0 && down > 0;
    const fits = good && across * down <= limits.pixels;
    for (const form of ["png", "jpg"]) {
      const button = /** @type {HTMLButtonElement} */ (document.querySelector(`[data-format="${form}"]`));
      button.disabled = !fits;
    }
    const [unit, per] = this.inches ? ["in", 1] : ["cm", CM];
    const height = ((down / (dpi || 1)) * per).toFixed(1);
    const each = Math.floor(across / collage.columns);
    const [x, y] = [across, down].map((pixels) => pixels.toLocaleString("en"));
    const million = Math.round((across * down) / 1e6).toLocaleString("en");
    const words = `${x} x ${y} pixels, ${height} ${unit} high; ${each} pixels a picture`;
    const most = limits.pixels / 1e6;
    const tooMany = `${x} x ${y} are ${million} million pixels; at most ${most} million are written.`;
    byId("print-size").textContent = fits ? words : good ? tooMany : "Enter a width and a DPI.";
  }
}
