// Lists of fills as bars. Each fill is a button that inserts the fill into the text.

import { el, setAttribute } from "./dom.js";
import { percent, whole } from "./numbers.js";
import { roving } from "./roving.js";
import { STRINGS } from "./strings.js";

const MANY_ROWS = 200; // more rows have no animation

export class FillsView {
  #lists = [];
  #on;

  /** Calls `on.choose(fill, list)` for a chosen fill and `on.point(list)` for a hovered or focused list. */
  constructor(on) {
    this.#on = on;
    this.root = el("div", { class: "lists" });
  }

  /**
   * Show lists.
   *
   * @param lists from `listsOf`.
   * @param contexts the text before and after the mask of each list. A single mask has no contexts.
   * @param current the token in the text.
   * @return the largest share, 0 without fills.
   */
  render(lists, { contexts = [], current } = {}) {
    const rows = lists.reduce((sum, { fills }) => sum + fills.length, 0);
    this.root.classList.toggle("gliding", rows <= MANY_ROWS);
    while (this.#lists.length < lists.length) this.#lists.push(this.#makeList(this.#lists.length));
    this.#lists.length = lists.length;
    this.#lists.forEach((list, index) => {
      const { fills, window } = lists[index];
      const count = lists.length > 1 ? index + 1 : 0;
      fillHeading(list.heading, count, contexts[index]);
      list.window.hidden = !window;
      list.window.textContent = window ? STRINGS.windowRead(whole(window[0]), whole(window[1])) : "";
      list.none.hidden = fills.length > 0;
      setAttribute(list.fills, "aria-label", count ? STRINGS.fillsOfMask(count) : STRINGS.fills);
      while (list.rows.length < fills.length) list.rows.push(makeRow());
      list.rows.length = fills.length;
      list.rows.forEach((row, at) => fillRow(row, fills[at], fills[at].token === current));
      list.data = fills;
      if (list.fills.children.length !== fills.length) {
        list.fills.replaceChildren(...list.rows.map(({ item }) => item));
      }
      list.roving.refresh();
    });
    if (this.root.children.length !== lists.length) {
      this.root.replaceChildren(...this.#lists.map(({ root }) => root));
    }
    return Math.max(0, ...lists.flatMap(({ fills }) => fills.map(({ share }) => share)));
  }

  /** Set the share that a full bar represents. */
  set full(share) {
    this.root.style.setProperty("--full", share);
  }

  /** Mark the fills as outdated. Visitors cannot choose outdated fills. */
  set stale(stale) {
    this.root.classList.toggle("stale", stale);
  }

  /** Focus the best fill of a mask, or of the last mask if the index is too large. */
  focus(index) {
    this.#lists[Math.min(index, this.#lists.length - 1)]?.rows[0]?.button.focus();
  }

  #makeList(index) {
    const heading = el("h3");
    const window = el("p", { class: "quiet window" });
    const none = el("p", { class: "quiet" }, STRINGS.noWordFits);
    const fills = el("ol", { class: "fills", "aria-describedby": "fills-hint" });
    const root = el("div", { class: "list" }, heading, window, none, fills);
    const list = { root, heading, window, none, fills, rows: [], data: [] };
    list.roving = roving(fills, ".fill");
    fills.addEventListener("click", ({ target }) => {
      const button = target.closest(".fill");
      const at = list.rows.findIndex((row) => row.button === button);
      if (at >= 0 && !this.root.classList.contains("stale")) this.#on.choose(list.data[at], index);
    });
    for (const name of ["pointerenter", "focusin"]) {
      root.addEventListener(name, () => this.#on.point(index));
    }
    for (const name of ["pointerleave", "focusout"]) {
      root.addEventListener(name, () => this.#on.point(null));
    }
    return list;
  }
}

function fillHeading(heading, count, context) {
  heading.hidden = !count;
  if (!count) return heading.replaceChildren();
  const parts = [el("span", { class: "unseen" }, STRINGS.maskNumber), el("span", { class: "number" }, `${count}`)];
  if (context) {
    const [before, after] = context;
    const blank = el("span", { class: "blank" });
    parts.push(el("span", { class: "context" }, before, blank, after));
  }
  return heading.replaceChildren(...parts);
}

function makeRow() {
  const bar = el("span", { class: "bar", "aria-hidden": "true" });
  const words = el("span", { class: "words" });
  const note = el("span", { class: "note" });
  const value = el("span", { class: "value" });
  const button = el("button", { type: "button", class: "fill", tabindex: "-1" }, bar, words, note, value);
  return { item: el("li", {}, button), button, bar, words, note, value };
}

function fillRow({ button, bar, words, note, value }, fill, isCurrent) {
  words.replaceChildren(...fill.words.flatMap((word) => [el("span", {}, word), " "]));
  const over = fill.probability === undefined ? "" : STRINGS.overall(percent(fill.probability));
  note.textContent = isCurrent ? over + STRINGS.inText : over;
  value.textContent = percent(fill.share);
  bar.style.setProperty("--share", fill.share);
  setAttribute(button, "aria-current", isCurrent ? "true" : null);
}

/**
 * Return the lists of a response. There is one list per mask, or a single list for masks filled
 * jointly. A list has its `fills` and the `window` that the model read. A fill has the `words` that
 * it inserts, the `sequence` with these words, and its `share`, which is the length of its bar. A fill
 * also has the `probability` over the vocabulary if its share differs.
 */
export function listsOf(answer) {
  const several = Array.isArray(answer[0]);
  return (several ? answer : [answer]).map((fills) => ({
    window: fills[0]?.window,
    fills: fills.map((fill) => ({
      words: (fill.token_strs ?? [fill.token_str]).map(shown),
      share: fill.target_score ?? fill.score,
      probability: fill.target_score === undefined ? undefined : fill.score,
      sequence: fill.sequence,
      token: fill.token,
    })),
  }));
}

/** Return a token without leading space, or a symbol for a token of white space only. */
function shown(tokenStr) {
  return tokenStr.trim() || tokenStr.replace(/\n/g, "⏎").replace(/\s/g, "␣");
}
