// How good the match is in plain words, why to doubt it, and what was answered so far.
import { byId, make } from "../../../images/page/panel.js";

/** @typedef {import("./pairing.js").MatchState} MatchState */

const KINDS = {
  pictures: ["picture", "pictures"],
  texts: ["text", "texts"],
  table: ["row", "rows"],
};

/** A number of items with their noun. */
export function counted(/** @type {number} */ n, /** @type {MatchState["kind"]} */ kind) {
  const [one, many] = kind ? KINDS[kind] : ["item", "items"];
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

export function nounOf(/** @type {MatchState["kind"]} */ kind) {
  return kind ? KINDS[kind][1] : "files";
}

export function pairsWords(/** @type {number} */ n) {
  return n === 1 ? "1 pair" : `${n.toLocaleString("en")} pairs`;
}

/** Words for how much is there of a collection. */
export function sideWords(/** @type {MatchState} */ state, /** @type {number} */ side) {
  const { total, nReady, nFailed } = state.sides[side];
  const reading = nReady + nFailed < total;
  if (reading) return `${nReady.toLocaleString("en")} of ${counted(total, state.kind)} read`;
  return counted(nReady, state.kind);
}

export class Summary {
  constructor() {
    this.doubts = "";
  }

  /** @param {MatchState} state @param {number} nQuestions that can be asked */
  show(state, nQuestions) {
    const { matching, settings } = state;
    byId("summary-words").textContent =
      matching.summary || (matching.settled ? "" : "Looking for pairs \u2026");
    this.showBelieved(matching);
    const counts = [pairsWords(matching.nPairs), `${matching.nAnswered.toLocaleString("en")} confirmed`];
    if (matching.nChanged) counts.push(`${matching.nChanged.toLocaleString("en")} changed`);
    if (matching.nWrong) counts.push(`${matching.nWrong.toLocaleString("en")} ruled out`);
    if (matching.nAside) counts.push(`${matching.nAside.toLocaleString("en")} set aside`);
    if (matching.seconds !== null) counts.push(`matched in ${seconds(matching.seconds)}`);
    byId("summary-counts").textContent = counts.join(" \u00b7 ");
    const ask = /** @type {HTMLButtonElement} */ (byId("ask"));
    ask.disabled = nQuestions === 0;
    ask.textContent = nQuestions === 1 ? "Answer 1 question" : `Answer ${nQuestions || 10} questions`;
    const again = /** @type {HTMLButtonElement} */ (byId("match-again"));
    const wanted = matching.stale > 0 && !settings.automatic;
    again.disabled = !!state.missing;
    again.classList.toggle("main", wanted);
    again.textContent = wanted
      ? `Match again with ${matching.stale === 1 ? "1 new answer" : `${matching.stale} new answers`}`
      : "Match again";
    ask.classList.toggle("main", !wanted);
    this.showDoubts(matching);
  }

  showBelieved(/** @type {MatchState["matching"]} */ { expected, interval }) {
    const bar = byId("believed");
    bar.hidden = expected === null;
    if (expected === null) return;
    const [low, high] = interval ?? [expected, expected];
    bar.style.setProperty("--share", String(expected));
    bar.style.setProperty("--low", String(low));
    bar.style.setProperty("--high", String(high));
  }

  showDoubts(/** @type {MatchState["matching"]} */ { doubts, advice }) {
    const key = JSON.stringify([doubts, advice]);
    if (key === this.doubts) return;
    this.doubts = key;
    byId("doubts").hidden = !doubts.length;
    byId("summary").classList.toggle("doubtful", doubts.length > 0);
    byId("doubt-list").replaceChildren(...doubts.map((each) => make("li", "", sentence(each))));
    byId("advice").textContent = advice;
    byId("advice").hidden = !advice;
  }
}

function sentence(/** @type {string} */ words) {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}

function seconds(/** @type {number} */ n) {
  return n < 10 ? `${n.toFixed(1)} s` : `${Math.round(n)} s`;
}
