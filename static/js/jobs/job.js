/** Entry of a job's page: states stay fresh, logs are followed. */

import { LivePart } from "../monitoring/live.js";
import { LogPanel } from "./log.js";

new LivePart(document.getElementById("live"), document.getElementById("live-state")).start(() => {});
for (const panel of document.querySelectorAll("[data-log]")) new LogPanel(panel).follow();
