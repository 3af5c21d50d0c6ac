/**
 * Turn one element into another by changing only what differs, so that focus, scrolling, selected
 * text and opened details stay.
 *
 * Elements with an id find their counterpart by it; others are matched by place. What carries
 * `data-keep` belongs to a script and stays as it is.
 */

/** @param {Element} from stays in the page @param {Element} to is used up */
export function morph(from, to) {
  if (from.hasAttribute("data-keep")) return;
  const isTicking = from.hasAttribute("data-age") && from.dateTime === to.dateTime;
  copyAttributes(from, to);
  if (!isTicking) morphChildren(from, to);
}

function copyAttributes(from, to) {
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !isOfTheReader(from, name)) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value && !isOfTheReader(from, name)) {
      from.setAttribute(name, value);
    }
  }
}

/** Whether the reader sets this, by opening or closing. */
function isOfTheReader(node, name) {
  return name === "open" && node.localName === "details";
}

function morphChildren(from, to) {
  removeGone(from, to);
  const known = new Map(withIds(from).map((child) => [child.id, child]));
  let place = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const match = wanted.id ? known.get(wanted.id) : place;
    if (!match || !areAlike(match, wanted)) {
      from.insertBefore(wanted, place);
      continue;
    }
    // Only what changed its order is moved: a node that is moved loses its focus.
    if (match === place) place = place.nextSibling;
    else from.insertBefore(match, place);
    morphNode(match, wanted);
  }
  removeFrom(place);
}

function morphNode(from, to) {
  if (from.nodeType === Node.ELEMENT_NODE) morph(from, to);
  else if (from.data !== to.data) from.data = to.data;
}

function withIds(parent) {
  return [...parent.children].filter((child) => child.id);
}

function removeGone(from, to) {
  const wanted = new Set(withIds(to).map((child) => child.id));
  for (const child of withIds(from)) if (!wanted.has(child.id)) child.remove();
}

function removeFrom(node) {
  while (node) {
    const next = node.nextSibling;
    node.remove();
    node = next;
  }
}

function areAlike(one, other) {
  return one.nodeName === other.nodeName && (one.id ?? "") === (other.id ?? "");
}
