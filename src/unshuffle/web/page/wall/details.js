// Details of the selected picture: a larger copy, its place, what can be done, its look-alikes.
import { byId, make, pictureButton } from "../../../images/page/panel.js";

/** @typedef {import("../shared/album.js").Album} Album */
/** @typedef {import("../shared/atlas.js").Atlas} Atlas */
/** @typedef {import("../shared/server.js").Server} Server */

const NOT_YET = "Look-alikes appear once the pictures have been compared.";

/** Event "alike" when the look-alikes of the picture have come. */
export class Details extends EventTarget {
  /**
   * @param {Server} server
   * @param {Album} album
   * @param {() => Atlas} atlas
   * @param {(item: number) => void} go called when a look-alike is chosen
   */
  constructor(server, album, atlas, go) {
    super();
    this.server = server;
    this.album = album;
    this.atlas = atlas;
    this.go = go;
    this.item = -1;
    /** @type {number[] | null} null while they are not known */
    this.alike = null;
    this.asking = false;
    this.root = byId("panel");
  }

  get open() {
    return this.item >= 0;
  }

  close() {
    this.item = -1;
    this.alike = null;
    this.root.hidden = true;
    byId("frame").replaceChildren();
  }

  show(/** @type {number} */ item) {
    const other = item !== this.item;
    this.item = item;
    this.root.hidden = false;
    if (other) {
      this.alike = null;
      byId("near").replaceChildren();
      byId("no-alike").hidden = true;
      this.showPicture();
    }
    this.refresh();
  }

  showPicture() {
    const { item } = this;
    const picture = new Image();
    picture.alt = this.album.nameOf(item);
    // The one before stays until then, so that the panel does not flicker.
    const show = (/** @type {HTMLElement} */ element) => {
      if (item === this.item) byId("frame").replaceChildren(element);
    };
    picture.addEventListener("load", () => show(picture));
    picture.addEventListener("error", () => {
      show(make("p", "quiet", "This picture can no longer be read."));
    });
    picture.src = `/api/picture/${item}?side=320&run=${this.album.run}`;
  }

  /** Brings all up to date after a change of the wall. */
  refresh() {
    if (!this.open) return;
    const { album, item } = this;
    const cell = album.cellOf[item] ?? -1;
    byId("name").textContent = album.nameOf(item);
    const frozen = album.frozen.has(item);
    const facts = byId("facts");
    facts.replaceChildren(
      make("dt", "", "place"),
      make("dd", "", cell < 0 ? "not on the wall" : album.placeWords(cell)),
    );
    const freeze = /** @type {HTMLButtonElement} */ (byId("freeze"));
    freeze.textContent = frozen ? "Unfreeze" : "Freeze";
    freeze.title = frozen ? "Let this picture move again (F)" : "Keep this picture here (F)";
    freeze.disabled = cell < 0;
    /** @type {HTMLButtonElement} */ (byId("leave-out")).disabled = cell < 0;
    // Before that, the server has nothing to compare.
    const busy = this.server.state?.jobs.some((/** @type {import("../shared/server.js").Job} */ job) => job.kind !== "exporting") ?? true;
    if (!this.alike && busy) {
      byId("no-alike").hidden = false;
      byId("no-alike").textContent = NOT_YET;
    } else if (!this.alike && !this.asking) this.askAlike();
  }

  async askAlike() {
    const { item } = this;
    this.asking = true;
    try {
      const { alike } = await this.server.get(`/api/alike/${item}`);
      if (item === this.item) this.showAlike(alike);
    } catch (error) {
      if (item !== this.item) return;
      byId("no-alike").hidden = false;
      byId("no-alike").textContent = error instanceof Error ? error.message : NOT_YET;
    } finally {
      this.asking = false;
      if (this.open && item !== this.item && !this.alike) this.askAlike();
    }
  }

  showAlike(/** @type {number[]} */ alike) {
    this.alike = alike;
    const { item } = this;
    byId("no-alike").hidden = alike.length > 0;
    byId("no-alike").textContent = "There are no other pictures.";
    byId("near").replaceChildren(
      ...alike.map((each) => {
        const picture = this.atlas().thumbnail(each);
        return pictureButton(picture, this.album.nameOf(each), () => this.go(each));
      }),
    );
    this.dispatchEvent(new CustomEvent("alike", { detail: { item } }));
  }
}
