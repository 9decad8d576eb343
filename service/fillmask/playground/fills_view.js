// Lists of fills as bars. Each fill is a button that inserts the fill into the text.

import { Bars } from "./bars.js";
import { el, setAttribute } from "./dom.js";
import { percent, whole } from "./numbers.js";
import { roving } from "./roving.js";
import { STRINGS } from "./strings.js";

export class FillsView {
  #lists = [];
  #choose;

  /** Calls `choose(fill, list)` for a chosen fill. */
  constructor(choose) {
    this.#choose = choose;
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
    while (this.#lists.length < lists.length) this.#lists.push(this.#makeList(this.#lists.length));
    this.#lists.length = lists.length;
    this.#lists.forEach((list, index) => {
      const { fills, window } = lists[index];
      const count = lists.length > 1 ? index + 1 : 0;
      list.fills = fills;
      list.heading.hidden = !count;
      list.heading.replaceChildren(...(count ? headingOf(count, contexts[index]) : []));
      list.window.hidden = !window;
      list.window.textContent = window ? STRINGS.windowRead(whole(window[0]), whole(window[1])) : "";
      list.bars.render(
        count ? STRINGS.fillsOfMask(count) : STRINGS.fills,
        fills.map((fill) => rowOf(fill, fill.token === current)),
        STRINGS.noWordFits,
      );
      list.roving.refresh();
    });
    if (this.root.children.length !== lists.length) {
      this.root.replaceChildren(...this.#lists.map(({ root }) => root));
    }
    return Math.max(0, ...lists.flatMap(({ fills }) => fills.map(({ share }) => share)));
  }

  /** Mark the fills as outdated. Visitors cannot choose outdated fills. */
  set stale(stale) {
    this.root.classList.toggle("stale", stale);
  }

  /** Focus the best fill of a mask, or of the last mask if the index is too large. */
  focus(index) {
    this.#lists[Math.min(index, this.#lists.length - 1)]?.bars.elements[0]?.focus();
  }

  #makeList(index) {
    const heading = el("h3", { class: "quiet" });
    const window = el("p", { class: "quiet window" });
    const bars = new Bars({ areButtons: true });
    const root = el("div", { class: "list" }, heading, window, bars.none, bars.root);
    const list = { root, heading, window, bars, roving: roving(bars.root, ".fill"), fills: [] };
    setAttribute(bars.root, "aria-describedby", "fills-hint");
    bars.root.addEventListener("click", ({ target }) => {
      const at = bars.elements.indexOf(target.closest(".fill"));
      if (at >= 0 && !this.root.classList.contains("stale")) this.#choose(list.fills[at], index);
    });
    return list;
  }
}

/** Return the number of a mask and the text around it. */
function headingOf(count, context) {
  const number = [el("span", { class: "unseen" }, STRINGS.maskNumber), el("span", { class: "number" }, `${count}`)];
  if (!context) return number;
  const [before, after] = context;
  return [...number, el("span", { class: "cut" }, before, el("span", { class: "blank" }), after)];
}

function rowOf({ words, share, probability }, isCurrent) {
  const over = probability === undefined ? "" : STRINGS.overall(percent(probability));
  return { words, note: isCurrent ? over + STRINGS.inText : over, share, value: percent(share), isCurrent };
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
