// Where a saved wall keeps its pictures and data: in the folder beside the page, or in the page.

/** @typedef {import("./sheets.js").Source} Source */

const IN_FOLDER = 1000; // pictures in each sub-folder

/**
 * Files in the folder of this script, through image and script elements: pages from disk may not fetch.
 * @param {string} suffix of sheets
 * @param {string} pictureSuffix
 * @returns {Source}
 */
export function folderSource(suffix, pictureSuffix) {
  /** @type {Map<string, (value: any) => void>} */
  const waiting = new Map();
  const viewer = /** @type {HTMLScriptElement} */ (document.currentScript);
  const folder = new URL(".", viewer.src).href;
  // The scripts in the folder "data" call this with their content.
  Object.assign(window, {
    unshuffleData: (/** @type {string} */ name, /** @type {any} */ value) =>
      waiting.get(name)?.(value),
  });
  return {
    sheet: (level, row, column) => `${folder}sheets/${level}/${row}-${column}.${suffix}`,
    picture: async (item) =>
      `${folder}pictures/${Math.floor(item / IN_FOLDER)}/${item % IN_FOLDER}.${pictureSuffix}`,
    read: (name) =>
      new Promise((resolve, reject) => {
        const script = document.createElement("script");
        waiting.set(name, (value) => {
          waiting.delete(name);
          script.remove();
          resolve(value);
        });
        script.onerror = () => reject(new Error(`data/${name}.js cannot be read`));
        script.src = `${folder}data/${name}.js`;
        document.head.append(script);
      }),
  };
}

/**
 * Elements of the page itself.
 * @param {string} suffix
 * @param {string} pictureSuffix
 * @returns {Source}
 */
export function pageSource(suffix, pictureSuffix) {
  const text = (/** @type {string} */ id) => document.getElementById(id)?.textContent ?? "";
  const kinds = new Map([
    ["jpg", "jpeg"],
    ["png", "png"],
  ]);
  const address = (/** @type {string} */ ending, /** @type {string} */ id) =>
    `data:image/${kinds.get(ending)};base64,${text(id)}`;
  return {
    sheet: (level, row, column) => address(suffix, `sheet-${level}-${row}-${column}`),
    picture: async (item) => address(pictureSuffix, `picture-${item}`),
    read: async (name) => JSON.parse(text(`data-${name}`)),
  };
}
