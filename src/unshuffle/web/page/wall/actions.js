// What people do to the wall; each is said, and what the server refuses is shown.

/** @typedef {import("../shared/album.js").Album} Album */
/** @typedef {import("../shared/server.js").Server} Server */

export class Actions {
  /**
   * @param {Server} server
   * @param {Album} album
   * @param {(error: unknown) => void} tell shows what went wrong
   * @param {(words: string) => void} say
   */
  constructor(server, album, tell, say) {
    this.server = server;
    this.album = album;
    this.tell = tell;
    this.say = say;
  }

  /** Whether a change was made. */
  async attempt(/** @type {() => Promise<any>} */ change) {
    try {
      await change();
      return true;
    } catch (error) {
      this.tell(error);
      return false;
    }
  }

  post(/** @type {string} */ path, /** @type {object} */ body = {}) {
    return this.attempt(() => this.server.post(path, body));
  }

  cancel(/** @type {string} */ job) {
    return this.attempt(() => this.server.request("DELETE", `/api/jobs/${job}`));
  }

  /** Whether a picture is on the wall. */
  has(/** @type {number} */ item) {
    return item >= 0 && (this.album.cellOf[item] ?? -1) >= 0;
  }

  async move(/** @type {number} */ item, /** @type {number} */ cell) {
    const { album } = this;
    const moved = this.attempt(() => album.move(item, cell));
    this.say(`${album.nameOf(item)} is frozen in ${album.placeWords(cell)}`);
    if (!(await moved)) this.say(`${album.nameOf(item)} is back in its place`);
  }

  async toggleFrozen(/** @type {number} */ item) {
    if (!this.has(item)) return;
    const { album } = this;
    const on = !album.frozen.has(item);
    if (!(await this.attempt(() => album.setFrozen(item, on)))) return;
    this.say(`${album.nameOf(item)} ${on ? "stays where it is" : "can move again"}`);
  }

  async leaveOut(/** @type {number} */ item) {
    if (!this.has(item)) return;
    const name = this.album.nameOf(item);
    if (await this.attempt(() => this.album.leaveOut(item))) this.say(`${name} is left out`);
  }

  /** Goes back or forth in the history. */
  async step(/** @type {"undo" | "redo"} */ which) {
    const what = this.server.state?.[which];
    if (what === null || what === undefined) return;
    if (!(await this.post(`/api/${which}`))) return;
    this.say(which === "undo" ? `Undone: ${what}` : `Redone: ${what}`);
  }
}
