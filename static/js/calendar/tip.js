/** The small label near the pointer or the selection. */

import { element, place } from "./dom.js";

const DISTANCE = 16;
const MARGIN = 8;

export class Tip {
  /** @param {HTMLElement} node a fixed, hidden element */
  constructor(node) {
    this.node = node;
  }

  /**
   * @param {string[]} lines
   * @param {{x: number, y: number, isAbove?: boolean}} at in the window; above, where a finger
   *   would cover what is below
   * @param {string[]} [problems] shown in words below, with a sign
   */
  show(lines, { x, y, isAbove = false }, problems = []) {
    this.node.replaceChildren(
      ...lines.map((line, number) => element(number ? "span" : "strong", "", {}, line)),
      ...shortened(problems).map((line) => element("span", "cal-tip-problem", {}, `⚠ ${line}`)),
    );
    this.node.classList.toggle("is-refused", problems.length > 0);
    this.node.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.node;
    const below = y + DISTANCE;
    const goesBelow = !isAbove && below + height + MARGIN <= innerHeight;
    const above = y - DISTANCE * (isAbove ? 3 : 1) - height;
    place(this.node, {
      left: Math.max(MARGIN, Math.min(x + DISTANCE, innerWidth - width - MARGIN)),
      top: goesBelow ? below : Math.max(MARGIN, above),
    });
  }

  hide() {
    this.node.hidden = true;
  }
}

/** The first three, and how many more there are. */
export function shortened(lines) {
  if (lines.length <= 3) return lines;
  return [...lines.slice(0, 3), `… and ${lines.length - 3} more reasons.`];
}
