// One pair in the list: both items, how sure the match is, and what can be done.
import { make } from "../../../images/page/panel.js";
import { isPair } from "./ordering.js";

/** @typedef {import("./thumbnails.js").Faces} Faces */
/** @typedef {import("./pairing.js").Entry} Entry */
/** @typedef {import("./pairing.js").Pairing} Pairing */

/** @type {[number, string][]} least share of each word */
const LEVELS = [
  [0.9, "very likely"],
  [0.7, "likely"],
  [0.4, "uncertain"],
  [0, "doubtful"],
];

/** How sure a share is, in a word. */
export function levelOf(/** @type {number} */ share) {
  return LEVELS.find(([least]) => share >= least)?.[1] ?? "doubtful";
}

export function percent(/** @type {number} */ share) {
  // 100% would claim a certainty that no match has.
  return `${share < 1 ? Math.min(99, Math.round(100 * share)) : 100}%`;
}

/** A bar as long as a share. */
function bar(/** @type {number} */ share) {
  const element = make("span", "bar");
  element.setAttribute("aria-hidden", "true");
  const filled = make("span");
  element.append(filled);
  setBar(element, share);
  return element;
}

function setBar(/** @type {HTMLElement} */ element, /** @type {number} */ share) {
  element.style.setProperty("--share", String(share));
  element.dataset.level = share >= 0.7 ? "high" : share >= 0.4 ? "middle" : "low";
}

function button(/** @type {string} */ act, /** @type {string} */ words, className = "") {
  const element = /** @type {HTMLButtonElement} */ (make("button", className, words));
  element.type = "button";
  element.dataset.act = act;
  element.tabIndex = -1;
  return element;
}

/** What can be done with an entry: name of the action and words on its button. */
function actsOf(/** @type {Entry} */ entry) {
  if (entry.aside) return [["back", "Put back"]];
  if (!isPair(entry)) return [["open", "Find its partner"], ["none", "Set aside"]];
  if (entry.answered) return [["back", "Take back"], ["open", "Change"]];
  return [["right", "Correct"], ["open", "Wrong"]];
}

export class Row {
  /**
   * @param {Pairing} pairing
   * @param {Faces} faces
   * @param {Entry} entry
   */
  constructor(pairing, faces, entry) {
    this.pairing = pairing;
    this.faces = faces;
    this.key = entry.key;
    this.element = make("article", "duo");
    this.element.tabIndex = -1;
    this.element.dataset.key = String(entry.key);
    this.both = make("div", "faces");
    this.words = make("span", "words");
    this.bar = bar(0);
    this.badges = make("span", "badges");
    const about = make("div", "about");
    about.append(this.words, this.bar, this.badges);
    this.acts = make("div", "acts group");
    this.element.append(this.both, about, this.acts);
    this.enlarge = button("enlarge", "\u2922", "enlarge");
    this.shown = ""; // what the row shows, so that most updates cost nothing
    this.slots = "";
    this.isCurrent = false;
    this.update(entry);
  }

  update(/** @type {Entry} */ entry) {
    const { pairing } = this;
    const names = [pairing.nameOf(0, entry.left), pairing.nameOf(1, entry.right)];
    const slots = [pairing.run, pairing.state?.kind, entry.left, entry.right, ...names].join("/");
    const { answered, changed, aside } = entry;
    const shown = [slots, percent(entry.share), answered, changed, aside].join("/");
    if (shown === this.shown) return;
    this.shown = shown;
    if (slots !== this.slots) {
      this.slots = slots;
      this.both.replaceChildren(this.faces.small(0, entry.left), this.faces.small(1, entry.right));
    }
    this.showSure(entry);
    this.showActs(entry);
    this.element.setAttribute("aria-label", this.label(entry));
    for (const name of /** @type {const} */ (["answered", "changed", "aside"])) {
      this.element.classList.toggle(name, entry[name]);
    }
  }

  /** Words for screen readers. */
  label(/** @type {Entry} */ entry) {
    const { pairing } = this;
    const parts = [];
    if (entry.left >= 0) parts.push(`Left: ${pairing.nameOf(0, entry.left)}`);
    if (entry.right >= 0) parts.push(`right: ${pairing.nameOf(1, entry.right)}`);
    if (entry.aside) parts.push("set aside");
    else if (!isPair(entry)) parts.push("no partner");
    else if (entry.answered) parts.push("confirmed");
    else parts.push(levelOf(entry.share), percent(entry.share));
    if (entry.changed) parts.push("changed");
    const words = parts.join(", ");
    return words[0].toUpperCase() + words.slice(1);
  }

  showSure(/** @type {Entry} */ entry) {
    const open = isPair(entry) && !entry.answered;
    this.words.hidden = this.bar.hidden = !open;
    if (open) {
      this.words.replaceChildren(levelOf(entry.share), " ", make("b", "", percent(entry.share)));
      setBar(this.bar, entry.share);
    }
    const badges = [];
    if (entry.answered) badges.push(make("span", "badge good", "\u2713 confirmed"));
    if (entry.aside) badges.push(make("span", "badge", "set aside"));
    else if (!isPair(entry)) badges.push(make("span", "badge", "no partner found"));
    if (entry.changed) badges.push(make("span", "badge new", "changed"));
    this.badges.replaceChildren(...badges);
  }

  showActs(/** @type {Entry} */ entry) {
    const { pairing } = this;
    const names = [
      entry.left >= 0 ? pairing.nameOf(0, entry.left) : "",
      entry.right >= 0 ? pairing.nameOf(1, entry.right) : "",
    ]
      .filter(Boolean)
      .join(" and ");
    const before = [.../** @type {NodeListOf<HTMLElement>} */ (this.acts.querySelectorAll("button"))];
    const focused = before.findIndex((each) => each === document.activeElement);
    const acts = actsOf(entry).map(([act, words]) => {
      const kept = before.find((each) => each.dataset.act === act && each.textContent === words);
      const element = kept ?? button(act, words);
      element.setAttribute("aria-label", `${words}: ${names}`);
      return element;
    });
    this.enlarge.setAttribute("aria-label", `View larger: ${names}`);
    this.enlarge.title = "View larger (L)";
    this.acts.replaceChildren(...acts, this.enlarge);
    this.setCurrent(this.isCurrent);
    // A button that is gone hands its focus to the pair.
    if (focused >= 0) (before[focused].isConnected ? before[focused] : this.element).focus();
  }

  /** Whether the Tab key reaches this pair and its buttons. */
  setCurrent(/** @type {boolean} */ on) {
    this.isCurrent = on;
    this.element.tabIndex = on ? 0 : -1;
    for (const each of this.acts.querySelectorAll("button")) each.tabIndex = on ? 0 : -1;
  }
}
