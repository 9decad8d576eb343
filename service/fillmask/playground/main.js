// The page, which sends a request after each change of the text or the options.

import { address } from "./api.js";
import { copy } from "./clipboard.js";
import { CodePanel } from "./code_panel.js";
import { Column } from "./column.js";
import { Comparison } from "./comparison.js";
import { byId, say, setAttribute, showStrings } from "./dom.js";
import { Editor } from "./editor.js";
import { showExamples } from "./examples.js";
import { fromFragment, toFragment } from "./link.js";
import { Models, showFacts } from "./models.js";
import { ceiling, fullBar } from "./numbers.js";
import { Options } from "./options.js";
import { inputsOf, splitFilled } from "./pairs.js";
import { isPassing, Problem, showProblem, waitingSentence } from "./problem.js";
import { Question } from "./question.js";
import { STRINGS } from "./strings.js";

showStrings();

const editor = new Editor(changed);
const options = new Options(changed);
const code = new CodePanel(say);
const models = new Models(() => {
  useModel();
  changed(false);
});
const comparison = new Comparison(editor, models, () => changed(false));

const problem = problemIn("problem", () => {
  if (models.current) first.retry();
  else list.ask({ path: "models" });
});
const starting = {
  waiting: (waiting) => problem.show(waitingSentence(waiting), "notice"),
  refused: (refusal) => problem.show(refusal.message, "error", isPassing(refusal) ? STRINGS.tryAgain : undefined),
};
const list = new Question({ ...starting, answer: listed });
const info = new Question({ ...starting, answer: started });

const first = column("first-column", "alternatives", problem, {
  field: () => editor.main,
  own: editor.main,
  inputs,
  model: () => models.current,
  settled: (request) => code.show(request),
});
const other = column("other-column", "other-alternatives", problemIn("other-problem", () => other.retry()), {
  field: () => (editor.other.text ? editor.other : editor.main),
  own: editor.other,
  inputs: () => comparison.inputs,
  model: () => comparison.model,
});

let served = []; // the service's models

list.ask({ path: "models" });
window.addEventListener("hashchange", beginWithLink);
byId("copy-link").addEventListener("click", () => {
  const fragment = toFragment({
    text: editor.text,
    second: editor.second.text,
    options: options.chosen,
    model: models.current,
    comparison: comparison.value,
  });
  copy(address("") + fragment, byId("copy-link"), say);
});

/** Return a column with the results of the inputs and the model, whose fills go into the field. */
function column(id, panelId, place, { field, own, inputs: given, model, settled = () => {} }) {
  return new Column({
    root: byId(id),
    panelId,
    problem: place,
    options,
    on: {
      choose: (fill) => put(fill, field(), given(), model()),
      invalid: (isInvalid) => {
        own.invalid = isInvalid;
      },
      settled,
      answered,
      changed: showColumns,
    },
  });
}

/**
 * Return the place of errors in a paragraph. A click on one of its buttons moves the focus, because the
 * button disappears.
 */
function problemIn(id, retry) {
  const act = (action) => () => {
    byId("results-title").focus();
    action();
  };
  return new Problem(byId(id), {
    [STRINGS.tryAgain]: act(retry),
    [STRINGS.readAround]: act(() => options.readAround()),
  });
}

function listed(answer) {
  served = answer;
  if (served.length === 1) started(served[0]);
  else info.ask({ path: "info" }); // to get the default model
}

function started({ name }) {
  models.show(served, name);
  const example = useModel();
  problem.show(null);
  byId("compare").disabled = false;
  if (editor.text) changed(false);
  else if (!beginWithLink()) begin(example);
}

/** Use the chosen model and return its first example. */
function useModel() {
  editor.use(models.current);
  options.model = models.current;
  showFacts(models.current);
  return showExamples(models.current, begin);
}

/** Show texts with options, and return the names of the options that the page does not have. */
function begin({ text, second = "", options: given, comparison: compared }) {
  const unread = options.choose(given);
  editor.second.start(second);
  comparison.value = compared;
  if (editor.text) editor.main.replace(text);
  else editor.main.start(text);
  changed(false);
  return unread;
}

function beginWithLink() {
  const link = fromFragment(location.hash);
  if (!link || !models.current) return false;
  const hasModel = models.choose(link.model);
  useModel();
  const unread = begin(link);
  if (!hasModel) unread.push("model");
  if (link.second && !models.current.pairs) unread.push("text_pair");
  const compared = link.comparison?.model;
  if (compared && !models.served.some(({ name }) => name === compared)) unread.push("compare_model");
  const names = unread.join(", ");
  showProblem(byId("link-problem"), names && STRINGS.invalidLink(names), "error");
  return true;
}

function changed(typed) {
  if (!models.current) return;
  first.update(inputs(), models.current, typed);
  if (comparison.isOpen) other.update(comparison.inputs, comparison.model, typed);
  else other.close();
  showColumns();
}

/** Return the inputs of the first column. */
function inputs() {
  return inputsOf(editor.text, editor.second.text);
}

/** Put a fill for inputs of a model into a field, and return the end of the change in the joined texts. */
function put(fill, field, given, model) {
  const ofPage = (text) => text.replaceAll(model.mask_token, models.current.mask_token);
  const [text, second] = splitFilled(given, fill.sequence, model.mask_token);
  const own = field === editor.main ? ofPage(text) : text;
  const end = second === undefined ? 0 : editor.second.replace(ofPage(second));
  return own === field.area.value ? own.length + 1 + end : field.replace(own);
}

/** Show the columns with their headings, and one scale for all bars. */
function showColumns() {
  const columns = comparison.isOpen ? [first, other] : [first];
  const headings = comparison.isOpen ? comparison.headings : [];
  byId("other-column").hidden = !comparison.isOpen;
  first.heading = headings[0];
  other.heading = headings[1];
  const largest = Math.max(...columns.map(({ facts }) => facts.largest));
  const full = largest ? ceiling(largest) : 1;
  byId("results").style.setProperty("--full", full);
  byId("scale").textContent = largest ? fullBar(full) : "";
  byId("results-title").textContent = comparison.isOpen ? STRINGS.comparison : first.facts.title;
  setAttribute(byId("results"), "aria-busy", String(columns.some(({ isBusy }) => isBusy)));
}

function answered() {
  showColumns();
  say(
    comparison.isOpen
      ? STRINGS.columns(first.facts.summary || STRINGS.noResult, other.facts.summary || STRINGS.noResult)
      : first.facts.summary,
  );
}
