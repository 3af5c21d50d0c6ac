/** Entry of the calendar page. */

import { Calendar } from "./calendar.js";

const config = JSON.parse(document.getElementById("calendar-config").textContent);
const root = document.getElementById("calendar");
if (config.hosts.some((host) => host.gpus.length > 0)) {
  root.hidden = false;
  new Calendar(root, config).start();
} else {
  document.getElementById("calendar-empty").hidden = false;
}
