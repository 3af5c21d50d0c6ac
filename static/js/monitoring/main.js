/** Entry of the dashboard and of a host's page: keeps the live part fresh and its ages ticking. */

import { tickAges } from "./ages.js";
import { drawChart } from "./chart.js";
import { LivePart } from "./live.js";

const live = new LivePart(document.getElementById("live"), document.getElementById("live-state"));
tickAges(() => live.clock());
live.start();

const chart = document.getElementById("chart");
if (chart) drawChart(chart);
