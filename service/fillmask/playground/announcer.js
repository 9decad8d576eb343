// Announcements for screen readers. A newer announcement within 700 ms replaces the previous announcement.

import { byId } from "./dom.js";

const CALM_MS = 700;
let timer;

export function say(sentence) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    byId("announcer").textContent = sentence;
  }, CALM_MS);
}
