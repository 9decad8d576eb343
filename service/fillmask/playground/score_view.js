// A text with tokens coloured by surprisal. Each token is a button that shows its alternatives.

import { el, setAttribute } from "./dom.js";
import { bits, figure, level, levels, percent } from "./numbers.js";
import { joinedPieces } from "./pairs.js";
import { roving } from "./roving.js";
import { STRINGS } from "./strings.js";

export class ScoreView {
  #figures = el("dl", { class: "row figures" });
  #tokens = el("div", { class: "tokens", role: "group", "aria-label": STRINGS.tokensBySurprisal });
  #readout = el("p", { class: "readout quiet" });
  #roving = roving(this.#tokens, ".token");
  #pieces = [];
  #buttons = [];
  #open = null;
  #panelId;
  #on;

  /**
   * Calls `on.open(piece)` for a selected token and `on.close()` for a released token.
   *
   * @param panel element with the alternatives to the selected token.
   */
  constructor(panel, on) {
    this.#on = on;
    this.root = el("div", { class: "score" }, this.#figures, this.#tokens, this.#readout, legend(), panel);
    this.#tokens.addEventListener("click", ({ target }) => {
      const at = this.#buttons.indexOf(target.closest(".token"));
      if (at >= 0 && !this.root.classList.contains("stale")) this.#choose(at);
    });
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.#open === null) return;
      const button = this.#buttons[this.#open];
      this.close();
      button.focus();
    });
    for (const name of ["pointerover", "focusin"]) {
      this.#tokens.addEventListener(name, ({ target }) => {
        if (target !== this.#tokens) this.#read(this.#buttons.indexOf(target));
      });
    }
    for (const name of ["pointerleave", "focusout"]) {
      this.#tokens.addEventListener(name, () => this.#read(this.#open ?? -1));
    }
    this.#panelId = panel.id;
  }

  /** Show a response of /score and return the piece with the highest surprisal. */
  render(inputs, answer) {
    this.close();
    this.#pieces = joinedPieces(inputs, answer.tokens);
    const scored = this.#pieces.filter(({ tokens }) => tokens);
    for (const piece of scored) {
      piece.surprisal = piece.tokens.reduce((sum, token) => sum + token.surprisal, 0);
      piece.probability = 2 ** -piece.surprisal;
    }
    const most = scored.reduce((one, other) => (other.surprisal > one.surprisal ? other : one));
    this.#figures.replaceChildren(
      ...pair(STRINGS.logProbability, STRINGS.nats(figure(answer.log_prob))),
      ...pair(STRINGS.pseudoPerplexity, figure(answer.pseudo_perplexity)),
      ...pair(STRINGS.mostSurprising, el("b", {}, most.text), bits(most.surprisal)),
    );
    this.#buttons = this.#pieces.map((piece) => piece.tokens && this.#button(piece));
    this.#tokens.replaceChildren(...this.#pieces.map((piece, at) => this.#buttons[at] ?? piece.text));
    this.#roving.refresh();
    this.#read(-1);
    return most;
  }

  /** Release the selected token. */
  close() {
    if (this.#open === null) return;
    setAttribute(this.#buttons[this.#open], "aria-expanded", "false");
    this.#open = null;
    this.#read(-1);
    this.#on.close();
  }

  /** The selected piece, null without a selection. */
  get chosen() {
    return this.#open === null ? null : this.#pieces[this.#open];
  }

  /** Focus the last token that starts before an offset of the text. */
  focus(unit) {
    const at = this.#pieces.findLastIndex(({ tokens, start }) => tokens && start < unit);
    (this.#buttons[at] ?? this.#buttons.find(Boolean))?.focus();
  }

  #choose(at) {
    const again = this.#open === at;
    this.close();
    if (again) return;
    this.#open = at;
    setAttribute(this.#buttons[at], "aria-expanded", "true");
    this.#read(at);
    this.#on.open(this.#pieces[at]);
  }

  #button(piece) {
    return el("button", {
      type: "button",
      class: "token",
      tabindex: "-1",
      "data-level": level(piece.surprisal),
      "aria-label": `${piece.text}, ${bits(piece.surprisal)}`,
      "aria-expanded": "false",
      "aria-controls": this.#panelId,
    }, piece.text);
  }

  #read(at) {
    const piece = this.#pieces[at];
    this.#readout.replaceChildren(...(piece?.tokens ? described(piece) : [STRINGS.chooseToken]));
  }
}

function described({ text, surprisal, probability, tokens }) {
  const names = tokens.map((token) => token.token_str.trim()).join(" ");
  const parts = [el("b", {}, text), STRINGS.tokenFigures(bits(surprisal), percent(probability))];
  if (names !== text) parts.push(STRINGS.readAs, el("b", {}, names));
  return parts;
}

function pair(name, ...value) {
  return [el("div", {}, el("dt", { class: "quiet" }, name), el("dd", {}, ...value.flatMap((one) => [one, " "])))];
}

function legend() {
  const keys = levels.map((range, at) => el("li", { "data-level": at }, range));
  const list = el("ol", { class: "row", "aria-label": STRINGS.bitsOfSurprisal }, ...keys);
  return el("div", { class: "row legend quiet" }, STRINGS.surprisalInBits, list);
}
