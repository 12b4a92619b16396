// The Match view of `unshuffle serve`: joins the server, the list of pairs, questions and dialogs.
import { byId } from "../../../images/page/panel.js";
import { Answers } from "./answers.js";
import { Asking } from "./questions.js";
import { PartnerPanel } from "./candidates.js";
import { Problems, anyDialog, ask, makeHelp } from "../shared/dialogs.js";
import { Enlarging } from "./enlarge.js";
import { Exports } from "../shared/exports.js";
import { Faces } from "./thumbnails.js";
import { Features } from "../shared/features.js";
import { Pairing } from "./pairing.js";
import { PairList } from "./pairs.js";
import { Progress } from "../shared/progress.js";
import { Refused, Server } from "../shared/server.js";
import { showError } from "../shared/settings.js";
import { followServer, say, setMarks, showHistory } from "../shared/status.js";
import { Summary, counted, nounOf, pairsWords } from "./summary.js";
import { Uploads } from "../shared/uploads.js";
import { Zones, fileProblem } from "./drop.js";

/** @typedef {import("./pairing.js").MatchState} MatchState */

const WIDE = "(min-width: 1100px)";
const NARROW = "(max-width: 720px)"; // the panel covers the list
const SCROLLED = 240; // pixels from which somebody reads the list

const server = new Server("/api/match");
const pairing = new Pairing(server);
const uploads = [0, 1].map((side) => new Uploads(server, `side=${side}&`, fileProblem));
const answers = new Answers(pairing, tell, say);
const faces = new Faces(pairing);
const list = new PairList(pairing, faces, answers, isBusy);
const panel = new PartnerPanel(pairing, faces, answers, chosen);
const asking = new Asking(pairing, faces, answers, () => byId("ask").focus());
const enlarging = new Enlarging(list, faces);
const progress = new Progress(uploads, (job) => answers.cancel(job), "files");
const problems = new Problems();
const openHelp = makeHelp();
const summary = new Summary();
const zones = new Zones(uploads);
const exporting = new Exports(server, tell, say, (state) => state.matching.nPairs === 0);
const features = new Features(compareBy);
let nRefused = 0; // files that people were told of

/** Shows what went wrong; while the server is gone, its banner says so. */
function tell(/** @type {unknown} */ error) {
  if (server.lost) return;
  progress.tell(error instanceof Error ? error.message : String(error));
}

/**
 * Whether sorting the list again would pull it away from under somebody.
 * @returns {boolean}
 */
function isBusy() {
  if (asking.box.open) return false; // the list is out of sight
  const inside = byId("pairs").contains(document.activeElement) || enlarging.box.open;
  return inside || panel.open || byId("scroll").scrollTop > SCROLLED;
}

/** Goes on after a partner was chosen in the panel. */
function chosen(/** @type {number} */ key) {
  if (matchMedia(NARROW).matches) panel.close();
  list.focus(list.nextToCheck(key) ?? key);
}

async function compareBy(/** @type {string[]} */ features) {
  showError("features", "");
  try {
    await server.post("/api/match/settings", { features });
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    if (!(error instanceof Refused) || error.field !== "features") tell(error);
    else showError("features", words);
    if (pairing.state) showState(pairing.state);
  }
}

function openPanel() {
  const { entry } = list;
  if (!entry) return;
  panel.show(entry);
  panel.focus();
}

function closePanel() {
  if (!panel.open) return false;
  panel.close();
  list.focus(list.current);
  return true;
}

/** Lets the panel follow the current pair. */
function followCurrent() {
  if (!panel.open) return;
  const { entry } = list;
  if (entry && !entry.aside) panel.show(entry);
  else panel.close();
}

async function startOver() {
  const words = "This forgets all answers and removes the files you added. Your own files are not touched.";
  if (!(await ask("Start over?", words, "Start over"))) return;
  for (const each of uploads) {
    each.cancel();
    each.forgetProblems();
  }
  panel.close();
  if (!matchMedia(WIDE).matches) openSettings(false);
  await answers.post("clear");
}

/** Lists files that could not be read or were refused; the latter are told once, too. */
function showProblems() {
  const refused = uploads.flatMap((each) => each.problems);
  problems.show([...pairing.items.flatMap((side) => side.failed), ...refused]);
  if (uploads.some((each) => each.active)) return;
  if (refused.length > nRefused) {
    const n = refused.length - nRefused;
    const { name, reason } = refused[nRefused];
    tell(n === 1 ? `${name} was not added. ${reason}` : `${n} files were not added. ${name}: ${reason}`);
  }
  nRefused = refused.length;
}

/** Everything that follows the state but is not in the list. */
function showState(/** @type {MatchState} */ state) {
  const { matching } = state;
  document.title = state.title ? `${state.title} - unshuffle` : "Match - unshuffle";
  byId("title").textContent = state.title;
  const empty = matching.nPairs === 0 && matching.nAside === 0;
  byId("count").textContent = empty ? "" : pairsWords(matching.nPairs);
  const any = state.sides.some((side) => side.total > 0);
  byId("welcome").hidden = !empty;
  byId("scroll").hidden = empty;
  byId("clear").hidden = !any;
  byId("pairs").className = state.kind ?? "";
  const png = /** @type {HTMLElement} */ (document.querySelector('[data-format="png"]'));
  png.hidden = state.kind !== "pictures";
  showHistory(state);
  showAnswers(state);
  zones.show(state);
  summary.show(state, asking.nLeft);
  asking.follow();
  progress.noun = nounOf(state.kind);
  progress.follow(state);
  exporting.follow(state);
}

/** The settings, and the part of them that takes answers back. */
function showAnswers(/** @type {MatchState} */ { matching, settings, kind, content }) {
  byId("compare-by").hidden = kind !== "pictures";
  features.show(settings.features, content);
  const automatic = /** @type {HTMLInputElement} */ (byId("automatic"));
  if (document.activeElement !== automatic || !pairing.nSending) automatic.checked = settings.automatic;
  const { nAnswered, nAside, nWrong } = matching;
  byId("answers").hidden = nAnswered + nAside + nWrong === 0;
  const parts = [];
  if (nAnswered) parts.push(`${pairsWords(nAnswered)} confirmed`);
  if (nWrong) parts.push(`${pairsWords(nWrong)} ruled out`);
  if (nAside) parts.push(`${counted(nAside, kind)} set aside`);
  byId("about-answers").textContent = parts.join(", ");
  byId("release-all").hidden = nAnswered + nWrong === 0;
  byId("back-all").hidden = nAside === 0;
}

/** Says what the server does, when that changes. */
function announce(/** @type {MatchState} */ state, /** @type {MatchState | null} */ before) {
  const reading = (/** @type {MatchState | null} */ each) =>
    each?.jobs.some((job) => job.kind === "reading") ?? false;
  if (reading(state) && !reading(before)) {
    say(`Reading ${counted(state.sides[0].total + state.sides[1].total, state.kind)}`);
  } else if (before && state.matching.settled && !before.matching.settled) {
    const { nChanged, nPairs } = state.matching;
    const changed = nChanged ? `${pairsWords(nChanged)} changed` : "No pair changed";
    say(before.matching.nPairs ? changed : `${pairsWords(nPairs)} found`);
  }
}

/** Tells tests, and whoever asks, how far the page is. */
function mark() {
  const { state } = pairing;
  const idle = !!state?.matching.settled && !state.jobs.length;
  const here = pairing.current && !uploads.some((each) => each.active);
  setMarks({
    settled: idle && here ? "yes" : "no",
    pairs: String(pairing.version),
    ...(pairing.current && { ready: "yes" }),
  });
}

function openSettings(/** @type {boolean} */ on) {
  byId("settings").hidden = !on;
  byId("show-settings").setAttribute("aria-expanded", String(on));
}

function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    const { target } = event;
    const typing = target instanceof HTMLInputElement && ["text", "search"].includes(target.type);
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (anyDialog()) return;
    if ((event.ctrlKey || event.metaKey) && !event.altKey) {
      if (typing) return;
      if (key === "z") answers.step(event.shiftKey ? "redo" : "undo");
      else if (key === "y") answers.step("redo");
      else return;
    } else if (event.altKey) return;
    else if (key === "Escape") {
      if (typing && target.value) return; // empties the search
      if (!closePanel() && !matchMedia(WIDE).matches && !byId("settings").hidden) {
        openSettings(false);
        byId("show-settings").focus();
      }
    } else if (typing || target instanceof HTMLSelectElement) return;
    else if (key === "?") openHelp();
    else if (key === "q" && asking.nLeft) asking.start();
    else if (!panel.press(key)) return;
    event.preventDefault();
  });
}

function listenToButtons() {
  const on = (/** @type {string} */ id, /** @type {() => void} */ action) =>
    byId(id).addEventListener("click", action);
  on("undo", () => answers.step("undo"));
  on("redo", () => answers.step("redo"));
  on("clear", startOver);
  on("ask", () => asking.start());
  on("match-again", () => answers.post("again", {}, "Matching again"));
  on("release-all", () => answers.post("release", { items: [] }, "All answers are taken back"));
  on("back-all", async () => {
    for (const side of [0, 1]) {
      if (pairing.aside[side].size && !(await answers.post("back", { side, items: [] }))) return;
    }
    say("All are matched again");
  });
  on("close", closePanel);
  on("show-settings", () => openSettings(byId("settings").hidden));
  on("close-settings", () => {
    openSettings(false);
    byId("show-settings").focus();
  });
  const automatic = /** @type {HTMLInputElement} */ (byId("automatic"));
  automatic.addEventListener("change", async () => {
    const { checked } = automatic;
    if (!(await answers.post("settings", { automatic: checked }))) automatic.checked = !checked;
  });
}

function listenToServer() {
  for (const each of uploads) {
    each.addEventListener("change", () => {
      showProblems();
      mark();
    });
  }
  /** @type {MatchState | null} */
  let before = null;
  const show = () => {
    const { state } = pairing;
    if (!state) return;
    pairing.follow();
    showState(state);
    announce(state, before);
    before = state;
    mark();
  };
  followServer(server, show, () => {
    pairing.forget();
  });
  pairing.addEventListener("items", () => {
    list.ordering.sortNames();
    showProblems();
    showPairs();
  });
  pairing.addEventListener("pairs", showPairs);
}

function showPairs() {
  if (pairing.version < 0) return; // names alone say nothing
  list.follow();
  followCurrent();
  enlarging.follow();
  if (pairing.state) summary.show(pairing.state, asking.nLeft);
  asking.follow();
  mark();
}

function start() {
  // The token is in a cookie now; nobody should copy it with the address.
  history.replaceState(null, "", location.pathname);
  if (matchMedia(WIDE).matches) openSettings(true);
  list.addEventListener("open", openPanel);
  list.addEventListener("enlarge", () => enlarging.show());
  list.addEventListener("visit", followCurrent);
  listenToKeys();
  listenToButtons();
  listenToServer();
  server.look();
}

start();
