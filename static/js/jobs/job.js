/** Entry of a job's page: states stay fresh, logs are followed. */

import { LivePart } from "../monitoring/live.js";
import { LogPanel } from "./log.js";

const root = document.getElementById("live");
const followed = new WeakSet();

/** Each run of a task brings a panel of its own, and may come later than the page. */
function followLogs() {
  for (const panel of root.querySelectorAll("[data-log]")) {
    if (followed.has(panel)) continue;
    followed.add(panel);
    new LogPanel(panel).follow();
  }
}

new LivePart(root, document.getElementById("live-state")).start(followLogs);
followLogs();
