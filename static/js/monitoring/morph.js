/**
 * Turn one element into another by changing only what differs, so that focus, scrolling, selected
 * text and opened details stay.
 *
 * Elements with an id find their counterpart wherever it moved to; others are matched by place.
 * What carries `data-keep` belongs to a script and stays as it is.
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
  const known = new Map();
  for (const child of from.children) if (child.id) known.set(child.id, child);
  let place = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const match = wanted.id ? known.get(wanted.id) : place;
    if (!match || !areAlike(match, wanted)) {
      from.insertBefore(wanted, place);
      continue;
    }
    if (match === place) place = place.nextSibling;
    else from.insertBefore(match, place);
    if (match.nodeType === Node.ELEMENT_NODE) morph(match, wanted);
    else if (match.data !== wanted.data) match.data = wanted.data;
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function areAlike(one, other) {
  return one.nodeName === other.nodeName && (one.id ?? "") === (other.id ?? "");
}
