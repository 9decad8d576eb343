// Helpers that create and find elements. Text always becomes a text node.

export const byId = (id) => document.getElementById(id);

/** Create an element. Attributes that are undefined, null or false are omitted. */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** Set an attribute, or remove the attribute if the value is null. */
export function setAttribute(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}
