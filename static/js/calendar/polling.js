/** Doing something again and again while somebody looks at the page. */

/**
 * Run the task every so many ms, never twice at once, and not while the page is hidden; once at
 * once when it is shown again.
 *
 * @param {() => Promise<void>} task must not throw
 * @param {number} interval
 */
export function pollWhileVisible(task, interval, page = document) {
  let timer = null;
  let isRunning = false;

  async function run() {
    clearTimeout(timer);
    if (isRunning || page.hidden) return;
    isRunning = true;
    try {
      await task();
    } finally {
      isRunning = false;
      timer = setTimeout(run, interval);
    }
  }

  page.addEventListener("visibilitychange", run);
  timer = setTimeout(run, interval);
}
