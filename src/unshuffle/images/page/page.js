// The page of a saved wall: reads its description and joins wall, search, filters and panel.
import { Filters } from "./filters.js";
import { Items, placeWords } from "./items.js";
import { Marks, readColors } from "./marks.js";
import { Panel, addressOf, byId, itemOf, showBeside } from "./panel.js";
import { Sheets } from "./sheets.js";
import { folderSource, pageSource } from "./source.js";
import { View } from "./view.js";
import { Wall } from "./wall.js";

/**
 * @typedef {object} Meta What a wall is made of.
 * @property {"folder" | "page"} form
 * @property {number} n items
 * @property {number} rows
 * @property {number} columns
 * @property {string[]} noun singular and plural of what is shown
 * @property {string[]} headings names of the columns
 * @property {number} chunk items in a part of the data
 * @property {import("./sheets.js").Level[]} levels
 * @property {string} suffix of sheets
 * @property {string} pictureSuffix of larger pictures; "" for none
 * @property {number} pictureSide usual height in pixels of what a cell shows of them
 * @property {boolean} exact
 * @property {number} neighbors look-alikes of each item
 * @property {boolean} links
 * @property {import("./marks.js").Region[]} regions
 */

const READABLE = 48; // pixels of a cell that a search leads to
const LEAST_LARGEST = 64; // a cell can always be enlarged to this

/** @type {Meta} */
const meta = JSON.parse(byId("meta").textContent ?? "");
const makeSource = meta.form === "folder" ? folderSource : pageSource;
const source = makeSource(meta.suffix, meta.pictureSuffix);
const items = new Items(meta, source);
const finest = meta.levels[0];
const pictureWidth = meta.pictureSuffix ? (meta.pictureSide * finest.width) / finest.height : 0;
const closest = Math.max(finest.width, pictureWidth, LEAST_LARGEST);
const view = new View(meta.rows, meta.columns, finest.width, finest.height, closest);
const marks = new Marks(meta.rows, meta.columns, items.cells);
marks.regions = meta.regions;
/** @type {Wall | null} made last, since it draws at once */
let wall = null;
const sheets = new Sheets(meta.levels, meta.exact, source, items.cells, () => wall?.ask());
const canvas = /** @type {HTMLCanvasElement} */ (byId("wall"));
const searchField = /** @type {HTMLInputElement} */ (byId("search"));
const searchWhere = /** @type {HTMLSelectElement} */ (byId("search-in"));
const filters = new Filters(items, refresh);
const panel = new Panel(items, sheets, source, meta, (item) => openItem(item));
/** @type {Uint8Array | null} items that the search found */
let found = null;
/** @type {Uint8Array} */
let selected = new Uint8Array(meta.n);
let searches = 0;

function say(/** @type {string} */ words) {
  byId("said").textContent = words;
}

function counted(/** @type {number} */ n) {
  return `${n.toLocaleString("en")} ${meta.noun[n === 1 ? 0 : 1]}`;
}

function nameAt(/** @type {number} */ cell) {
  return items.names[items.cells[cell]] ?? "";
}

/** Dims, frames and counts by what is searched, filtered and selected. */
function refresh() {
  marks.kept = filters.keep(found);
  marks.groups = filters.frames();
  marks.selected = selected.includes(1) ? selected : null;
  marks.repaint();
  filters.countAll(found);
  const n = marks.kept ? countPlaced(marks.kept) : items.nPlaced;
  const words = marks.kept
    ? `${n.toLocaleString("en")} of ${counted(items.nPlaced)}`
    : counted(items.nPlaced);
  byId("count").textContent = words;
  byId("steps").hidden = !marks.kept || n === 0;
  wall?.ask();
  return words;
}

function countPlaced(/** @type {Uint8Array} */ mask) {
  let n = 0;
  for (let i = 0; i < mask.length; i++) if (mask[i] && items.cellOf[i] >= 0) n++;
  return n;
}

async function search() {
  const number = ++searches;
  const answer = await items.search(searchField.value, searchWhere.value, () => number !== searches);
  if (number !== searches) return;
  found = answer;
  say(refresh());
}

function showLabel(/** @type {number} */ cell, /** @type {{x: number, y: number} | null} */ at) {
  const name = cell < 0 ? "" : nameAt(cell);
  const first = name && items.columns.length ? items.value(items.cells[cell], 0) : "";
  // A sub-folder is in the name already.
  const words = first && !name.startsWith(`${first}/`) ? `${name}: ${first}` : name;
  showBeside(byId("label"), words, at, view);
}

function openItem(/** @type {number} */ item, least = 0) {
  const cell = items.cellOf[item];
  if (cell < 0) return;
  showItem(item);
  wall?.visit(cell, least);
}

/** Shows the details of an item, to which the address then leads. */
function showItem(/** @type {number} */ item) {
  panel.show(item);
  byId("label").hidden = true;
  history.replaceState(null, "", addressOf(items, item));
}

function closePanel() {
  if (!panel.open) return false;
  panel.close();
  history.replaceState(null, "", location.pathname + location.search);
  canvas.focus({ preventScroll: true });
  return true;
}

/** @param {number[]} cells @param {string} how */
function choose(cells, how) {
  const chosen = cells.map((cell) => items.cells[cell]);
  if (how === "replace") selected = new Uint8Array(meta.n);
  for (const item of chosen) {
    // Dimmed items are not meant.
    if (marks.kept && !marks.kept[item] && how !== "remove") continue;
    selected[item] = how === "remove" || (how === "toggle" && selected[item]) ? 0 : 1;
  }
  const n = countPlaced(selected);
  byId("selection").hidden = n === 0;
  byId("selected").textContent = `${counted(n)} selected`;
  say(n ? `${counted(n)} selected` : "nothing selected");
  refresh();
}

function saveSelection() {
  const chosen = [...items.cells].filter((item) => item >= 0 && selected[item]);
  const text = items.csv([...new Set(chosen)]);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = "selection.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function setMode(/** @type {string} */ mode) {
  if (wall) wall.mode = mode === "box" || mode === "lasso" ? mode : "move";
  for (const name of ["move", "box", "lasso"]) {
    byId(`mode-${name}`).setAttribute("aria-pressed", String(name === mode));
  }
  canvas.dataset.mode = mode;
}

function toggleFilters() {
  const part = byId("filters");
  part.hidden = !part.hidden;
  byId("show-filters").setAttribute("aria-expanded", String(!part.hidden));
}

/** Leads to the next item that is found. */
function nextFound(/** @type {number} */ direction) {
  if (!wall) return;
  const cell = wall.follow(wall.current, direction);
  if (panel.open) openItem(items.cells[cell], READABLE);
  else wall.visit(cell, READABLE);
}

function listen(/** @type {Wall} */ wall) {
  const on = (/** @type {string} */ id, /** @type {() => void} */ action) =>
    byId(id).addEventListener("click", action);
  const detail = (/** @type {Event} */ event) => /** @type {CustomEvent} */ (event).detail;
  wall.addEventListener("hover", (event) => showLabel(detail(event).cell, detail(event).at));
  wall.addEventListener("open", (event) => openItem(items.cells[detail(event).cell]));
  wall.addEventListener("choose", (event) => choose(detail(event).cells, detail(event).how));
  wall.addEventListener("visit", (event) => {
    const { cell } = detail(event);
    if (cell < 0) return;
    const item = items.cells[cell];
    say(`${nameAt(cell)}, ${placeWords(items.cellOf[item], items.gridColumns)}`);
    if (panel.open && panel.item !== item) showItem(item);
    else if (!panel.open) showLabel(cell, wall.middleOf(cell));
  });
  wall.addEventListener("drawn", () => {
    if (sheets.complete && !document.documentElement.dataset.ready) {
      byId("waiting").hidden = true;
      document.documentElement.dataset.ready = "yes";
    } else if (sheets.base.failed.size && !document.documentElement.dataset.ready) {
      byId("waiting").textContent = lost();
    }
  });
  on("in", () => wall.zoom(1.5, view.width / 2, view.height / 2));
  on("out", () => wall.zoom(1 / 1.5, view.width / 2, view.height / 2));
  on("fit", () => wall.fit());
  on("close", closePanel);
  on("show-filters", toggleFilters);
  on("close-filters", toggleFilters);
  on("save", saveSelection);
  on("clear-selection", () => choose([], "replace"));
  on("previous", () => nextFound(-1));
  on("next", () => nextFound(1));
  for (const mode of ["move", "box", "lasso"]) on(`mode-${mode}`, () => setMode(mode));
  let typed = 0;
  searchField.addEventListener("input", () => {
    clearTimeout(typed);
    typed = window.setTimeout(search, 120);
  });
  searchWhere.addEventListener("change", search);
  searchField.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      clearTimeout(typed); // its count would come after the name of the picture
      search().then(() => nextFound(event.shiftKey ? -1 : 1));
    }
    if (event.key !== "Escape") return;
    searchField.value = "";
    search();
    canvas.focus();
    event.stopPropagation();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement && event.target.type !== "checkbox";
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      searchField.focus();
      event.preventDefault();
    } else if (event.key === "Escape" && !closePanel()) {
      if (!byId("filters").hidden) toggleFilters();
      else if (!byId("selection").hidden) choose([], "replace");
      else wall.visit(-1);
    }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    marks.colors = readColors();
    marks.repaint();
    wall.ask();
  });
  window.addEventListener("hashchange", follow);
}

/** Opens the item that the address leads to. */
function follow() {
  const item = itemOf(items, location.hash);
  if (item >= 0 && item !== panel.item) openItem(item, READABLE);
}

function lost() {
  return meta.form === "folder"
    ? "The pictures cannot be found. Keep this page together with its folder."
    : "The pictures in this file are damaged. Create the page again.";
}

async function start() {
  sheets.hasPictures = meta.pictureSuffix !== "";
  marks.colors = readColors();
  marks.repaint();
  wall = new Wall(canvas, view, sheets, marks);
  listen(wall);
  meta.headings.forEach((heading, j) => searchWhere.append(new Option(heading, String(j))));
  searchWhere.hidden = byId("show-filters").hidden = !meta.headings.length;
  byId("count").textContent = counted(meta.n);
  try {
    await items.load(() => {
      marks.repaint();
      canvas.setAttribute(
        "aria-label",
        `Wall of ${counted(items.nPlaced)} in ${meta.rows} rows and ${meta.columns} columns`,
      );
      wall?.ask();
    });
  } catch {
    byId("waiting").hidden = false;
    byId("waiting").textContent = lost();
    return;
  }
  filters.build();
  if (searchField.value) search();
  else refresh();
  follow();
  document.documentElement.dataset.loaded = "yes";
}

start();
