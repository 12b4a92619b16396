// Pictures that people drop or choose, on their way to the server.
import { byId } from "../../../images/page/panel.js";
import { Refused } from "./server.js";

/** @typedef {import("./server.js").Server} Server */
/** @typedef {{name: string, reason: string}} Problem */

const AT_ONCE = 3; // of six connections, so that the page stays quick
const HIDDEN = /^(\.|Thumbs\.db$|desktop\.ini$)/i;

/** A size for people. */
export function sizeWords(/** @type {number} */ bytes) {
  if (bytes < 1e6) return `${Math.max(1, Math.round(bytes / 1e3))} kB`;
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}

/** The files in what was dropped, folders included. */
export async function filesIn(/** @type {DataTransfer} */ dropped) {
  // Entries are gone after the first pause.
  const entries = [...dropped.items]
    .filter((item) => item.kind === "file")
    .map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile());
  /** @type {File[]} */
  const files = [];
  for (const entry of entries) {
    if (entry instanceof File) files.push(entry);
    else if (entry) await walk(entry, files);
  }
  return files;
}

/** Adds the files of an entry; what cannot be opened is passed over. */
async function walk(/** @type {FileSystemEntry} */ entry, /** @type {File[]} */ files) {
  try {
    if (entry.isFile) {
      const one = /** @type {FileSystemFileEntry} */ (entry);
      files.push(await new Promise((resolve, reject) => one.file(resolve, reject)));
      return;
    }
    const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
    for (;;) {
      /** @type {FileSystemEntry[]} a part of them each time */
      const part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!part.length) return;
      part.sort((a, b) => (a.name < b.name ? -1 : 1));
      for (const each of part) await walk(each, files);
    }
  } catch {
    // A file that vanished, or may not be read.
  }
}

/** Why a file is not a picture, as far as its type tells. */
function pictureProblem(/** @type {File} */ file) {
  return file.type && !file.type.startsWith("image/") ? "This is not a picture." : "";
}

/** Events: "change" when something was sent, refused or added. */
export class Uploads extends EventTarget {
  /**
   * @param {Server} server
   * @param {string} query of the address, beside the name
   * @param {(file: File) => string} problem of a file that need not be sent; "" for none
   * @param {string} base of the address, where another view takes the files
   */
  constructor(server, query = "", problem = pictureProblem, base = server.base) {
    super();
    this.server = server;
    this.base = base;
    this.query = query;
    this.problem = problem;
    /** @type {File[]} */
    this.waiting = [];
    this.nRunning = 0;
    this.nDone = 0;
    this.nAll = 0;
    this.bytesDone = 0;
    this.bytesAll = 0;
    /** @type {Problem[]} files that were not taken, and why */
    this.problems = [];
    this.stop = new AbortController();
  }

  get active() {
    return this.waiting.length + this.nRunning > 0;
  }

  get fraction() {
    return this.bytesAll ? this.bytesDone / this.bytesAll : 0;
  }

  changed() {
    this.dispatchEvent(new Event("change"));
  }

  /** Sends files, but not those that the server would refuse. */
  add(/** @type {File[]} */ files) {
    if (!this.active) {
      this.nDone = this.nAll = this.bytesDone = this.bytesAll = 0;
      this.stop = new AbortController();
    }
    const most = this.server.state?.limits.uploadBytes ?? Infinity;
    for (const file of files) {
      if (HIDDEN.test(file.name)) continue;
      const problem = this.problem(file);
      if (problem) this.refuse(file, problem);
      else if (file.size > most) {
        const sizes = `${sizeWords(file.size)}; the limit is ${sizeWords(most)}`;
        this.refuse(file, `This file is too large: ${sizes}.`);
      } else {
        this.waiting.push(file);
        this.nAll++;
        this.bytesAll += file.size;
      }
    }
    this.changed();
    while (this.nRunning < AT_ONCE && this.waiting.length) this.run();
  }

  refuse(/** @type {File} */ file, /** @type {string} */ reason) {
    this.problems.push({ name: file.name, reason });
  }

  /** Sends one file after the other. */
  async run() {
    this.nRunning++;
    for (let file = this.waiting.shift(); file; file = this.waiting.shift()) {
      try {
        const name = encodeURIComponent(file.name);
        const path = `${this.base}/uploads?${this.query}name=${name}`;
        await this.server.request("PUT", path, file, this.stop.signal);
      } catch (error) {
        if (this.stop.signal.aborted) break;
        const reason = error instanceof Error ? error.message : String(error);
        this.refuse(file, reason);
        if (error instanceof Refused && [0, 507].includes(error.status)) {
          for (const each of this.waiting) this.refuse(each, reason); // it holds for all others
          this.cancel();
        }
      }
      this.nDone++;
      this.bytesDone += file.size;
      this.changed();
    }
    this.nRunning--;
    this.changed();
  }

  /** Sends no more; what has arrived stays. */
  cancel() {
    this.waiting = [];
    this.stop.abort();
    this.changed();
  }

  forgetProblems() {
    this.problems = [];
    this.changed();
  }
}

/** Sends files that are chosen by buttons or dropped anywhere on the page. */
export function listenForFiles(/** @type {Uploads} */ uploads) {
  const pick = (/** @type {string} */ button, /** @type {string} */ id) => {
    const chooser = /** @type {HTMLInputElement} */ (byId(id));
    byId(button).addEventListener("click", () => chooser.click());
    chooser.addEventListener("change", () => {
      uploads.add([...(chooser.files ?? [])]);
      chooser.value = "";
    });
  };
  pick("choose-pictures", "pictures-input");
  pick("choose-folder", "folder-input");
  byId("add").addEventListener("click", () => byId("pictures-input").click());
  byId("add-folder").addEventListener("click", () => byId("folder-input").click());
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
    if (!event.dataTransfer || !hasFiles(event)) return;
    event.preventDefault();
    uploads.add(await filesIn(event.dataTransfer));
  });
}
