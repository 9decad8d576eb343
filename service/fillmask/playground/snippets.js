// Requests as code. JSON strings are also valid in Python and JavaScript.

const PYTHON_KEY = 'os.environ["API_KEY"]';

// loops over responses whose texts are not in fields
const LOOPS = {
  rank: {
    python: `for rank in response.json():
    print(f"{rank['score']:.4f}", body["texts"][rank["index"]])`,
    javascript: `for (const { index, score } of answer) {
  console.log(score.toFixed(4), body.texts[index]);
}`,
  },
  words: {
    python: `for token, weight in response.json()[0].items():
    print(f"{weight:.2f}", token)`,
    javascript: `for (const [token, weight] of Object.entries(answer[0])) {
  console.log(weight.toFixed(2), token);
}`,
  },
};

/**
 * Return a request as code for `curl`, `python` and `javascript`, which prints the figures of the
 * page. The code reads the API key at run time and never contains it.
 */
export function snippets(url, request, { withKey }) {
  const answer = shape(request);
  return {
    curl: curl(url, request.body, withKey),
    python: python(url, request.body, withKey, answer),
    javascript: javascript(url, request.body, withKey, answer),
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

function python(url, body, withKey, { one, figure, digits, text, at, nested, own }) {
  const found = `response.json()${at === undefined ? "" : `[${JSON.stringify(at)}]`}`;
  const print = `print(f"{${one}['${figure}']:.${digits}f}", ${one}["${text}"])`;
  const loop = own
    ? own.python
    : nested
    ? `for number, fills in enumerate(${found}, 1):
    for ${one} in fills:
        ${print.replace("(", "(number, ")}`
    : `for ${one} in ${found}:
    ${print}`;
  const headers = withKey ? `headers = {"Authorization": "Bearer " + ${PYTHON_KEY}}\n` : "";
  return `${withKey ? "import os\n\n" : ""}import httpx

url = ${JSON.stringify(url)}
${headers}body = ${block(body, "    ")}
response = httpx.post(url, json=body${withKey ? ", headers=headers" : ""}, timeout=60)
response.raise_for_status()
${loop}`;
}

function javascript(url, body, withKey, { one, figure, digits, text, at, nested, own }) {
  const found = at === undefined ? "answer" : { tokens: "answer.tokens", 0: "answer[0]" }[at];
  const log = `console.log(${one}.${figure}.toFixed(${digits}), ${one}.${text});`;
  const loop = own
    ? own.javascript
    : nested
    ? `for (const [index, fills] of ${found}.entries()) {
  for (const ${one} of fills) {
    ${log.replace("(", "(index + 1, ")}
  }
}`
    : `for (const ${one} of ${found}) {
  ${log}
}`;
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

/**
 * Return the loops over a response or its element `at`, and the fields to print. Some kinds have
 * loops of their own.
 */
function shape({ body, kind, masks }) {
  if (kind === "labels") {
    return { one: "label", figure: "score", digits: 4, text: "label", at: 0 };
  }
  if (kind in LOOPS) return { own: LOOPS[kind] };
  if (kind === "score") {
    return { one: "token", figure: "surprisal", digits: 1, text: "token_str", at: "tokens" };
  }
  const together = body.parameters.strategy === "joint";
  return {
    one: "fill",
    figure: body.parameters.targets ? "target_score" : "score",
    digits: 4,
    text: together ? "token_strs" : "token_str",
    nested: masks > 1 && !together,
  };
}

/** Return JSON on one line, with spaces after colons and commas. */
function spaced(value) {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const fields = Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${spaced(one)}`);
  return `{${fields.join(", ")}}`;
}

/** Return an object with one line per field, valid in Python and JavaScript. */
function block(object, indent) {
  const fields = Object.entries(object).map(
    ([key, one]) => `${indent}${JSON.stringify(key)}: ${spaced(one)},\n`,
  );
  return `{\n${fields.join("")}}`;
}
