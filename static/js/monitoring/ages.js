/** Ages of moments, shown in words and ticking between two fetches. */

const SECOND = 1000;

/** A length in ms as `3 s`, `5 min`, `2 h 5 min` or `9 d 23 h`. */
export function lengthText(length) {
  const seconds = Math.max(0, Math.floor(length / SECOND));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  if (days) return `${days} d ${hours % 24} h`;
  if (hours) return `${hours} h ${minutes % 60} min`;
  return minutes ? `${minutes} min` : `${seconds} s`;
}

/** Write the age of every `time[data-age]` below the root; `now` is the server's clock in ms. */
export function showAges(root, now) {
  for (const node of root.querySelectorAll("time[data-age]")) {
    const length = lengthText(now - Date.parse(node.dateTime));
    const text = node.dataset.age === "ago" ? `${length} ago` : length;
    if (node.textContent !== text) node.textContent = text;
  }
}

/**
 * Show all ages now and every second while somebody looks.
 *
 * @param {() => number} clock the server's clock in ms
 */
export function tickAges(clock, page = document) {
  const show = () => {
    if (!page.hidden) showAges(page, clock());
  };
  show();
  setInterval(show, SECOND);
  page.addEventListener("visibilitychange", show);
}
