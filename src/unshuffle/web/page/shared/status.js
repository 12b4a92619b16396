// What pages tell of the state: title, counts, history, announcements, and a lost server.
import { byId } from "../../../images/page/panel.js";

/** @typedef {import("./server.js").State} State */

export function say(/** @type {string} */ words) {
  byId("said").textContent = words;
}

export function counted(/** @type {number} */ n) {
  return `${n.toLocaleString("en")} ${n === 1 ? "picture" : "pictures"}`;
}

function isReading(/** @type {State | null} */ state) {
  return state?.jobs.some((job) => job.kind === "reading") ?? false;
}

/** Shows the state in the header; `adding` if pictures are on their way to the server. */
export function showStatus(/** @type {State} */ state, /** @type {boolean} */ adding) {
  const { pictures } = state;
  const reading = isReading(state);
  document.title = state.title ? `${state.title} - unshuffle` : "unshuffle";
  byId("title").textContent = state.title;
  const ready = pictures.nReady.toLocaleString("en");
  byId("count").textContent = reading
    ? `${ready} of ${counted(pictures.total)} read`
    : counted(state.wall.nPlaced);
  const empty = pictures.total === 0;
  byId("welcome").hidden = !empty || adding || reading;
  byId("modes").hidden = byId("zooms").hidden = empty;
  showHistory(state);
}

/** Lets the buttons of the history say what they undo. */
export function showHistory(/** @type {{undo: string | null, redo: string | null}} */ state) {
  for (const which of /** @type {const} */ (["undo", "redo"])) {
    const button = /** @type {HTMLButtonElement} */ (byId(which));
    const [verb, keys] = which === "undo" ? ["Undo", "Ctrl+Z"] : ["Redo", "Ctrl+Shift+Z"];
    const what = state[which];
    button.disabled = what === null;
    button.title = what === null ? `Nothing to ${which}` : `${verb} ${what} (${keys})`;
    button.setAttribute("aria-label", what === null ? verb : `${verb} ${what}`);
  }
}

/** Tells tests, and whoever asks, how far the page is. */
export function setMarks(/** @type {Record<string, string>} */ marks) {
  const { dataset } = document.documentElement;
  for (const [name, value] of Object.entries(marks)) {
    if (dataset[name] !== value) dataset[name] = value;
  }
}

const RETRIES =
  "Changes are lost when the server stops, unless they can be saved before that. Saving is tried " +
  "again every few seconds.";

/**
 * Shows each state, and a banner while the server is gone or cannot save.
 * @param {import("./server.js").Server} server
 * @param {() => void} show
 * @param {() => void} forget what an earlier server has sent
 */
export function followServer(server, show, forget) {
  const banner = byId("lost");
  server.addEventListener("state", () => {
    if (!server.state) return;
    const { unsaved } = server.state;
    banner.hidden = !unsaved;
    const words = unsaved ? `${unsaved} ${RETRIES}` : "";
    if (banner.textContent !== words) banner.textContent = words; // an alert, read out each time
    show();
  });
  server.addEventListener("lost", () => {
    banner.hidden = false;
    banner.textContent = server.stranger
      ? "The server was started again. Open the address that unshuffle serve printed."
      : `The server has stopped${server.state?.unsaved ? ", and the last changes are not saved" : ""}. ` +
        "Start unshuffle serve again and open the address that it prints.";
    setMarks({ settled: "no" });
  });
  server.addEventListener("found", () => {
    forget();
    say("The server is back");
  });
}

/** Says what the server does, when that changes. */
export function announce(/** @type {State} */ state, /** @type {State | null} */ before) {
  if (isReading(state) && !isReading(before)) say(`Reading ${counted(state.pictures.total)}`);
  else if (before && state.wall.settled && !before.wall.settled) {
    say(`${counted(state.wall.nPlaced)} arranged`);
  }
}
