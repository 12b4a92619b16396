// Pictures and their places on the wall, as the server last told and as they were moved since.
import { decodeNumbers, placeWords } from "../../../images/page/items.js";

/** @typedef {import("./server.js").Server} Server */
/** @typedef {import("./server.js").State} State */

const OUTSIDE = -2; // a cell that is not part of the shape

function decodeBits(/** @type {string} */ text, /** @type {number} */ n) {
  const letters = atob(text);
  const bits = new Uint8Array(n);
  for (let i = 0; i < n; i++) bits[i] = (letters.charCodeAt(i >> 3) >> (i & 7)) & 1;
  return bits;
}

/**
 * Events: "pictures" when names or pictures that are ready have changed, "others" when slots hold
 * other pictures than before, "wall" when cells, frozen or left-out pictures have changed.
 */
export class Album extends EventTarget {
  /** @param {Server} server */
  constructor(server) {
    super();
    this.server = server;
    /** @type {string[]} */
    this.names = [];
    /** @type {{name: string, reason: string}[]} */
    this.failed = [];
    /** @type {Uint8Array} */
    this.ready = new Uint8Array();
    this.inSheet = 64;
    this.rows = 0;
    this.columns = 0;
    /** @type {Int32Array} picture in each cell; -1 empty, -2 outside the shape */
    this.cells = new Int32Array();
    /** @type {Int32Array} cell of each picture, or -1 */
    this.cellOf = new Int32Array();
    /** @type {Set<number>} */
    this.frozen = new Set();
    /** @type {number[]} pictures that were left out */
    this.out = [];
    this.namesVersion = -1;
    this.wallVersion = -1;
    this.readyText = "";
    this.asking = { names: false, wall: false };
    this.nMoving = 0; // changes that the server has not answered
    this.nMoved = 0; // changes so far that were shown before the server knew of them
    this.epoch = 0; // how often all was forgotten; late answers to older questions are ignored
    this.run = Date.now().toString(36); // part of addresses: other runs have other pictures
  }

  /** Forgets what is known of an earlier run of the server. */
  forget() {
    this.namesVersion = this.wallVersion = -1;
    this.readyText = "";
    this.asking = { names: false, wall: false };
    this.nMoving = 0;
    this.epoch++;
    this.run = Date.now().toString(36);
  }

  get total() {
    return this.server.state?.pictures.total ?? 0;
  }

  nameOf(/** @type {number} */ slot) {
    return this.names[slot] ?? "";
  }

  placeWords(/** @type {number} */ cell) {
    return placeWords(cell, this.columns);
  }

  inShape(/** @type {number} */ cell) {
    return cell >= 0 && cell < this.cells.length && this.cells[cell] !== OUTSIDE;
  }

  /** Ready pictures of a sheet. */
  readyIn(/** @type {number} */ sheet) {
    let n = 0;
    const end = Math.min((sheet + 1) * this.inSheet, this.ready.length);
    for (let slot = sheet * this.inSheet; slot < end; slot++) n += this.ready[slot];
    return n;
  }

  /** Whether all that the server has is here. */
  get current() {
    const { state } = this.server;
    return !!state && this.wallVersion === state.wall.version && this.nMoving === 0;
  }

  /** Fetches what has changed. */
  follow(/** @type {State} */ state) {
    const { pictures } = state;
    this.inSheet = pictures.inSheet;
    if (pictures.ready !== this.readyText || this.ready.length !== pictures.total) {
      this.readyText = pictures.ready;
      this.ready = decodeBits(pictures.ready, pictures.total);
      this.dispatchEvent(new Event("pictures"));
    }
    this.fetchNames();
    this.fetchWall();
  }

  async fetchNames() {
    const { epoch } = this;
    if (this.asking.names) return;
    this.asking.names = true;
    try {
      while (this.server.state) {
        const { version, nFailed } = this.server.state.pictures;
        if (this.namesVersion === version && this.failed.length === nFailed) break;
        const found = await this.server.get("/api/pictures");
        if (epoch !== this.epoch) return;
        this.namesVersion = found.version;
        if (this.names.some((name, slot) => name !== found.names[slot])) {
          this.run = Date.now().toString(36);
          this.dispatchEvent(new Event("others")); // slots hold other pictures now
        }
        this.names = found.names;
        this.failed = found.failed;
        this.dispatchEvent(new Event("pictures"));
        if (found.version >= this.server.state.pictures.version) break;
      }
    } catch {
      // The next state leads here again.
    } finally {
      if (epoch === this.epoch) this.asking.names = false;
    }
  }

  async fetchWall() {
    const { epoch } = this;
    if (this.asking.wall) return;
    this.asking.wall = true;
    try {
      while (epoch === this.epoch && this.nMoving === 0) {
        if (this.wallVersion === this.server.state?.wall.version) break;
        const before = this.nMoved;
        const found = await this.server.get("/api/wall");
        if (epoch !== this.epoch) return;
        // What was asked for before a picture was moved would put it back for a moment.
        if (this.nMoving || before !== this.nMoved) continue;
        this.wallVersion = found.version;
        this.place(found.rows, found.columns, decodeNumbers(found.cells));
        this.frozen = new Set(found.frozen);
        this.out = found.out;
        this.dispatchEvent(new Event("wall"));
        if (found.version < (this.server.state?.wall.version ?? 0)) continue;
        break;
      }
    } catch {
      // The next state leads here again.
    } finally {
      if (epoch === this.epoch) this.asking.wall = false;
    }
  }

  /** @param {number} rows @param {number} columns @param {Int32Array} cells */
  place(rows, columns, cells) {
    [this.rows, this.columns, this.cells] = [rows, columns, cells];
    this.cellOf = new Int32Array(Math.max(this.total, this.names.length)).fill(-1);
    for (let cell = cells.length - 1; cell >= 0; cell--) {
      if (cells[cell] >= 0 && cells[cell] < this.cellOf.length) this.cellOf[cells[cell]] = cell;
    }
  }

  /**
   * Shows a change at once and asks the server for it; what it refuses is taken back.
   * @param {() => void} change
   * @param {string} path
   * @param {object} body
   */
  async attempt(change, path, body) {
    const before = { cells: this.cells, frozen: new Set(this.frozen) };
    this.nMoving++;
    this.nMoved++;
    this.cells = this.cells.slice();
    change();
    this.place(this.rows, this.columns, this.cells);
    this.dispatchEvent(new Event("wall"));
    try {
      await this.server.post(path, body);
    } catch (error) {
      if (before.cells.length === this.cells.length) {
        this.place(this.rows, this.columns, before.cells);
        this.frozen = before.frozen;
        this.dispatchEvent(new Event("wall"));
      }
      throw error;
    } finally {
      this.nMoving--;
      this.wallVersion = -1;
      this.fetchWall();
    }
  }

  /** Puts a picture into a cell and freezes it there; the one there takes its place. */
  move(/** @type {number} */ item, /** @type {number} */ cell) {
    const change = () => {
      const from = this.cellOf[item];
      [this.cells[from], this.cells[cell]] = [this.cells[cell], item];
      this.frozen.add(item);
    };
    const { rows, columns } = this;
    return this.attempt(change, "/api/move", { item, cell, rows, columns });
  }

  setFrozen(/** @type {number} */ item, /** @type {boolean} */ on) {
    const change = () => (on ? this.frozen.add(item) : this.frozen.delete(item));
    return this.attempt(() => void change(), on ? "/api/freeze" : "/api/unfreeze", { items: [item] });
  }

  leaveOut(/** @type {number} */ item) {
    const change = () => {
      this.cells[this.cellOf[item]] = -1;
      this.frozen.delete(item);
    };
    return this.attempt(change, "/api/leave-out", { items: [item] });
  }
}
