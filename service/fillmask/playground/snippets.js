// Requests as code. JSON strings are also valid in Python and JavaScript.

import { KINDS, loopOver } from "./kinds.js";

/**
 * Return a request as code for `curl`, `python` and `javascript`, which prints the figures of the
 * page. The code reads the API key at run time and never contains it.
 */
export function snippets(url, request, { withKey }) {
  const loops = KINDS[request.kind].code ?? loopsOverFills(request);
  return {
    curl: curl(url, request.body, withKey),
    python: python(url, request.body, withKey, loops.python),
    javascript: javascript(url, request.body, withKey, loops.javascript),
  };
}

function curl(url, body, withKey) {
  const authorization = withKey ? ` \\
  -H "Authorization: Bearer $API_KEY"` : "";
  return `curl -s ${shell(url)}${authorization} \\
  -H 'Content-Type: application/json' \\
  -d ${shell(spaced(body))}`;
}

/** Quote a text for a shell. Single quotes protect all characters except a single quote. */
const shell = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

function python(url, body, withKey, loop) {
  const headers = withKey ? 'headers = {"Authorization": "Bearer " + os.environ["API_KEY"]}\n' : "";
  return `${withKey ? "import os\n\n" : ""}import httpx

url = ${JSON.stringify(url)}
${headers}body = ${block(body, "    ")}
response = httpx.post(url, json=body${withKey ? ", headers=headers" : ""}, timeout=60)
response.raise_for_status()
${loop}`;
}

function javascript(url, body, withKey, loop) {
  const authorization = withKey ? "Authorization: `Bearer ${key}`, " : "";
  return `const url = ${JSON.stringify(url)};
${withKey ? 'const key = prompt("API key");\n' : ""}const body = ${block(body, "  ")};
const response = await fetch(url, {
  method: "POST",
  headers: { ${authorization}"Content-Type": "application/json" },
  body: JSON.stringify(body),
});
const answer = await response.json();
if (!response.ok) throw new Error(answer.error);
${loop}`;
}

/** Return loops over one list of fills, or over a list for each mask. */
function loopsOverFills({ body: { parameters }, masks }) {
  const isJoint = parameters.strategy === "joint";
  const figure = parameters.targets ? "target_score" : "score";
  const text = isJoint ? "token_strs" : "token_str";
  if (masks === 1 || isJoint) return loopOver({ item: "fill", figure, texts: [text] });
  return {
    python: `for number, fills in enumerate(response.json(), 1):
    for fill in fills:
        print(number, f"{fill['${figure}']:.4f}", fill["${text}"])`,
    javascript: `for (const [index, fills] of answer.entries()) {
  for (const fill of fills) {
    console.log(index + 1, fill.${figure}.toFixed(4), fill.${text});
  }
}`,
  };
}

/** Return JSON on one line, with spaces after colons and commas. In JSON, a text has no line breaks. */
const spaced = (value) =>
  JSON.stringify(value, null, 1)
    .replace(/(?<=[{[])\n */g, "")
    .replace(/\n *(?=[}\]])/g, "")
    .replace(/\n */g, " ");

/** Return an object with one line per field, valid in Python and JavaScript. */
function block(object, indent) {
  const fields = Object.entries(object).map(
    ([key, one]) => `${indent}${JSON.stringify(key)}: ${spaced(one)},\n`,
  );
  return `{\n${fields.join("")}}`;
}
