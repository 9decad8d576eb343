// Announcements for screen readers: the latest one, after a pause without newer ones.

import { byId } from "./dom.js";

const CALM_MS = 700;
let timer;

export function say(sentence) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    byId("announcer").textContent = sentence;
  }, CALM_MS);
}
