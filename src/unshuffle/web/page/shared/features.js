// Check boxes of the features that pictures are compared by.

/** Shows the features in use, and sends those that are chosen. */
export class Features {
  /** @param {(features: string[]) => void} send called with all that are checked */
  constructor(send) {
    const found = document.querySelectorAll('input[name="feature"]');
    this.boxes = /** @type {HTMLInputElement[]} */ ([...found]);
    for (const each of this.boxes) {
      each.addEventListener("change", () => {
        send(this.boxes.filter((box) => box.checked).map((box) => box.value));
      });
    }
  }

  /**
   * Follows the server, but leaves alone what it refused.
   * @param {string[]} used
   * @param {{available: boolean, why: string}} content
   */
  show(used, content) {
    for (const each of this.boxes) {
      if (!each.hasAttribute("aria-invalid")) each.checked = used.includes(each.value);
      if (each.value === "content") each.disabled = !content.available;
    }
    const why = document.getElementById("why-not");
    if (why && !content.available) why.textContent = content.why;
  }
}
