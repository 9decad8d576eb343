// A response as lists of fills, as surprisal or as a list of bars, with or without marks in the text.

import { Bars } from "./bars.js";
import { el } from "./dom.js";
import { FillsView, listsOf } from "./fills_view.js";
import { KINDS } from "./kinds.js";
import { MarkedText } from "./marked_text.js";
import { bits, figure, percent } from "./numbers.js";
import { joined } from "./pairs.js";
import { ScoreView } from "./score_view.js";
import { STRINGS } from "./strings.js";
import { around, findMasks } from "./text.js";

const MOST_ANNOUNCED = 5; // masks or entities in an announcement

export class Result {
  #view;
  #kind;
  #fills;
  #score;
  #bars = new Bars({ areButtons: false });
  #marked = new MarkedText();
  #list = el("div", { class: "list" }, this.#bars.none, this.#bars.root);
  #ranking = { root: el("div", { class: "lists" }, this.#marked.root, this.#list) };

  /**
   * Calls `on.choose(fill, mask)` for a chosen fill, `on.open(piece)` for a selected token and
   * `on.close()` for a released token.
   *
   * @param view element of the result.
   * @param panel element with the alternatives to a selected token.
   */
  constructor(view, panel, on) {
    this.#view = view;
    this.#fills = new FillsView(on.choose);
    this.#score = new ScoreView(panel, on);
  }

  /**
   * Show the response to a request. Return the `summary` for screen readers and the `largest` share
   * of all fills, 0 for other responses.
   */
  show(answer, request, model) {
    this.#kind = request.kind;
    const show = { fills: this.#showFills, score: this.#showScore }[request.kind] ?? this.#showBars;
    const { root, ...facts } = show.call(this, answer, request, model);
    this.#place(root);
    this.stale = false;
    return { largest: 0, ...facts };
  }

  /** Show an element in place of a response. */
  clear(element) {
    this.#kind = undefined;
    this.#score.close();
    this.#place(element);
  }

  /** Mark the response as outdated. Visitors cannot choose from outdated responses. */
  set stale(stale) {
    for (const { root } of [this.#fills, this.#score, this.#ranking]) root.classList.toggle("stale", stale);
  }

  /** The selected token of a score, null without a selection. */
  get chosen() {
    return this.#kind === "score" ? this.#score.chosen : null;
  }

  /** Focus the place of the visitor's last insertion. */
  focus({ mask, unit }) {
    if (this.#kind === "score") this.#score.focus(unit);
    else this.#fills.focus(mask);
  }

  #showFills(answer, { body }, { mask_token: maskToken }) {
    const lists = listsOf(answer);
    const inputs = joined(body.inputs);
    const contexts = findMasks(inputs, maskToken).map((span) =>
      around(span, inputs).map((side) => side.replaceAll(maskToken, "___")),
    );
    const largest = this.#fills.render(lists, { contexts });
    const best = lists
      .slice(0, MOST_ANNOUNCED)
      .map(({ fills: [fill] }) => (fill ? `${fill.words.join(" ")}, ${percent(fill.share)}` : STRINGS.noFill));
    return { root: this.#fills.root, largest, summary: STRINGS.best(best.join("; ")) };
  }

  #showScore(answer, { body }) {
    const most = this.#score.render(body.inputs, answer);
    const summary = STRINGS.saidSurprisal(figure(answer.pseudo_perplexity), most.text, bits(most.surprisal));
    return { root: this.#score.root, summary };
  }

  #showBars(answer, { kind, body }, model) {
    const { list, rows: rowsOf, none, marks } = KINDS[kind];
    const rows = rowsOf(answer, body, model);
    this.#bars.render(list, rows, none);
    this.#marked.root.hidden = !marks || !rows.length;
    if (marks) this.#marked.render(body.inputs, answer, rows);
    const told = rows.slice(0, MOST_ANNOUNCED).map(({ words, note }) => `${words}, ${note}`).join("; ");
    const summary = () => (marks ? STRINGS.found(told) : STRINGS.best(`${rows[0].words}, ${rows[0].value}`));
    return { ...this.#ranking, summary: rows.length ? summary() : none };
  }

  #place(element) {
    if (this.#view.firstChild !== element) this.#view.replaceChildren(element);
  }
}
