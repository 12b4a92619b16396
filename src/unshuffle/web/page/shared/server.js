// The server of this page: its state as it changes, and requests to change it.

/**
 * @typedef {object} Job
 * @property {string} id
 * @property {string} kind
 * @property {string} words
 * @property {number} done
 * @property {number} total
 * @property {number} fraction
 * @property {string} left
 */

/**
 * @typedef {object} Notice
 * @property {number} id
 * @property {string} kind
 * @property {string} message
 * @property {boolean} undoes whether undo takes back what it is about
 */

/**
 * @typedef {object} Settings
 * @property {"rectangle" | "torus" | "letters" | "mask"} shape
 * @property {number | null} rows
 * @property {number | null} columns
 * @property {string} letters
 * @property {string} mask
 * @property {boolean} invert
 * @property {string[]} features
 * @property {string} quality
 */

/**
 * @typedef {object} State What the server tells after every change.
 * @property {number} version
 * @property {string} title
 * @property {boolean} folder
 * @property {{version: number, total: number, nReady: number, nFailed: number, ready: string,
 *   inSheet: number}} pictures
 * @property {{version: number, rows: number, columns: number, wrap: boolean, nPlaced: number,
 *   nFrozen: number, settled: boolean, score: number | null}} wall
 * @property {Settings} settings
 * @property {{available: boolean, why: string}} content
 * @property {{uploadBytes: number, pictures: number}} limits
 * @property {Job[]} jobs
 * @property {string | null} undo
 * @property {string | null} redo
 * @property {Notice | null} notice
 * @property {string | null} unsaved why the newest state is not on disk
 * @property {{id: string, name: string, bytes: number}[]} downloads
 */

const RETRY = 1000; // milliseconds between two attempts to reach a server that is gone
const GONE = "The server does not answer.";

/** What the server refused, in its own words; `field` names the setting that is meant, if any. */
export class Refused extends Error {
  /**
   * @param {string} message
   * @param {string | null} field
   * @param {number} status of the answer; 0 if there was none
   */
  constructor(message, field, status) {
    super(message);
    this.field = field;
    this.status = status;
  }
}

/** The error in an answer. */
async function refusal(/** @type {Response} */ answer) {
  try {
    const { message, field } = (await answer.json()).error;
    return new Refused(message, field ?? null, answer.status);
  } catch {
    return new Refused(`The server answered with error ${answer.status}.`, null, answer.status);
  }
}

/**
 * Events: "state" when `state` has changed, "lost" when the server does not answer or does not
 * know this page any more (`stranger`), and "found" when it is back.
 */
export class Server extends EventTarget {
  /** @param {string} base of the addresses of a view */
  constructor(base = "/api") {
    super();
    this.base = base;
    /** @type {any} the `State` of the view */
    this.state = null;
    this.lost = false;
    this.stranger = false;
    /** @type {EventSource | null} */
    this.stream = null;
    this.looking = false;
    this.opened = 0; // how often a stream was opened; what comes from an older one is ignored
    // Browsers allow six connections to a host in all tabs; hidden ones do without.
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.close();
      else this.look();
    });
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", (event) => {
      if (event.persisted) this.look();
    });
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {object | Blob | null} body a blob is sent as it is, all else as JSON
   * @param {AbortSignal | null} signal
   * @returns {Promise<any>}
   */
  async request(method, path, body = null, signal = null) {
    const raw = body instanceof Blob;
    /** @type {Record<string, string>} */
    const headers = {};
    if (body) headers["Content-Type"] = raw ? "application/octet-stream" : "application/json";
    const content = raw ? body : body && JSON.stringify(body);
    let answer;
    try {
      answer = await fetch(path, { method, headers, body: content, signal });
    } catch {
      if (signal?.aborted) throw new Refused("Canceled.", null, 0);
      this.look(); // may be gone
      throw new Refused(GONE, null, 0);
    }
    if (!answer.ok) {
      const error = await refusal(answer);
      if (error.status === 401) this.look();
      throw error;
    }
    return answer.json();
  }

  get(/** @type {string} */ path) {
    return this.request("GET", path);
  }

  post(/** @type {string} */ path, /** @type {object} */ body = {}) {
    return this.request("POST", path, body);
  }

  close() {
    this.opened++;
    this.stream?.close();
    this.stream = null;
  }

  take(/** @type {any} */ state) {
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }

  /** Opens the stream of states. */
  listen() {
    this.close();
    const number = this.opened;
    const stream = new EventSource(`${this.base}/events`);
    this.stream = stream;
    stream.addEventListener("state", (event) => {
      if (number === this.opened) this.take(JSON.parse(event.data));
    });
    stream.addEventListener("error", () => {
      if (number === this.opened) this.look();
    });
  }

  /** Asks for the state until it comes, then listens. */
  async look() {
    if (this.looking) return;
    this.looking = true;
    this.close();
    while (!document.hidden) {
      const stranger = await this.knock();
      if (stranger === null) break;
      if (!this.lost || stranger !== this.stranger) {
        this.lost = true;
        this.stranger = stranger;
        this.dispatchEvent(new Event("lost"));
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY));
    }
    this.looking = false;
  }

  /** Whether the server is there but does not know this page; null if all is well. */
  async knock() {
    let answer;
    try {
      answer = await fetch(`${this.base}/state`);
      if (!answer.ok) return answer.status === 401 || answer.status === 403;
      const state = await answer.json();
      const back = this.lost;
      this.lost = this.stranger = false;
      if (back) this.dispatchEvent(new Event("found"));
      this.take(state);
    } catch (error) {
      if (answer?.ok) throw error; // of this page, not of the server
      return false;
    }
    if (!document.hidden) this.listen();
    return null;
  }
}
