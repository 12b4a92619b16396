"use strict";
(() => {
  const get = (id) => document.getElementById(id);
  const data = JSON.parse(get("data").textContent);
  const { rows, columns, tile_height: th, tile_width: tw, cells, names, captions, previews } = data;
  const canvas = get("wall");
  const context = canvas.getContext("2d", { alpha: false });
  const label = get("label");
  const nPlaced = cells.reduce((sum, item) => sum + (item >= 0), 0);

  // Screen = (world - corner) * scale, in CSS pixels; a tile is tw x th in the world.
  const view = { x: 0, y: 0, scale: 1 };
  const size = { width: 0, height: 0, dots: 1 };
  let fitted = true;
  let matches = null;
  let found = [];
  let hovered = -1;
  let current = -1;
  let drawing = false;
  let colors = {};

  const wallWidth = columns * tw;
  const wallHeight = rows * th;
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const rowOf = (cell) => Math.floor(cell / columns);
  const columnOf = (cell) => cell % columns;
  const nameOf = (cell) => names[cells[cell]];
  const captionOf = (cell) => (captions ? captions[cells[cell]] : "");

  // Each block of the wall is one picture, kept at several sizes. The smallest one that is large
  // enough is drawn, so that any wall takes a few dozen calls and does not flicker.
  const blocks = data.blocks.map((block) => ({ ...block, levels: [] }));

  function halves(image, width, height) {
    const levels = [image];
    while (Math.min(width, height) > 64) {
      width = Math.ceil(width / 2);
      height = Math.ceil(height / 2);
      const half = document.createElement("canvas");
      half.width = width;
      half.height = height;
      const brush = half.getContext("2d", { alpha: false });
      brush.imageSmoothingQuality = "high";
      brush.drawImage(levels[levels.length - 1], 0, 0, width, height);
      levels.push(half);
    }
    return levels;
  }

  async function load(block) {
    const image = new Image();
    image.src = "data:image/jpeg;base64," + block.data;
    await image.decode();
    block.levels = halves(image, block.columns * tw, block.rows * th);
    block.data = "";
    ask();
  }

  function readColors() {
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name).trim();
    colors = { paper: color("--paper"), mark: color("--mark"), ink: color("--ink") };
  }

  // Edges of cells in whole device pixels, which avoids seams.
  const edgeX = (column) => Math.round((column * tw - view.x) * view.scale * size.dots);
  const edgeY = (row) => Math.round((row * th - view.y) * view.scale * size.dots);

  function visible() {
    const width = size.width / view.scale;
    const height = size.height / view.scale;
    return {
      left: clamp(Math.floor(view.x / tw), 0, columns),
      right: clamp(Math.ceil((view.x + width) / tw), 0, columns),
      top: clamp(Math.floor(view.y / th), 0, rows),
      bottom: clamp(Math.ceil((view.y + height) / th), 0, rows),
    };
  }

  function drawBlocks() {
    const wanted = view.scale * size.dots;
    context.imageSmoothingEnabled = true;
    context.imageSmoothingQuality = "high";
    for (const block of blocks) {
      if (!block.levels.length) continue;
      const left = edgeX(block.column);
      const top = edgeY(block.row);
      const right = edgeX(block.column + block.columns);
      const bottom = edgeY(block.row + block.rows);
      if (right <= 0 || bottom <= 0 || left >= canvas.width || top >= canvas.height) continue;
      const level = clamp(Math.floor(-Math.log2(wanted)), 0, block.levels.length - 1);
      context.drawImage(block.levels[level], left, top, right - left, bottom - top);
    }
  }

  // Fills the runs of visible cells that `chosen` picks, row by row.
  function fillCells(range, color, alpha, chosen) {
    context.fillStyle = color;
    context.globalAlpha = alpha;
    for (let row = range.top; row < range.bottom; row++) {
      const top = edgeY(row);
      const height = edgeY(row + 1) - top;
      let start = -1;
      for (let column = range.left; column <= range.right; column++) {
        const inside = column < range.right && chosen(row * columns + column);
        if (inside && start < 0) start = column;
        if (!inside && start >= 0) {
          const left = edgeX(start);
          context.fillRect(left, top, edgeX(column) - left, height);
          start = -1;
        }
      }
    }
    context.globalAlpha = 1;
  }

  function drawGaps(range) {
    const side = Math.min(tw, th) * view.scale * size.dots;
    if (side < 10) return;
    const gap = Math.max(1, Math.round(side * 0.03));
    const before = Math.floor(gap / 2);
    context.fillStyle = colors.paper;
    for (let column = range.left; column <= range.right; column++) {
      context.fillRect(edgeX(column) - before, 0, gap, canvas.height);
    }
    for (let row = range.top; row <= range.bottom; row++) {
      context.fillRect(0, edgeY(row) - before, canvas.width, gap);
    }
  }

  function ring(cell, color, width) {
    const left = edgeX(columnOf(cell));
    const top = edgeY(rowOf(cell));
    const right = edgeX(columnOf(cell) + 1);
    const bottom = edgeY(rowOf(cell) + 1);
    // Zoomed out, a cell is a dot; the ring stays large enough to see.
    const room = Math.max(0, 5 * size.dots - (right - left) / 2);
    context.lineWidth = width * size.dots;
    context.strokeStyle = color;
    context.strokeRect(left - room, top - room, right - left + 2 * room, bottom - top + 2 * room);
  }

  function draw() {
    drawing = false;
    context.fillStyle = colors.paper;
    context.fillRect(0, 0, canvas.width, canvas.height);
    const range = visible();
    drawBlocks();
    fillCells(range, colors.paper, 1, (cell) => cells[cell] < 0);
    if (matches) fillCells(range, colors.paper, 0.85, (cell) => cells[cell] >= 0 && !matches[cell]);
    drawGaps(range);
    // Zoomed out, a few cells among thousands are invisible without a ring.
    if (matches && found.length <= 300) found.forEach((cell) => ring(cell, colors.mark, 1.5));
    if (hovered >= 0 && hovered !== current) ring(hovered, colors.ink, 2);
    if (current >= 0) ring(current, colors.mark, 3);
  }

  function ask() {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(draw);
  }

  function fitScale() {
    const margin = 24;
    return Math.max(
      1e-4,
      Math.min((size.width - 2 * margin) / wallWidth, (size.height - 2 * margin) / wallHeight),
    );
  }

  function fit() {
    view.scale = Math.min(fitScale(), 4);
    view.x = wallWidth / 2 - size.width / view.scale / 2;
    view.y = wallHeight / 2 - size.height / view.scale / 2;
    fitted = true;
    ask();
  }

  // The center of the window stays on the wall, so that some of it is always visible.
  function keepInSight() {
    const width = size.width / view.scale;
    const height = size.height / view.scale;
    view.x = clamp(view.x, -width / 2, wallWidth - width / 2);
    view.y = clamp(view.y, -height / 2, wallHeight - height / 2);
  }

  function zoom(factor, x = size.width / 2, y = size.height / 2) {
    const least = Math.min(fitScale() / 2, 1);
    const most = Math.max(4, Math.min(size.width / tw, size.height / th));
    const scale = clamp(view.scale * factor, least, most);
    view.x += x / view.scale - x / scale;
    view.y += y / view.scale - y / scale;
    view.scale = scale;
    fitted = false;
    keepInSight();
    ask();
  }

  function pan(dx, dy) {
    view.x -= dx / view.scale;
    view.y -= dy / view.scale;
    fitted = false;
    keepInSight();
    ask();
  }

  function cellAt(x, y) {
    const column = Math.floor((x / view.scale + view.x) / tw);
    const row = Math.floor((y / view.scale + view.y) / th);
    if (column < 0 || row < 0 || column >= columns || row >= rows) return -1;
    const cell = row * columns + column;
    return cells[cell] >= 0 ? cell : -1;
  }

  function showLabel(cell, x, y) {
    label.hidden = cell < 0;
    if (cell < 0) return;
    const caption = captionOf(cell);
    label.textContent = caption ? nameOf(cell) + ": " + caption : nameOf(cell);
    const left = clamp(x + 14, 4, Math.max(4, size.width - label.offsetWidth - 4));
    const below = y + 18 + label.offsetHeight < size.height;
    label.style.transform = `translate(${left}px, ${below ? y + 18 : y - label.offsetHeight - 10}px)`;
  }

  function hover(x, y) {
    hovered = cellAt(x, y);
    canvas.classList.toggle("over", hovered >= 0);
    showLabel(hovered, x, y);
    ask();
  }

  function unhover() {
    hovered = -1;
    label.hidden = true;
    ask();
  }

  function say(words) {
    get("said").textContent = words;
  }

  // Brings a cell into the window and makes it the one that Enter opens.
  function visit(cell, least = 0) {
    current = cell;
    if (least && tw * view.scale < least) zoom(least / (tw * view.scale));
    const x = ((columnOf(cell) + 0.5) * tw - view.x) * view.scale;
    const y = ((rowOf(cell) + 0.5) * th - view.y) * view.scale;
    const edge = Math.min(60, size.width / 4, size.height / 4);
    const far = x < edge || y < edge || x > size.width - edge || y > size.height - edge;
    if (far) pan(size.width / 2 - x, size.height / 2 - y);
    const now = far ? [size.width / 2, size.height / 2] : [x, y];
    showLabel(cell, now[0], now[1] + (th * view.scale) / 2 - 12);
    say(`${nameOf(cell)}, row ${rowOf(cell)}, column ${columnOf(cell)}`);
    ask();
  }

  function middle() {
    let best = -1;
    let least = Infinity;
    const x = view.x + size.width / view.scale / 2;
    const y = view.y + size.height / view.scale / 2;
    for (let cell = 0; cell < cells.length; cell++) {
      if (cells[cell] < 0) continue;
      const far = Math.hypot((columnOf(cell) + 0.5) * tw - x, (rowOf(cell) + 0.5) * th - y);
      if (far < least) [best, least] = [cell, far];
    }
    return best;
  }

  function step(from, down, right) {
    let row = rowOf(from) + down;
    let column = columnOf(from) + right;
    for (; row >= 0 && column >= 0 && row < rows && column < columns; row += down, column += right) {
      if (cells[row * columns + column] >= 0) return row * columns + column;
    }
    return from;
  }

  function walk(down, right) {
    const cell = current < 0 ? middle() : step(current, down, right);
    if (cell >= 0) visit(cell);
  }

  function follow(from, direction) {
    for (let k = 1; k <= cells.length; k++) {
      const cell = (from + direction * k + cells.length * 2) % cells.length;
      if (cells[cell] >= 0 && (!matches || matches[cell])) return cell;
    }
    return from;
  }

  function countWords() {
    const all = `${nPlaced.toLocaleString()} picture${nPlaced === 1 ? "" : "s"}`;
    if (!matches) return all;
    return `${found.length.toLocaleString()} of ${all} found`;
  }

  function search(text) {
    const wanted = text.trim().toLowerCase();
    matches = null;
    found = [];
    if (wanted) {
      matches = new Uint8Array(cells.length);
      cells.forEach((item, cell) => {
        if (item < 0) return;
        const words = names[item] + "\n" + (captions ? captions[item] : "");
        if (!words.toLowerCase().includes(wanted)) return;
        matches[cell] = 1;
        found.push(cell);
      });
    }
    get("count").textContent = countWords();
    say(countWords());
    ask();
  }

  function thumbnail(cell) {
    const row = rowOf(cell);
    const column = columnOf(cell);
    const block = blocks.find(
      (each) =>
        row >= each.row &&
        row < each.row + each.rows &&
        column >= each.column &&
        column < each.column + each.columns,
    );
    const picture = document.createElement("canvas");
    picture.width = tw;
    picture.height = th;
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", nameOf(cell));
    if (block && block.levels.length) {
      const [x, y] = [(column - block.column) * tw, (row - block.row) * th];
      picture.getContext("2d").drawImage(block.levels[0], x, y, tw, th, 0, 0, tw, th);
    }
    picture.style.width = `min(86vw, ${Math.max(320, 2 * tw)}px)`;
    return picture;
  }

  function open(cell) {
    if (cell < 0) return;
    visit(cell);
    label.hidden = true;
    let picture;
    if (previews) {
      picture = new Image();
      picture.alt = nameOf(cell);
      picture.src = "data:image/jpeg;base64," + previews[cells[cell]];
      picture.style.minWidth = "min(86vw, 320px)";
    } else {
      picture = thumbnail(cell);
    }
    get("frame").replaceChildren(picture);
    get("name").textContent = nameOf(cell);
    const place = `row ${rowOf(cell)}, column ${columnOf(cell)}`;
    const caption = captionOf(cell);
    get("caption").textContent = caption ? `${caption}, ${place}` : place;
    if (!get("large").open) get("large").showModal();
  }

  function listenToPointers() {
    const held = new Map();
    let moved = 0;
    let spread = 0;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button > 0) return;
      held.set(event.pointerId, place(event));
      canvas.setPointerCapture(event.pointerId);
      if (held.size === 1) moved = 0;
      spread = 0;
      canvas.classList.add("held");
    });
    canvas.addEventListener("pointermove", (event) => {
      const now = place(event);
      const last = held.get(event.pointerId);
      if (!last) {
        hover(now.x, now.y);
        return;
      }
      held.set(event.pointerId, now);
      moved += Math.hypot(now.x - last.x, now.y - last.y);
      if (held.size === 1 && moved > 4) {
        pan(now.x - last.x, now.y - last.y);
        unhover();
      } else if (held.size === 2) {
        const [a, b] = [...held.values()];
        const apart = Math.hypot(a.x - b.x, a.y - b.y);
        pan((now.x - last.x) / 2, (now.y - last.y) / 2);
        if (spread > 0 && apart > 0) zoom(apart / spread, (a.x + b.x) / 2, (a.y + b.y) / 2);
        spread = apart;
      }
    });
    const release = (event) => {
      const last = held.get(event.pointerId);
      held.delete(event.pointerId);
      spread = 0;
      if (held.size) return;
      canvas.classList.remove("held");
      if (event.type === "pointerup" && last && moved <= 4) open(cellAt(last.x, last.y));
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", unhover);
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const { x, y } = place(event);
        const lines = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
        // A pinch on a touch pad arrives as a wheel with Ctrl held, in smaller steps.
        const rate = event.ctrlKey ? 0.01 : 0.0016;
        zoom(Math.exp(-clamp(event.deltaY * lines, -400, 400) * rate), x, y);
        hover(x, y);
      },
      { passive: false },
    );
  }

  function listenToKeys() {
    const zooms = { "+": 1.25, "=": 1.25, "-": 0.8, _: 0.8 };
    const arrows = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
    };
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target === get("search")) return;
      if (get("large").open) {
        if (event.key === "ArrowLeft") open(follow(current, -1));
        if (event.key === "ArrowRight") open(follow(current, 1));
        return;
      }
      if (event.key in zooms) zoom(zooms[event.key]);
      else if (event.key === "0") fit();
      else if (event.key === "/") get("search").focus();
      else if (event.key in arrows && event.target === canvas) walk(...arrows[event.key]);
      else if ((event.key === "Enter" || event.key === " ") && event.target === canvas) {
        open(current);
      } else if (event.key === "Escape") {
        current = -1;
        unhover();
      } else return;
      event.preventDefault();
    });
    get("search").addEventListener("input", (event) => search(event.target.value));
    get("search").addEventListener("keydown", (event) => {
      if (event.key === "Enter") visit(follow(current, event.shiftKey ? -1 : 1), 48);
      if (event.key === "Escape") {
        event.target.value = "";
        search("");
        canvas.focus();
      }
    });
  }

  function listenToButtons() {
    get("in").addEventListener("click", () => zoom(1.5));
    get("out").addEventListener("click", () => zoom(1 / 1.5));
    get("fit").addEventListener("click", fit);
    get("before").addEventListener("click", () => open(follow(current, -1)));
    get("after").addEventListener("click", () => open(follow(current, 1)));
    get("close").addEventListener("click", () => get("large").close());
    get("large").addEventListener("click", (event) => {
      // A click outside the panel targets the dialog itself, at a position beyond its sides.
      const box = get("large").getBoundingClientRect();
      const inside =
        event.clientX >= box.left &&
        event.clientX <= box.right &&
        event.clientY >= box.top &&
        event.clientY <= box.bottom;
      if (event.target === get("large") && !inside) get("large").close();
    });
  }

  function resize() {
    const box = canvas.getBoundingClientRect();
    size.width = Math.max(1, box.width);
    size.height = Math.max(1, box.height);
    size.dots = window.devicePixelRatio || 1;
    canvas.width = Math.round(size.width * size.dots);
    canvas.height = Math.round(size.height * size.dots);
    if (fitted) fit();
    else {
      keepInSight();
      draw();
    }
  }

  function start() {
    readColors();
    canvas.setAttribute(
      "aria-label",
      `Wall of ${nPlaced} pictures in ${rows} rows and ${columns} columns`,
    );
    get("count").textContent = countWords();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      readColors();
      ask();
    });
    listenToPointers();
    listenToKeys();
    listenToButtons();
    new ResizeObserver(resize).observe(canvas);
    resize();
    Promise.all(blocks.map(load)).then(
      () => {
        get("waiting").hidden = true;
        document.documentElement.dataset.ready = "yes";
      },
      () => {
        get("waiting").textContent = "The pictures in this file are damaged. Create the page again.";
      },
    );
  }

  start();
})();
