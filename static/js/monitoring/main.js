/** Entry of the dashboard and of a host's page: keeps the live part fresh and its ages ticking. */

import { tickAges } from "./ages.js";
import { drawChart } from "./chart.js";
import { LivePart } from "./live.js";

const root = document.getElementById("live");
const live = new LivePart(root, document.getElementById("live-state"));
const drawn = new WeakSet();

/** Charts come with the part, and one may come later than the page. */
function drawCharts() {
  for (const place of root.querySelectorAll("[data-chart]")) {
    if (drawn.has(place)) continue;
    drawn.add(place);
    drawChart(place);
  }
}

tickAges(() => live.clock());
live.start(drawCharts);
drawCharts();
