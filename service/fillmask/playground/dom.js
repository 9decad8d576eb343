// Helpers that create and find elements, and announcements. Text always becomes a text node.

import { LANGUAGE, STRINGS } from "./strings.js";

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

/** Colour an element by a hue in degrees, or not at all if the hue is undefined. */
export function tint(element, hue) {
  element.classList.toggle("tinted", hue !== undefined);
  element.style.setProperty("--hue", hue);
}

/**
 * Show the strings that the elements of the page name: `data-strings="text:KEY ATTRIBUTE:KEY"` sets the
 * text and an attribute.
 */
export function showStrings() {
  document.documentElement.lang = LANGUAGE;
  document.title = STRINGS.title;
  for (const element of document.querySelectorAll("[data-strings]")) {
    for (const pair of element.dataset.strings.split(" ")) {
      const [place, key] = pair.split(":");
      if (place === "text") element.textContent = STRINGS[key];
      else element.setAttribute(place, STRINGS[key]);
    }
  }
}

/** Run an editing command in a text area, and return whether the browser knows it. The focus stays. */
export function edit(area, command, text) {
  const focused = document.activeElement;
  area.focus({ preventScroll: true });
  // deprecated, but the only edits that the undo of browsers records
  const isDone = document.execCommand(command, false, text);
  if (focused && focused !== document.body) focused.focus({ preventScroll: true });
  return isDone;
}

// Announcements for screen readers. A newer one within 700 ms replaces the previous one.
const CALM_MS = 700;
let timer;

export function say(sentence) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    byId("announcer").textContent = sentence;
  }, CALM_MS);
}
