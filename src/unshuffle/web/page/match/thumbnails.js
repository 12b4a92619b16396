// What an item looks like: a picture, the beginning of a text, or a line of a table; and all of it.
import { make } from "../../../images/page/panel.js";

/** @typedef {import("./pairing.js").Pairing} Pairing */
/** @typedef {import("./pairing.js").Side} Side */

/** What stands in for a picture that cannot be shown. */
function missing() {
  return make("span", "quiet", "This picture can no longer be read.");
}

export class Faces {
  /** @param {Pairing} pairing */
  constructor(pairing) {
    this.pairing = pairing;
  }

  address(/** @type {Side} */ side, /** @type {number} */ slot, /** @type {320 | 1600} */ pixels) {
    const { server, run } = this.pairing;
    return `${server.base}/picture/${side}/${slot}?side=${pixels}&run=${run}`;
  }

  picture(/** @type {Side} */ side, /** @type {number} */ slot, /** @type {320 | 1600} */ pixels) {
    const frame = make("span", "frame");
    const picture = new Image();
    picture.alt = ""; // its name is beside it
    picture.decoding = "async";
    if (pixels === 320) picture.loading = "lazy";
    picture.addEventListener("error", () => frame.replaceChildren(missing()));
    picture.src = this.address(side, slot, pixels);
    frame.append(picture);
    return frame;
  }

  /** A small picture or a few words, with the name. */
  small(/** @type {Side} */ side, /** @type {number} */ slot) {
    const face = make("span", side ? "face right" : "face left");
    if (slot < 0) {
      face.classList.add("none");
      face.append(make("span", "frame", "no partner"));
      return face;
    }
    const { words, names } = this.pairing.items[side];
    const name = make("span", "name", names[slot] ?? "");
    name.title = names[slot] ?? "";
    if (this.pairing.isPictures) face.append(this.picture(side, slot, 320), name);
    else face.append(name, make("span", "excerpt", words?.[slot] ?? ""));
    return face;
  }

  /** All there is of an item; texts and tables come a moment later. */
  large(/** @type {Side} */ side, /** @type {number} */ slot) {
    const figure = make("figure", side ? "face right" : "face left");
    const name = make("figcaption", "name", this.pairing.nameOf(side, slot));
    if (slot < 0) {
      figure.classList.add("none");
      figure.append(make("p", "frame", "no partner"));
    } else if (this.pairing.isPictures) figure.append(this.picture(side, slot, 1600), name);
    else {
      const content = make("div", "content");
      content.tabIndex = 0;
      content.setAttribute("role", "region");
      content.setAttribute("aria-label", this.pairing.nameOf(side, slot));
      figure.append(name, content);
      this.fill(content, side, slot);
    }
    return figure;
  }

  /** @param {HTMLElement} content @param {Side} side @param {number} slot */
  async fill(content, side, slot) {
    const { server } = this.pairing;
    try {
      const { text, cells } = await server.get(`${server.base}/item/${side}/${slot}`);
      if (!cells) return void content.replaceChildren(make("p", "text", text || "This text is empty."));
      const list = make("dl");
      for (const [heading, value] of cells) {
        list.append(make("dt", "", String(heading)), make("dd", "", String(value)));
      }
      content.replaceChildren(list);
    } catch (error) {
      const words = error instanceof Error ? error.message : String(error);
      content.replaceChildren(make("p", "quiet", words));
    }
  }
}
