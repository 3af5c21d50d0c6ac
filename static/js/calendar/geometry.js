/**
 * Where things are: rows of GPUs grouped by host down the page, time across it. Pure numbers in
 * pixels of the canvas; another view is another class with `cellAt` and `rectangles`.
 */

/**
 * @param {{gpus: object[]}[]} hosts
 * @param {number} rowHeight every host has one row for its name above those of its GPUs
 * @returns {{rows: {gpu: object, host: object, top: number}[], bands: {host: object, top: number,
 *   height: number, firstRow: number, lastRow: number}[], height: number, rowHeight: number}}
 */
export function layOut(hosts, rowHeight) {
  const rows = [];
  const bands = [];
  let top = 0;
  for (const host of hosts) {
    const band = { host, top, firstRow: rows.length };
    top += rowHeight;
    for (const gpu of host.gpus) {
      rows.push({ gpu, host, top });
      top += rowHeight;
    }
    bands.push({ ...band, lastRow: rows.length - 1, height: top - band.top });
  }
  return { rows, bands, height: top, rowHeight };
}

/** Pixels per millisecond that fill the width, but not fewer than the zoom allows. */
export function scaleFor(range, availableWidth, leastHourWidth) {
  return Math.max(availableWidth / (range.end - range.start), leastHourWidth / 3_600_000);
}

/** Group row numbers into runs of neighbours on one host: [[first, last], …] in order. */
export function runs(rowNumbers, rows) {
  const found = [];
  for (const number of [...rowNumbers].sort((a, b) => a - b)) {
    const run = found.at(-1);
    if (run && run[1] === number - 1 && rows[number].host === rows[run[1]].host) run[1] = number;
    else found.push([number, number]);
  }
  return found;
}

export class Timeline {
  /**
   * @param {ReturnType<typeof layOut>} layout
   * @param {{start: number, end: number}} range
   * @param {number} scale pixels per millisecond
   */
  constructor(layout, range, scale) {
    this.layout = layout;
    this.range = range;
    this.scale = scale;
    this.width = (range.end - range.start) * scale;
    this.height = layout.height;
  }

  /** Also outside the range. */
  leftOf(instant) {
    return (instant - this.range.start) * this.scale;
  }

  /** The row and instant under a point of the canvas; points outside mean the nearest inside. */
  cellAt(x, y) {
    const { start, end } = this.range;
    const instant = Math.min(end, Math.max(start, start + x / this.scale));
    return { row: this.#rowAt(y), instant };
  }

  /** A host's name row counts to the GPU below it, so that a drag across hosts has no holes. */
  #rowAt(y) {
    const { rows, rowHeight } = this.layout;
    let [low, high] = [0, rows.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (y < rows[middle].top + rowHeight) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /**
   * Rectangles that cover the rows over [start, end): one for each run of neighbours, cut to the
   * range; `isCutLeft` and `isCutRight` say where there is more outside.
   */
  rectangles(rowNumbers, start, end) {
    const from = Math.max(start, this.range.start);
    const to = Math.min(end, this.range.end);
    if (to <= from) return [];
    const { rows, rowHeight } = this.layout;
    return runs(rowNumbers, rows).map(([first, last]) => ({
      firstRow: first,
      lastRow: last,
      left: this.leftOf(from),
      width: (to - from) * this.scale,
      top: rows[first].top,
      height: rows[last].top - rows[first].top + rowHeight,
      isCutLeft: start < from,
      isCutRight: end > to,
    }));
  }
}
