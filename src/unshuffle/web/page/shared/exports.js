// The export menu: files are made by the server, then downloaded by themselves and kept on offer.
import { byId, make } from "../../../images/page/panel.js";
import { sizeWords } from "./uploads.js";

/** @typedef {import("./server.js").Server} Server */
/** @typedef {{id: string, name: string, bytes: number}} Download */

export class Exports {
  /**
   * @param {Server} server
   * @param {(error: unknown) => void} tell
   * @param {(words: string) => void} say
   * @param {(state: any) => boolean} isEmpty whether there is nothing to export
   * @param {() => object} options beside the format
   */
  constructor(server, tell, say, isEmpty, options = () => ({})) {
    this.server = server;
    this.isEmpty = isEmpty;
    this.options = options;
    this.tell = tell;
    this.say = say;
    this.nAsked = 0; // files that this tab waits for; other tabs ask for files of their own
    this.nPosted = 0; // of them, those that the server has not confirmed
    this.since = 0; // version of the state in which all others are under way
    /** @type {Set<string> | null} downloads that are known; null before the first state */
    this.known = null;
    this.menu = byId("export");
    this.button = /** @type {HTMLButtonElement} */ (byId("show-export"));
    this.button.addEventListener("click", () => this.open(this.menu.hidden));
    for (const each of /** @type {NodeListOf<HTMLButtonElement>} */ (
      this.menu.querySelectorAll("button[data-format]")
    )) {
      each.addEventListener("click", () => this.start(each.dataset.format ?? ""));
    }
    const wrap = /** @type {HTMLElement} */ (this.menu.parentElement);
    wrap.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.menu.hidden) return;
      event.stopPropagation();
      this.open(false);
      this.button.focus();
    });
    wrap.addEventListener("focusout", (event) => {
      const to = event.relatedTarget;
      if (to instanceof Node && !wrap.contains(to)) this.open(false);
    });
    document.addEventListener("pointerdown", (event) => {
      if (!wrap.contains(/** @type {Node} */ (event.target))) this.open(false);
    });
  }

  open(/** @type {boolean} */ on) {
    this.menu.hidden = !on;
    this.button.setAttribute("aria-expanded", String(on));
  }

  async start(/** @type {string} */ format) {
    this.open(false);
    this.button.focus();
    this.nAsked++;
    this.nPosted++;
    try {
      const { version } = await this.server.post(`${this.server.base}/export`, { format, ...this.options() });
      this.since = Math.max(this.since, version);
      this.say("Writing the file");
    } catch (error) {
      this.nAsked--;
      this.tell(error);
    }
    this.nPosted--;
  }

  follow(/** @type {any} */ state) {
    this.button.disabled = this.isEmpty(state);
    const ids = state.downloads.map((/** @type {Download} */ { id }) => id);
    const fresh = state.downloads.filter((/** @type {Download} */ { id }) => this.known && !this.known.has(id));
    if (fresh.length || !this.known || this.known.size !== ids.length) this.list(state);
    this.known = new Set(ids);
    for (const each of fresh) if (this.nAsked) this.take(each);
    const under = state.jobs.some((/** @type {import("./server.js").Job} */ job) => job.kind === "exporting");
    // What has ended without a file, canceled or failed, is not waited for.
    if (!under && !this.nPosted && state.version >= this.since) this.nAsked = 0;
  }

  /** Lists the finished files, the newest first. */
  list(/** @type {{downloads: Download[]}} */ state) {
    byId("downloads").hidden = !state.downloads.length;
    const lines = state.downloads.map(({ id, name, bytes }) => {
      const line = make("li");
      const link = /** @type {HTMLAnchorElement} */ (make("a", "", name));
      link.href = `${this.server.base}/export/${id}`;
      link.download = name;
      line.append(link, ` (${sizeWords(bytes)})`);
      return line;
    });
    byId("download-list").replaceChildren(...lines.reverse());
  }

  take(/** @type {{id: string, name: string}} */ { id, name }) {
    this.nAsked--;
    const link = document.createElement("a");
    link.href = `${this.server.base}/export/${id}`;
    link.download = name;
    link.click();
    this.say(`${name} is finished and was downloaded. It stays in the Export menu.`);
  }
}
