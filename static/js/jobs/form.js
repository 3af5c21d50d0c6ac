/** Entry of the form for a new job: tasks come and go, and only the chosen host's GPUs show. */

const tasks = document.getElementById("tasks");
const empty = document.getElementById("empty-task");
const total = document.querySelector('[name="tasks-TOTAL_FORMS"]');
const most = Number(document.querySelector('[name="tasks-MAX_NUM_FORMS"]').value);
const add = document.getElementById("add-task");

function forms() {
  return [...tasks.querySelectorAll("[data-task]")];
}

/** Show the GPUs of the chosen host alone; those of others are no longer chosen. */
function showGpus(form) {
  const host = form.querySelector("select").value;
  for (const group of form.querySelectorAll("[data-host]")) {
    group.hidden = host !== "" && group.dataset.host !== host;
    if (!group.hidden) continue;
    for (const box of group.querySelectorAll("input")) box.checked = false;
  }
}

/** Give the tasks the numbers that the server counts by. */
function renumber() {
  const all = forms();
  all.forEach((form, number) => {
    form.querySelector("[data-task-title]").textContent = all.length > 1 ? `Task ${number + 1}` : "Task";
    form.querySelector("[data-remove-task]").hidden = all.length < 2;
    for (const node of form.querySelectorAll("[name], [id], [for], [aria-labelledby], [aria-describedby]")) {
      for (const name of ["name", "id", "for", "aria-labelledby", "aria-describedby"]) {
        const value = node.getAttribute(name);
        if (value) node.setAttribute(name, value.replace(/(tasks-)(\d+|__prefix__)(-)/g, `$1${number}$3`));
      }
    }
  });
  total.value = String(all.length);
  add.hidden = all.length >= most;
}

function addTask() {
  const form = empty.content.querySelector("[data-task]").cloneNode(true);
  // Mostly the same command on another host.
  const last = forms().at(-1);
  for (const part of ["command", "env"]) {
    const from = last.querySelector(`[name$="-${part}"]`);
    form.querySelector(`[name$="-${part}"]`).value = from.value;
  }
  tasks.append(form);
  renumber();
  form.querySelector("select").focus();
}

tasks.addEventListener("change", (event) => {
  if (event.target.matches("select")) showGpus(event.target.closest("[data-task]"));
});
tasks.addEventListener("click", (event) => {
  const button = event.target.closest("[data-remove-task]");
  if (!button) return;
  button.closest("[data-task]").remove();
  renumber();
  add.focus();
});
add.addEventListener("click", addTask);
forms().forEach(showGpus);
renumber();
