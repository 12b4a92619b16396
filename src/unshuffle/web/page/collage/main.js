// The Collage view of `unshuffle serve`: joins the server, the collage, the settings and dialogs.
import { readColors } from "../../../images/page/marks.js";
import { byId, showBeside } from "../../../images/page/panel.js";
import { View } from "../../../images/page/view.js";
import { Wall } from "../../../images/page/wall.js";
import { Lightbox, Problems, anyDialog, makeHelp } from "../shared/dialogs.js";
import { Exports } from "../shared/exports.js";
import { Mosaic, MosaicLayer, Rings } from "./mosaic.js";
import { Progress } from "../shared/progress.js";
import { Server } from "../shared/server.js";
import { Picker, PrintForm, SketchForm } from "./sketch.js";
import { counted, followServer, say, setMarks, showHistory } from "../shared/status.js";
import { Uploads, filesIn } from "../shared/uploads.js";

const CELL = 64; // units of the world; pixels of a picture in a sheet
const CLOSEST = 320; // screen pixels of a cell
const LONG = 1500; // milliseconds of composing after which it is shown as work
const WIDE = "(min-width: 900px)";

const server = new Server("/api/collage");
const mosaic = new Mosaic(server);
const uploads = new Uploads(server, "", undefined, "/api");
const view = new View(1, 1, CELL, CELL, CLOSEST);
view.foot = 36; // for the buttons there
const rings = new Rings(1, 1, Int32Array.of(-2));
/** @type {Wall | null} made last, since it draws at once */
let wall = null;
const layer = new MosaicLayer(mosaic, () => wall?.ask());
const canvas = /** @type {HTMLCanvasElement} */ (byId("wall"));
const progress = new Progress([uploads], cancel);
const problems = new Problems();
const openHelp = makeHelp();
const lightbox = new Lightbox(mosaic, (_item, down, right) => beside(down, right), () => canvas.focus());
const sketch = new SketchForm(server, mosaic, tell, say, mark);
const print = new PrintForm(server);
new Picker(mosaic, () => layer.atlas, (item) => sketch.useItem(item));
const exporting = new Exports(server, exportRefused, say, (state) => !state.collage, () => print.options());
/** @type {Map<string, number>} when jobs were seen first */
const begun = new Map();

/** Shows what went wrong; while the server is gone, its banner says so. */
function tell(/** @type {unknown} */ error) {
  if (server.lost) return;
  progress.tell(error instanceof Error ? error.message : String(error));
}

/** Shows a size that cannot be printed beside its field. */
function exportRefused(/** @type {unknown} */ error) {
  if (!print.refused(error)) {
    tell(error);
    return;
  }
  exporting.open(true);
  const wrong = document.querySelector("#print [aria-invalid]");
  if (wrong instanceof HTMLElement) wrong.focus();
}

async function attempt(/** @type {() => Promise<any>} */ change) {
  try {
    await change();
    return true;
  } catch (error) {
    tell(error);
    return false;
  }
}

function cancel(/** @type {string} */ job) {
  attempt(() => server.request("DELETE", `/api/collage/jobs/${job}`));
}

/** Goes back or forth in the history. */
async function step(/** @type {"undo" | "redo"} */ which) {
  const what = server.state?.[which];
  if (what === null || what === undefined) return;
  if (!(await attempt(() => server.post(`/api/collage/${which}`)))) return;
  say(which === "undo" ? `Undone: ${what}` : `Redone: ${what}`);
}

function setColors() {
  rings.colors = readColors();
  rings.repaint();
  wall?.ask();
}

/** Shows the collage that has come. */
function arrange() {
  const empty = mosaic.cells.length === 0;
  rings.arrange(mosaic.rows || 1, mosaic.columns || 1, empty ? Int32Array.of(-2) : mosaic.cells);
  rings.repaint();
  if (view.rows !== rings.rows || view.columns !== rings.columns) {
    view.reshape(rings.rows, rings.columns);
    if (wall) wall.current = wall.hovered = -1;
  }
  byId("label").hidden = true;
  const shape = `${mosaic.rows} rows and ${mosaic.columns} columns`;
  canvas.setAttribute("aria-label", empty ? "Collage" : `Collage of ${shape}`);
  wall?.ask();
}

/** The picture beside the current one, which becomes the current one. */
function beside(/** @type {number} */ down, /** @type {number} */ right) {
  if (!wall || wall.current < 0) return -1;
  const cell = wall.step(wall.current, down, right);
  wall.current = cell;
  return mosaic.cells[cell];
}

/** Switches between the collage and its template. */
function compare(/** @type {boolean} */ on) {
  layer.comparing = on;
  byId("show-collage").setAttribute("aria-pressed", String(!on));
  byId("show-template").setAttribute("aria-pressed", String(on));
  say(on ? "The template is shown" : "The collage is shown");
  wall?.ask();
}

/** What is missing before there is a collage. */
function showWelcome(/** @type {any} */ state) {
  const { nPictures, template, reading } = state;
  const adding = uploads.active || reading;
  const needsPictures = nPictures === 0;
  byId("welcome").hidden = adding || (!needsPictures && template !== null);
  byId("for-pictures").hidden = byId("or-arrange").hidden = !needsPictures;
  byId("for-template").hidden = needsPictures;
  byId("welcome-title").textContent = needsPictures ? "Drop the pictures to draw with" : "Drop the picture to draw";
  byId("welcome-words").textContent = !needsPictures
    ? `Your ${counted(nPictures)} become the tiles of one large picture.`
    : template
      ? `They draw ${template.name}. A few hundred make a good collage.`
      : "A few hundred make a good collage. Then drop one more: the picture to draw.";
}

/** Everything that follows the state but is not on the canvas. */
function showState(/** @type {any} */ state) {
  const { collage, pictures, nPictures } = state;
  document.title = state.title ? `${state.title} - Collage - unshuffle` : "Collage - unshuffle";
  byId("title").textContent = state.title;
  const ready = pictures.nReady.toLocaleString("en");
  byId("count").textContent = state.reading
    ? `${ready} of ${counted(pictures.total)} read`
    : nPictures
      ? counted(nPictures)
      : "";
  byId("modes").hidden = byId("zooms").hidden = !collage;
  showWelcome(state);
  showHistory(state);
  sketch.follow(state);
  print.show();
  const now = performance.now();
  const jobs = state.jobs.filter((/** @type {import("../shared/server.js").Job} */ { id, kind }) => {
    if (!begun.has(id)) begun.set(id, now);
    return kind !== "composing" || now - (begun.get(id) ?? now) > LONG;
  });
  progress.follow({ ...state, jobs });
  exporting.follow(state);
}

function showProblems() {
  problems.show([...mosaic.failed, ...uploads.problems]);
}

/** Says what the server does, when that changes. */
function announce(/** @type {any} */ state, /** @type {any} */ before) {
  if (!before) return;
  if (state.reading && !before.reading) say(`Reading ${counted(state.pictures.total)}`);
  else if (state.settled && state.collage && state.collageVersion !== before.settledVersion) {
    const { rows, columns, words } = state.collage;
    say(`Collage of ${rows} rows and ${columns} columns. ${words}`);
  }
}

/** Tells tests, and whoever asks, how far the page is. */
function mark() {
  const { state } = server;
  const idle = !!state?.settled && !state.jobs.length && sketch.idle && !uploads.active;
  setMarks({
    settled: idle && mosaic.current ? "yes" : "no",
    collage: String(mosaic.wallVersion),
    ...(mosaic.current && { ready: "yes" }),
  });
}

function openSettings(/** @type {boolean} */ on) {
  byId("settings").hidden = !on;
  byId("show-settings").setAttribute("aria-expanded", String(on));
}

function closeSettings() {
  openSettings(false);
  byId("show-settings").focus();
}

function listenToWall(/** @type {Wall} */ wall) {
  /** @param {string} name @param {(detail: any) => void} use */
  const on = (name, use) =>
    wall.addEventListener(name, (event) => use(/** @type {CustomEvent} */ (event).detail));
  const nameAt = (/** @type {number} */ cell) => mosaic.nameOf(mosaic.cells[cell]);
  on("hover", ({ cell, at }) => showBeside(byId("label"), cell < 0 ? "" : nameAt(cell), at, view));
  on("visit", ({ cell }) => {
    if (cell < 0) return;
    say(`${nameAt(cell)}, ${mosaic.placeWords(cell)}`);
    showBeside(byId("label"), nameAt(cell), wall.middleOf(cell), view);
  });
  on("open", ({ cell }) => {
    if (wall.current === cell) lightbox.show(mosaic.cells[cell]);
    else wall.visit(cell);
  });
}

function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    const { target } = event;
    const typing = target instanceof HTMLInputElement && target.type === "text";
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (anyDialog()) return;
    if ((event.ctrlKey || event.metaKey) && !event.altKey) {
      if (typing) return;
      if (key === "z") step(event.shiftKey ? "redo" : "undo");
      else if (key === "y") step("redo");
      else return;
    } else if (event.altKey || typing || target instanceof HTMLSelectElement) return;
    else if (key === "Escape") {
      if (!matchMedia(WIDE).matches && !byId("settings").hidden) closeSettings();
      else {
        wall?.visit(-1);
        byId("label").hidden = true;
      }
    } else if (key === "?") openHelp();
    else if (key === "t" && mosaic.template && mosaic.cells.length) compare(!layer.comparing);
    else return;
    event.preventDefault();
  });
}

function listenToButtons(/** @type {Wall} */ wall) {
  const on = (/** @type {string} */ id, /** @type {() => void} */ action) =>
    byId(id).addEventListener("click", action);
  on("undo", () => step("undo"));
  on("redo", () => step("redo"));
  on("in-zoom", () => wall.zoom(1.5, view.width / 2, view.height / 2));
  on("out-zoom", () => wall.zoom(1 / 1.5, view.width / 2, view.height / 2));
  on("fit", () => wall.fit());
  on("show-collage", () => compare(false));
  on("show-template", () => compare(true));
  on("show-settings", () => openSettings(byId("settings").hidden));
  on("close-settings", closeSettings);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", setColors);
}

/** One picture that is dropped is drawn; several, or a folder, are drawn with. */
function listenForFiles() {
  for (const [button, id] of [
    ["choose-pictures", "pictures-input"],
    ["choose-folder", "folder-input"],
    ["add", "pictures-input"],
  ]) {
    byId(button).addEventListener("click", () => byId(id).click());
  }
  for (const id of ["pictures-input", "folder-input"]) {
    const chooser = /** @type {HTMLInputElement} */ (byId(id));
    chooser.addEventListener("change", () => {
      uploads.add([...(chooser.files ?? [])]);
      chooser.value = "";
    });
  }
  const hasFiles = (/** @type {DragEvent} */ event) =>
    event.dataTransfer?.types.includes("Files") ?? false;
  addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    byId("dropping").hidden = false;
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) byId("dropping").hidden = true;
  });
  addEventListener("drop", async (event) => {
    byId("dropping").hidden = true;
    const { dataTransfer } = event;
    if (!dataTransfer || !hasFiles(event)) return;
    event.preventDefault();
    const folder = [...dataTransfer.items].some((item) => item.webkitGetAsEntry?.()?.isDirectory);
    const files = await filesIn(dataTransfer);
    if (files.length === 1 && !folder) sketch.sendTemplate(files[0]);
    else uploads.add(files);
  });
}

function listenToServer() {
  uploads.addEventListener("change", () => {
    showProblems();
    if (server.state) showState(server.state);
    mark();
  });
  /** @type {any} */
  let before = null;
  const show = () => {
    const { state } = server;
    mosaic.follow(state);
    showState(state);
    announce(state, before);
    const { settledVersion = state.collageVersion } = before ?? {};
    before = { ...state, settledVersion: state.settled ? state.collageVersion : settledVersion };
    mark();
  };
  followServer(server, show, () => {
    mosaic.forget();
    layer.forget();
  });
  mosaic.addEventListener("wall", () => {
    arrange();
    mark();
  });
  mosaic.addEventListener("pictures", () => {
    showProblems();
    wall?.ask();
  });
  mosaic.addEventListener("others", () => layer.forget());
}

function start() {
  // The token is in a cookie now; nobody should copy it with the address.
  history.replaceState(null, "", location.pathname);
  setColors();
  wall = new Wall(canvas, view, layer, rings);
  if (matchMedia(WIDE).matches) openSettings(true);
  listenToWall(wall);
  listenToKeys();
  listenForFiles();
  listenToButtons(wall);
  listenToServer();
  server.look();
}

start();
