// The page of `unshuffle serve`: joins the server, the wall, the settings and the dialogs.
import { Marks, readColors } from "../../../images/page/marks.js";
import { byId, showBeside } from "../../../images/page/panel.js";
import { View } from "../../../images/page/view.js";
import { Actions } from "./actions.js";
import { Album } from "../shared/album.js";
import { Details } from "./details.js";
import { Lightbox, Problems, anyDialog, ask, makeHelp } from "../shared/dialogs.js";
import { Exports } from "../shared/exports.js";
import { Hands } from "./drag.js";
import { Progress } from "../shared/progress.js";
import { Server } from "../shared/server.js";
import { SettingsForm } from "../shared/settings.js";
import { announce, counted, followServer, say, setMarks, showStatus } from "../shared/status.js";
import { Tiles } from "./tiles.js";
import { Uploads, listenForFiles } from "../shared/uploads.js";

/** @typedef {import("../shared/server.js").State} State */

const CELL = 64; // units of the world; pixels of a picture in a sheet
const CLOSEST = 320; // screen pixels of a cell
const READABLE = 40; // least pixels of a picture that a look-alike leads to
const WIDE = "(min-width: 900px)";

const server = new Server();
const album = new Album(server);
const uploads = new Uploads(server);
const view = new View(1, 1, CELL, CELL, CLOSEST);
view.foot = 36; // for the buttons there
const marks = new Marks(1, 1, Int32Array.of(-2));
/** @type {Hands | null} made last, since it draws at once */
let wall = null;
const tiles = new Tiles(album, () => wall?.ask());
const canvas = /** @type {HTMLCanvasElement} */ (byId("wall"));
const actions = new Actions(server, album, tell, say);
const progress = new Progress(
  [uploads],
  (job) => actions.cancel(job),
  "pictures",
  () => actions.step("undo"),
);
const details = new Details(server, album, () => tiles.atlas, (item) => select(item, READABLE, true));
const lightbox = new Lightbox(album, neighborOf, (item) => returnTo(item));
const problems = new Problems();
const openHelp = makeHelp();
const exporting = new Exports(server, tell, say, (state) => state.wall.nPlaced === 0);
const settings = new SettingsForm(server, album, () => tiles.atlas, actions);

/** Shows what went wrong; while the server is gone, its banner says so. */
function tell(/** @type {unknown} */ error) {
  if (server.lost) return;
  progress.tell(error instanceof Error ? error.message : String(error));
}

function setColors() {
  const style = getComputedStyle(document.documentElement);
  const color = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  marks.colors = { ...readColors(), hole: color("--hole") };
  tiles.setColors(color("--paper"), color("--blank"));
  marks.repaint();
  wall?.ask();
}

/** @type {import("./animate.js").Dropped | null} the picture that was let go just now */
let dropped = null;

/** A copy of the window, to glide from. */
function windowNow() {
  return Object.assign(new View(view.rows, view.columns, CELL, CELL, CLOSEST), view);
}

/** Shows the arrangement of the album. */
function arrange() {
  const before = windowNow();
  const item = wall && wall.current >= 0 ? marks.cells[wall.current] : -1;
  const empty = album.cells.length === 0;
  marks.arrange(album.rows || 1, album.columns || 1, empty ? Int32Array.of(-2) : album.cells);
  view.reshape(marks.rows, marks.columns);
  tiles.arrange(before, view, dropped);
  dropped = null;
  if (wall) {
    wall.keepLoad();
    wall.hovered = -1;
    // The ring stays with its picture.
    wall.current = item < 0 ? -1 : (album.cellOf[item] ?? -1);
  }
  byId("label").hidden = true;
  if (details.open && (album.cellOf[details.item] ?? -1) < 0) deselect();
  details.refresh();
  settings.showOut();
  highlight();
  canvas.setAttribute(
    "aria-label",
    `Wall of ${counted(server.state?.wall.nPlaced ?? 0)} in ${album.rows} rows and ` +
      `${album.columns} columns`,
  );
}

/** Rings the look-alikes of the selected picture. */
function highlight() {
  marks.ringed = details.open && details.alike ? new Set([details.item, ...details.alike]) : null;
  marks.repaint();
  wall?.ask();
}

/** Opens or closes a side of the page; the wall glides to its new place. */
function resized(/** @type {() => void} */ change) {
  const before = windowNow();
  change();
  if (!wall) return;
  wall.resize();
  tiles.arrange(before, view);
}

/** @param {number} item @param {number} least @param {boolean} back focuses the wall */
function select(item, least = 0, back = false) {
  const cell = album.cellOf[item] ?? -1;
  if (cell < 0 || !wall) return;
  resized(() => details.show(item));
  highlight();
  byId("label").hidden = true;
  wall.visit(cell, least);
  if (back) canvas.focus({ preventScroll: true });
}

/** Leads to the picture that was shown large last. */
function returnTo(/** @type {number} */ item) {
  if (details.open) select(item, 0, true);
  else {
    wall?.visit(album.cellOf[item] ?? -1);
    canvas.focus({ preventScroll: true });
  }
}

function deselect() {
  if (!details.open) return false;
  const inside = byId("panel").contains(document.activeElement);
  resized(() => details.close());
  highlight();
  if (inside) canvas.focus({ preventScroll: true });
  return true;
}

/** The picture beside another one on the wall. */
function neighborOf(/** @type {number} */ item, /** @type {number} */ down, /** @type {number} */ right) {
  const cell = album.cellOf[item] ?? -1;
  return cell < 0 || !wall ? -1 : album.cells[wall.step(cell, down, right)];
}

/** The picture that keys are about. */
function currentItem() {
  if (wall && wall.current >= 0) return album.cells[wall.current];
  return details.item;
}

function leaveOut(/** @type {number} */ item) {
  canvas.focus({ preventScroll: true }); // the details close
  actions.leaveOut(item);
}

async function startOver() {
  const words = "This removes the pictures you added, the arrangement and its history.";
  const kept = server.state?.folder ? " The files in the folder are not touched." : " Your own files are not touched.";
  if (!(await ask("Start over?", words + kept, "Start over"))) return;
  uploads.cancel();
  uploads.forgetProblems();
  deselect();
  if (!matchMedia(WIDE).matches) openSettings(false);
  await actions.post("/api/clear");
}

function showProblems() {
  problems.show([...album.failed, ...uploads.problems]);
}

/** Everything that follows the state but is not on the wall. */
function showState(/** @type {State} */ state) {
  showStatus(state, uploads.active);
  settings.follow(state);
  progress.follow(state);
  exporting.follow(state);
}

/** Tells tests, and whoever asks, how far the page is. */
function mark() {
  const { state } = server;
  const settled = !!state?.wall.settled && album.current && !tiles.moving && !state.jobs.length;
  const { nDrawn } = tiles.atlas;
  const drawn = state?.pictures.nReady === 0 || (album.current && nDrawn > 0);
  setMarks({
    settled: settled ? "yes" : "no",
    pictures: String(nDrawn),
    wall: String(album.wallVersion),
    ...(drawn && { ready: "yes" }),
  });
}

function setMode(/** @type {"carry" | "move"} */ mode) {
  if (wall) wall.mode = mode;
  for (const name of ["carry", "move"]) {
    byId(`mode-${name}`).setAttribute("aria-pressed", String(name === mode));
  }
  canvas.dataset.mode = mode;
}

function openSettings(/** @type {boolean} */ on) {
  resized(() => {
    byId("settings").hidden = !on;
    byId("show-settings").setAttribute("aria-expanded", String(on));
  });
}

function listenToWall(/** @type {Hands} */ wall) {
  /** @param {string} name @param {(detail: any) => void} use */
  const on = (name, use) =>
    wall.addEventListener(name, (event) => use(/** @type {CustomEvent} */ (event).detail));
  const nameAt = (/** @type {number} */ cell) => album.nameOf(marks.cells[cell]);
  on("hover", ({ cell, at }) => {
    showBeside(byId("label"), cell < 0 || tiles.moving ? "" : nameAt(cell), at, view);
  });
  on("open", ({ cell }) => select(album.cells[cell]));
  on("enter", ({ cell }) => {
    if (details.item === album.cells[cell]) lightbox.show(details.item);
    else select(album.cells[cell]);
  });
  on("nothing", () => deselect());
  on("enlarge", ({ cell }) => {
    if (cell >= 0) lightbox.show(album.cells[cell]);
  });
  on("visit", ({ cell }) => {
    if (cell < 0) return;
    const item = album.cells[cell];
    const frozen = album.frozen.has(item) ? ", frozen" : "";
    say(`${nameAt(cell)}, ${album.placeWords(cell)}${frozen}`);
    if (details.open && details.item !== item) select(item);
    else if (!details.open) showBeside(byId("label"), nameAt(cell), wall.middleOf(cell), view);
  });
  on("lift", ({ load }) => {
    byId("label").hidden = true;
    if (load.at) return;
    const keys = "Arrow keys choose a cell, Enter drops it, Escape puts it back.";
    say(`${album.nameOf(load.item)} is picked up. ${keys}`);
  });
  on("aim", ({ load }) => {
    if (load.at) return;
    const there = album.cells[load.target];
    const holder = there === load.item ? "its own place" : there < 0 ? "empty" : nameAt(load.target);
    say(`${album.placeWords(load.target)}, ${holder}`);
  });
  on("back", ({ load }) => {
    if (!load.at) wall.visit(load.from);
    say(`${album.nameOf(load.item)} is back in its place`);
  });
  on("put", ({ item, cell, at }) => {
    dropped = at && { item, at };
    wall.current = -1;
    actions.move(item, cell);
    wall.current = cell;
  });
  wall.addEventListener("drawn", mark);
}

function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    const { target } = event;
    const typing = target instanceof HTMLInputElement && target.type === "text";
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (anyDialog()) return;
    if ((event.ctrlKey || event.metaKey) && !event.altKey) {
      if (typing) return;
      if (key === "z") actions.step(event.shiftKey ? "redo" : "undo");
      else if (key === "y") actions.step("redo");
      else return;
    } else if (event.altKey || typing) return;
    else if (key === "Escape") {
      if (wall?.load) wall.putBack();
      else if (!deselect()) {
        if (!matchMedia(WIDE).matches && !byId("settings").hidden) {
          openSettings(false);
          byId("show-settings").focus();
        } else wall?.visit(-1);
      }
    } else if (key === "?") openHelp();
    else if (target === canvas || byId("panel").contains(/** @type {Node} */ (target))) {
      if (wall?.load) return;
      const item = currentItem();
      if (key === "f") actions.toggleFrozen(item);
      else if (key === "l" && item >= 0) lightbox.show(item);
      else if (key === "Delete" || key === "Backspace") leaveOut(item);
      else return;
    } else return;
    event.preventDefault();
  });
}

function listenToButtons(/** @type {Hands} */ wall) {
  const on = (/** @type {string} */ id, /** @type {() => void} */ action) =>
    byId(id).addEventListener("click", action);
  on("undo", () => actions.step("undo"));
  on("redo", () => actions.step("redo"));
  on("clear", startOver);
  on("in-zoom", () => wall.zoom(1.5, view.width / 2, view.height / 2));
  on("out-zoom", () => wall.zoom(1 / 1.5, view.width / 2, view.height / 2));
  on("fit", () => wall.fit());
  on("mode-carry", () => setMode("carry"));
  on("mode-move", () => setMode("move"));
  on("close", deselect);
  on("larger", () => lightbox.show(details.item));
  on("freeze", () => actions.toggleFrozen(details.item));
  on("leave-out", () => leaveOut(details.item));
  on("show-settings", () => openSettings(byId("settings").hidden));
  on("close-settings", () => {
    openSettings(false);
    byId("show-settings").focus();
  });
  details.addEventListener("alike", highlight);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", setColors);
}

function listenToServer() {
  uploads.addEventListener("change", () => {
    showProblems();
    if (server.state) showState(server.state);
  });
  /** @type {State | null} */
  let before = null;
  const show = () => {
    const { state } = server;
    album.follow(state);
    showState(state);
    if (state.wall.settled) details.refresh();
    announce(state, before);
    before = state;
    mark();
  };
  followServer(server, show, () => {
    album.forget();
    tiles.forget();
  });
  album.addEventListener("wall", () => {
    arrange();
    mark();
  });
  album.addEventListener("pictures", () => {
    showProblems();
    wall?.ask();
  });
  album.addEventListener("others", () => {
    tiles.forget();
    deselect();
  });
}

function start() {
  // The token is in a cookie now; nobody should copy it with the address.
  history.replaceState(null, "", location.pathname);
  setColors();
  wall = new Hands(canvas, view, tiles, marks, album);
  setMode("carry");
  if (matchMedia(WIDE).matches) openSettings(true);
  listenToWall(wall);
  listenToKeys();
  listenForFiles(uploads);
  listenToButtons(wall);
  listenToServer();
  server.look();
}

start();
