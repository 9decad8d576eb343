// The page, which sends a request after each change of the text or the options.

import { Alternatives } from "./alternatives.js";
import { say } from "./announcer.js";
import { address } from "./api.js";
import { copy } from "./clipboard.js";
import { CodePanel } from "./code_panel.js";
import { byId, el, setAttribute } from "./dom.js";
import { Editor } from "./editor.js";
import { showExamples } from "./examples.js";
import { showFacts } from "./facts.js";
import { FillsView } from "./fills_view.js";
import { listsOf } from "./fills.js";
import { LabelsView } from "./labels_view.js";
import { fromFragment, toFragment } from "./link.js";
import { Models } from "./models.js";
import { bits, figure, percent } from "./numbers.js";
import { Options } from "./options.js";
import { inputsOf, joined, maskInputs, splitFilled, tokensInJoined } from "./pairs.js";
import { isPassing, showProblem, waitingSentence } from "./problem.js";
import { Question } from "./question.js";
import { requestFor } from "./requests.js";
import { ScoreView } from "./score_view.js";
import { around, findMasks } from "./text.js";

const TYPING_MS = 150;
const BULK_TYPING_MS = 300; // before requests that need many passes
const MOST_ANNOUNCED = 5; // masks in an announcement
const EMPTY = "Write a sentence. Insert a mask to get fills for it. Without a mask, you get the surprisal of each token.";

const EMPTY_LABELS = "Write a text to get the labels of the model with their scores.";

const results = byId("results");
const editor = new Editor(changed);
const options = new Options(changed);
const code = new CodePanel(say);
const labels = new LabelsView();
const fills = new FillsView({ choose, point: (index) => editor.point(index) });
const alternatives = new Alternatives({ choose, settled: (request) => code.show(request) });
const score = new ScoreView(alternatives.panel, {
  open: askAlternatives,
  close: () => {
    alternatives.close();
    code.show(asked);
  },
});
const question = new Question({ waiting, refused, answer: answered });
const list = new Question({ waiting, refused, answer: listed });
const info = new Question({ waiting, refused, answer: started });
const models = new Models(() => {
  useModel();
  changed(false);
});

let served = []; // the service's models
let asked = null; // the latest request
let answeredRequest = null; // the request whose response is shown, as JSON
let place = null; // the visitor's last insertion: `{mask, unit}`

list.ask({ path: "models" });
window.addEventListener("hashchange", beginWithLink);
byId("again").addEventListener("click", () => {
  byId("results-title").focus(); // the response removes the button
  if (models.current) ask(0);
  else list.ask({ path: "models" });
});
byId("copy-link").addEventListener("click", () => {
  const link = address("") + toFragment(editor.text, editor.second.text, options.value, models.current);
  copy(link, byId("copy-link"), say);
});

function listed(answer) {
  served = answer;
  if (served.length === 1) started(served[0]);
  else info.ask({ path: "info" }); // to get the default model
}

function started({ name }) {
  models.show(served, name);
  const example = useModel();
  tell(null);
  if (editor.text) changed(false);
  else if (!beginWithLink()) begin({ text: example });
}

/** Use the chosen model and return an initial text. */
function useModel() {
  const { limits, tasks } = models.current;
  editor.use(models.current);
  options.limit(limits);
  options.tasks = tasks;
  showFacts(models.current);
  return showExamples(models.current, begin);
}

function begin({ text, second = "", options: given = {} }) {
  options.value = given;
  editor.second.start(second);
  if (editor.text) editor.replace(text);
  else editor.start(text);
  changed(false);
}

function beginWithLink() {
  const link = fromFragment(location.hash);
  if (!link || !models.current) return false;
  if (!models.choose(link.model)) link.unread.push("model");
  useModel();
  if (link.options.mode && !options.allows(link.options.mode)) link.unread.push("mode");
  if (link.second && !models.current.pairs) link.unread.push("text_pair");
  begin(link);
  const names = link.unread.join(", ");
  showProblem(byId("link-problem"), names && `This page ignores invalid parts of the link: ${names}.`, "error");
  return true;
}

function changed(typed) {
  if (!models.current) return;
  const { text } = editor;
  question.drop();
  setAttribute(results, "aria-busy", "false");
  if (!text.trim()) {
    asked = answeredRequest = null;
    tell(null);
    code.show(null);
    const isLabelling = options.value.mode === "labels";
    show(isLabelling ? "Labels" : "Fills", el("p", { class: "empty" }, isLabelling ? EMPTY_LABELS : EMPTY));
    setUsable(true);
    return;
  }
  const request = requestFor(inputsOf(text, editor.second.text), options.value, models.current);
  const isKnown = JSON.stringify(request) === answeredRequest;
  setStale(!isKnown);
  if (isKnown) {
    asked = request;
    tell(null);
    if (score.chosen && request.kind === "score") askAlternatives(score.chosen);
    return;
  }
  alternatives.drop();
  if (request.kind === "fills" && options.problem) {
    setUsable(false);
    return;
  }
  asked = request;
  const { mode } = options.value;
  const quick = request.kind === "labels" || (request.kind === "fills" && (mode === "token" || mode === "targets"));
  ask(typed ? (quick ? TYPING_MS : BULK_TYPING_MS) : 0);
}

function ask(delayMs) {
  setAttribute(results, "aria-busy", "true");
  question.ask(asked, delayMs);
}

function askAlternatives(piece) {
  if (options.problem) {
    alternatives.refuse(options.problem);
    return;
  }
  const masked = maskInputs(asked.body.inputs, piece, models.current.mask_token);
  alternatives.open(piece, requestFor(masked, options.value, models.current));
}

function choose(fill, mask = 0) {
  const inputs = inputsOf(editor.text, editor.second.text);
  const [text, second] = splitFilled(inputs, fill.sequence, models.current.mask_token);
  place = { mask };
  const end = second === undefined ? 0 : editor.second.replace(second);
  place.unit = text === editor.text ? text.length + 1 + end : editor.replace(text);
}

function waiting(problem) {
  tell(waitingSentence(problem), "notice");
  setAttribute(results, "aria-busy", "false");
  setUsable(false);
}

function refused(refusal) {
  tell(refusal.message, "error", isPassing(refusal));
  editor.invalid = !isPassing(refusal);
  answeredRequest = place = null;
  settle();
  setUsable(false);
}

function answered(answer) {
  const within = results.contains(document.activeElement);
  setStale(false);
  ({ labels: showLabels, fills: showFills, score: showScore })[asked.kind](answer);
  tell(null);
  answeredRequest = JSON.stringify(asked);
  settle();
  if (within && place) (asked.kind === "score" ? score.focus(place.unit) : fills.focus(place.mask));
  if (within && !results.contains(document.activeElement)) byId("results-title").focus();
  place = null;
}

function settle() {
  code.show(asked);
  setAttribute(results, "aria-busy", "false");
}

function showFills(answer) {
  const lists = listsOf(answer);
  const { mask_token: maskToken } = models.current;
  const inputs = joined(asked.body.inputs);
  const contexts = findMasks(inputs, maskToken).map((span) =>
    around(span, inputs).map((side) => side.replaceAll(maskToken, "___")),
  );
  show("Fills", fills.root, fills.render(lists, { contexts }));
  const best = lists
    .slice(0, MOST_ANNOUNCED)
    .map(({ fills: [fill] }) => (fill ? `${fill.words.join(" ")}, ${percent(fill.share)}` : "none"));
  say(`Best: ${best.join("; ")}.`);
}

function showScore(answer) {
  const { inputs } = asked.body;
  // one character between the parts, as in the service's joined text
  const most = score.render(joined(inputs, "\n"), { ...answer, tokens: tokensInJoined(inputs, answer.tokens) });
  show("Surprisal", score.root);
  say(
    `Pseudo-perplexity ${figure(answer.pseudo_perplexity)}; ` +
      `most surprising: ${most.text}, ${bits(most.surprisal)}.`,
  );
}

function showLabels([found]) {
  const best = labels.render(found, models.current.problem_type === "regression");
  show("Labels", labels.root);
  say(`Best: ${best}.`);
}

function show(title, view, scale = "") {
  byId("results-title").textContent = title;
  byId("scale").textContent = scale;
  if (byId("view").firstChild !== view) byId("view").replaceChildren(view);
}

function setStale(stale) {
  fills.stale = score.stale = labels.stale = stale;
  if (!stale) setUsable(true);
}

/** Enable or disable the shown result. */
function setUsable(usable) {
  const within = byId("view").contains(document.activeElement);
  byId("view").inert = !usable;
  if (within && !usable) byId("results-title").focus();
}

function tell(sentence, kind, again = false) {
  showProblem(byId("problem"), sentence, kind);
  byId("again").hidden = !again;
  editor.invalid = false;
}
