// A column of results. It shows the response to a request, or an error in place of the response.

import { Alternatives } from "./alternatives.js";
import { byId, el, setAttribute } from "./dom.js";
import { KINDS, kindOf, linesOf } from "./kinds.js";
import { maskInputs, partsOf } from "./pairs.js";
import { isPassing, solutionOf, waitingSentence } from "./problem.js";
import { Question } from "./question.js";
import { requestFor } from "./requests.js";
import { Result } from "./result.js";
import { STRINGS } from "./strings.js";

const TYPING_MS = 150;
const BULK_TYPING_MS = 300; // before requests that need many passes
const CHANGE_MS = 100; // between requests after other changes, such as several undone edits
const QUICK_MODES = ["token", "targets"];

export class Column {
  /**
   * The `title` of the result, the `largest` share of all fills, 0 without fills, and the `summary` for screen
   * readers, empty without a result.
   */
  facts = { title: STRINGS.fills, largest: 0, summary: "" };
  isBusy = false;
  #root;
  #heading;
  #timing;
  #problem;
  #options;
  #on;
  #result;
  #alternatives;
  #question;
  #model;
  #asked = null; // the latest request
  #open = null; // the latest request as JSON, until its response
  #shown = null; // the request of the shown response, as JSON
  #changedAt = -Infinity;
  #place = null; // the visitor's last insertion: `{mask, unit}`

  /**
   * Calls `on.choose(fill)` for a chosen fill, which returns the end of the change in the text. Calls
   * `on.invalid(isInvalid)` for the text, `on.settled(request)` for the request to show as code,
   * `on.answered()` after a response, and `on.changed()` after other changes of the properties.
   *
   * @param root element of the column.
   * @param panelId id for the panel with the alternatives to a token.
   * @param problem place for errors.
   */
  constructor({ root, panelId, problem, options, on }) {
    this.#root = root;
    this.#heading = root.querySelector(".column-title");
    this.#timing = root.querySelector(".timing");
    this.#problem = problem;
    this.#options = options;
    this.#on = on;
    this.#alternatives = new Alternatives(panelId, {
      choose: (fill) => this.#choose(fill, 0),
      settled: on.settled,
    });
    this.#result = new Result(root.querySelector(".view"), this.#alternatives.panel, {
      choose: (fill, mask) => this.#choose(fill, mask),
      open: (piece) => this.#askAlternatives(piece),
      close: () => {
        this.#alternatives.close();
        on.settled(this.#asked);
      },
    });
    this.#question = new Question({
      waiting: (waiting) => this.#waiting(waiting),
      refused: (refusal) => this.#refused(refusal),
      answer: (answer, timing) => this.#answered(answer, timing),
    });
  }

  /** Name the column by a text and a model, or by nothing if it is the only column. */
  set heading(heading) {
    const { text, model } = heading ?? {};
    this.#heading.hidden = !heading;
    this.#heading.replaceChildren(
      ...(text ? [el("span", { class: "cut" }, text), " "] : []),
      ...(model ? [model] : []),
    );
    setAttribute(this.#root, "role", heading ? "group" : null);
    setAttribute(this.#root, "aria-labelledby", heading ? this.#heading.id : null);
  }

  /** Show the response for inputs, by a request unless the column already shows this response. */
  update(inputs, model, typed) {
    const { value: options, problem } = this.#options;
    this.#model = model;
    const kind = kindOf(options.mode);
    const { supports, lacks, empty } = KINDS[kind];
    const missing = supports(model) ? undefined : lacks(model.name);
    const [text, second] = partsOf(inputs);
    if (missing || !text.trim() || (kind === "rank" && !linesOf(second).length)) {
      this.#drop();
      this.#asked = null;
      this.#tell(missing, "error");
      this.#clear(missing ? STRINGS.noResultForText : empty, kind);
      this.#on.settled(null);
      return;
    }
    const request = requestFor(inputs, options, model);
    const asJson = JSON.stringify(request);
    if (asJson === this.#open) return;
    this.#drop();
    if (asJson === this.#shown) {
      this.#asked = request;
      this.#tell(null);
      this.#result.stale = false;
      if (this.#result.chosen) this.#askAlternatives(this.#result.chosen);
      this.#on.changed();
      return;
    }
    this.#result.stale = true;
    if (request.kind === "fills" && problem) {
      this.#asked = null;
      this.#tell(null);
      this.#clear(STRINGS.noResultYet, request.kind);
      this.#on.settled(null);
      return;
    }
    this.#asked = request;
    const isQuick = kind !== "fills" || (request.kind === "fills" && QUICK_MODES.includes(options.mode));
    const pauseMs = typed ? (isQuick ? TYPING_MS : BULK_TYPING_MS) : this.#changedAt + CHANGE_MS - performance.now();
    if (!typed) this.#changedAt = performance.now();
    this.#ask(Math.max(0, pauseMs));
  }

  /** Send the latest request again. */
  retry() {
    this.#ask(0);
  }

  /** Cancel the open request and remove the result. */
  close() {
    this.#drop();
    this.#tell(null);
    this.#clear("", "fills");
  }

  #drop() {
    this.#question.drop();
    this.#alternatives.drop();
    this.#open = null;
    this.isBusy = false;
  }

  #ask(pauseMs) {
    this.#open = JSON.stringify(this.#asked);
    this.isBusy = true;
    this.#question.ask(this.#asked, pauseMs);
    this.#on.changed();
  }

  #askAlternatives(piece) {
    if (this.#options.problem) {
      this.#alternatives.refuse(piece, this.#options.problem);
      return;
    }
    const masked = maskInputs(this.#asked.body.inputs, piece, this.#model.mask_token);
    this.#alternatives.open(piece, requestFor(masked, this.#options.value, this.#model));
  }

  #choose(fill, mask) {
    this.#place = { mask };
    this.#place.unit = this.#on.choose(fill);
  }

  #waiting(waiting) {
    this.#tell(waitingSentence(waiting), "notice");
    this.isBusy = false;
    this.#clear(STRINGS.noResultYet, this.#asked.kind);
  }

  #refused(refusal) {
    this.#tell(refusal.message, "error", solutionOf(refusal, this.#asked));
    this.#on.invalid(!isPassing(refusal));
    this.#open = this.#place = null;
    this.isBusy = false;
    this.#clear(STRINGS.noResultForText, this.#asked.kind);
    this.#on.settled(this.#asked);
  }

  #answered(answer, timing) {
    const title = byId("results-title");
    const within = this.#root.contains(document.activeElement) || document.activeElement === title;
    this.#shown = this.#open;
    this.#open = null;
    this.isBusy = false;
    this.facts = {
      title: KINDS[this.#asked.kind].title,
      ...this.#result.show(answer, this.#asked, this.#model),
    };
    this.#timing.textContent = timing;
    this.#tell(null);
    this.#on.settled(this.#asked);
    this.#on.answered();
    if (within && this.#place) this.#result.focus(this.#place);
    if (within && !byId("results").contains(document.activeElement)) title.focus();
    this.#place = null;
  }

  /** Show a sentence in place of a result. */
  #clear(sentence, kind) {
    const within = this.#root.contains(document.activeElement);
    this.#shown = null;
    this.facts = { title: KINDS[kind].title, largest: 0, summary: "" };
    this.#timing.textContent = "";
    this.#result.clear(el("p", { class: "quiet" }, sentence));
    if (within && !this.#root.contains(document.activeElement)) byId("results-title").focus();
    this.#on.changed();
  }

  #tell(sentence, kind, solution) {
    this.#problem.show(sentence, kind, solution);
    this.#on.invalid(false);
  }
}
