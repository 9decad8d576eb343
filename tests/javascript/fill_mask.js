// Sends requests to a service with Hugging Face's own client and prints a JSON list with the responses of
// each endpoint. Usage: node fill_mask.js CALLS ENDPOINT..., where CALLS is a JSON list of arguments of fillMask.
import { fillMask } from "@huggingface/inference";

const [calls, ...endpoints] = process.argv.slice(2);

async function answer(endpointUrl, call) {
  try {
    return await fillMask({ endpointUrl, ...call });
  } catch (error) {
    return { status: error.httpResponse?.status, message: error.message, body: error.httpResponse?.body };
  }
}

const answers = [];
for (const endpointUrl of endpoints) {
  const own = [];
  for (const call of JSON.parse(calls)) own.push(await answer(endpointUrl, call));
  answers.push(own);
}
console.log(JSON.stringify(answers));
