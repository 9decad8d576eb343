// A call as code. A string of JSON is a string of Python and of JavaScript as well.

/** The call as `curl`, `python` and `javascript`, each printing the figures that the page shows. */
export function snippets(url, request) {
  const answer = shape(request);
  return {
    curl: curl(url, request.body),
    python: isPlain(request) ? pythonClient(url, request.body) : python(url, request.body, answer),
    javascript: javascript(url, request.body, answer),
  };
}

function curl(url, body) {
  return `curl -s ${shell(url)} \\
  -H 'Content-Type: application/json' \\
  -d ${shell(spaced(body))}`;
}

/** Between single quotes a shell leaves everything as it is, but for the quote itself. */
const shell = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** What huggingface_hub's client can ask and read: one mask, and how many fills. */
function isPlain({ body, masks }) {
  return masks === 1 && Object.keys(body.parameters).join() === "top_k";
}

function pythonClient(url, { inputs, parameters }) {
  return `from huggingface_hub import InferenceClient

client = InferenceClient(model=${JSON.stringify(url)})
for fill in client.fill_mask(${JSON.stringify(inputs)}, top_k=${parameters.top_k}):
    print(f"{fill.score:.4f}", fill.token_str)`;
}

function python(url, body, { one, figure, digits, text, tokens, nested }) {
  const found = `response.json()${tokens ? '["tokens"]' : ""}`;
  const print = `print(f"{${one}['${figure}']:.${digits}f}", ${one}["${text}"])`;
  const loop = nested
    ? `for number, fills in enumerate(${found}, 1):
    for ${one} in fills:
        ${print.replace("(", "(number, ")}`
    : `for ${one} in ${found}:
    ${print}`;
  return `import httpx

url = ${JSON.stringify(url)}
body = ${block(body, "    ")}
response = httpx.post(url, json=body, timeout=60)
response.raise_for_status()
${loop}`;
}

function javascript(url, body, { one, figure, digits, text, tokens, nested }) {
  const found = tokens ? "answer.tokens" : "answer";
  const log = `console.log(${one}.${figure}.toFixed(${digits}), ${one}.${text});`;
  const loop = nested
    ? `for (const [index, fills] of ${found}.entries()) {
  for (const ${one} of fills) {
    ${log.replace("(", "(index + 1, ")}
  }
}`
    : `for (const ${one} of ${found}) {
  ${log}
}`;
  return `const url = ${JSON.stringify(url)};
const body = ${block(body, "  ")};
const response = await fetch(url, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
});
const answer = await response.json();
if (!response.ok) throw new Error(answer.error);
${loop}`;
}

/** What there is in the answer to loop over, and to print of each. */
function shape({ path, body, masks }) {
  if (path === "score") {
    return { one: "token", figure: "surprisal", digits: 1, text: "token_str", tokens: true };
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

/** JSON on one line, with spaces as people write them. */
function spaced(value) {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const fields = Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${spaced(one)}`);
  return `{${fields.join(", ")}}`;
}

/** An object with a line for each field, as Python and JavaScript write it. */
function block(object, indent) {
  const fields = Object.entries(object).map(
    ([key, one]) => `${indent}${JSON.stringify(key)}: ${spaced(one)},\n`,
  );
  return `{\n${fields.join("")}}`;
}
