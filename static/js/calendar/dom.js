/** Two helpers for building elements without markup strings: text stays text. */

/**
 * @param {string} tag
 * @param {string} [className]
 * @param {Record<string, string|number|null>} [attributes] null leaves one out
 * @param {...(Node|string)} children
 */
export function element(tag, className = "", attributes = {}, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** Put an absolutely positioned node at a rectangle in pixels; parts left out stay as they are. */
export function place(node, rectangle) {
  for (const side of ["left", "top", "width", "height"]) {
    if (side in rectangle) node.style[side] = `${rectangle[side]}px`;
  }
}
