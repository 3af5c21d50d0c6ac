/**
 * Mouse, pen and finger: tells clicks, drags and long presses apart and reports them.
 *
 * A mouse drags at once. A finger must rest before it drags, so that a swipe still scrolls. While
 * a drag lasts, its end at an edge of the scroller makes that scroll.
 */

const LONG_PRESS = 350; // ms
const SLOP = 4; // px a mouse may tremble within a click
const FINGER_SLOP = 10;
const EDGE = 32; // px from the border where scrolling begins
const CLICK_AFTER_DRAG = 50; // ms in which browsers send the click of a drag's end

/**
 * @typedef {object} Target what the gestures are for (the calendar)
 * @property {(event: PointerEvent) => object|null} grab what a drag from here would do
 * @property {(gesture: object, x: number, y: number) => void} drag called for every new position
 * @property {(gesture: object) => void} drop
 * @property {() => void} abandon the drag ends and means nothing
 * @property {(event: MouseEvent) => void} click
 * @property {(event: MouseEvent) => void} doubleClick
 * @property {(event: PointerEvent) => void} hover
 */
export class PointerGestures {
  #press = null;
  #isDragging = false;
  #frame = 0;
  #scrolling = 0;
  #position = { x: 0, y: 0 };
  #droppedAt = -Infinity;
  #wasAbandoned = false;

  /**
   * @param {HTMLElement} scroller stays for the life of the page, whatever is drawn in it
   * @param {Target} target
   */
  constructor(scroller, target) {
    this.scroller = scroller;
    this.target = target;
    scroller.addEventListener("pointerdown", (event) => this.#down(event));
    scroller.addEventListener("click", (event) => this.#click(event));
    scroller.addEventListener("dblclick", (event) => target.doubleClick(event));
    scroller.addEventListener("pointerover", (event) => this.#hover(event));
    scroller.addEventListener("pointerleave", (event) => this.#hover(event));
    // A finger's drag must not scroll, and only a listener that is not passive can stop that.
    scroller.addEventListener("touchmove", (event) => this.#isDragging && event.preventDefault(), {
      passive: false,
    });
    scroller.addEventListener("contextmenu", (event) => this.#press?.isTouch && event.preventDefault());
    addEventListener("pointermove", (event) => this.#move(event));
    addEventListener("pointerup", (event) => this.#up(event));
    addEventListener("pointercancel", () => this.cancel());
    addEventListener("blur", () => this.cancel());
    addEventListener("keydown", (event) => event.key === "Escape" && this.cancel());
  }

  get isDragging() {
    return this.#isDragging;
  }

  #down(event) {
    if (event.button !== 0 || this.#press) return;
    this.#wasAbandoned = false;
    const gesture = this.target.grab(event);
    if (!gesture) return;
    const isTouch = event.pointerType === "touch";
    gesture.isTouch = isTouch;
    this.#press = { gesture, isTouch, id: event.pointerId, x: event.clientX, y: event.clientY };
    this.#position = { x: event.clientX, y: event.clientY };
    if (isTouch) this.#press.timer = setTimeout(() => this.#begin(), LONG_PRESS);
  }

  #begin() {
    this.#isDragging = true;
    if (this.#press.isTouch) navigator.vibrate?.(10);
    this.#report();
    this.#scroll();
  }

  #move(event) {
    const press = this.#press;
    if (!press || event.pointerId !== press.id) return;
    this.#position = { x: event.clientX, y: event.clientY };
    const distance = Math.hypot(event.clientX - press.x, event.clientY - press.y);
    if (this.#isDragging) this.#frame ||= requestAnimationFrame(() => this.#report());
    else if (press.isTouch && distance > FINGER_SLOP) this.cancel();
    else if (!press.isTouch && distance > SLOP) this.#begin();
  }

  #report() {
    this.#frame = 0;
    if (this.#isDragging) this.target.drag(this.#press.gesture, this.#position.x, this.#position.y);
  }

  #up(event) {
    if (!this.#press) {
      if (this.#wasAbandoned) this.#droppedAt = event.timeStamp;
      this.#wasAbandoned = false;
      return;
    }
    if (event.pointerId !== this.#press.id) return;
    const { gesture } = this.#press;
    const wasDragging = this.#isDragging;
    if (wasDragging) {
      this.#position = { x: event.clientX, y: event.clientY };
      this.#report();
    }
    this.#end();
    if (!wasDragging) return;
    this.#droppedAt = event.timeStamp;
    this.target.drop(gesture);
  }

  /** End whatever goes on, without effect. */
  cancel() {
    const wasDragging = this.#isDragging;
    this.#end();
    if (!wasDragging) return;
    this.#wasAbandoned = true; // the button is still down and will send a click, too
    this.target.abandon();
  }

  #end() {
    clearTimeout(this.#press?.timer);
    cancelAnimationFrame(this.#frame);
    cancelAnimationFrame(this.#scrolling);
    this.#press = null;
    this.#isDragging = false;
    this.#frame = this.#scrolling = 0;
  }

  #click(event) {
    if (event.timeStamp - this.#droppedAt > CLICK_AFTER_DRAG) this.target.click(event);
  }

  #hover(event) {
    if (!this.#isDragging && event.pointerType === "mouse") this.target.hover(event);
  }

  /** Keep scrolling for as long as the pointer rests near an edge. */
  #scroll() {
    if (!this.#isDragging) return;
    const { left, top } = scrollSpeed(this.#position, this.target.viewport());
    if (left || top) {
      this.scroller.scrollBy(left, top);
      this.#report();
    }
    this.#scrolling = requestAnimationFrame(() => this.#scroll());
  }
}

/** Pixels a frame, the faster the nearer to (or beyond) the viewport's edge; 0 in the middle. */
export function scrollSpeed({ x, y }, viewport) {
  return {
    left: edgeSpeed(x, viewport.left, viewport.right),
    top: edgeSpeed(y, viewport.top, viewport.bottom),
  };
}

function edgeSpeed(at, from, to) {
  if (at < from + EDGE) return -Math.min(EDGE, from + EDGE - at) / 3;
  if (at > to - EDGE) return Math.min(EDGE, at - (to - EDGE)) / 3;
  return 0;
}
