// Sends requests to a service with Hugging Face's own client and prints the responses as JSON.
// Usage: node fill_mask.js ENDPOINT CALLS, where CALLS is a JSON list of arguments of fillMask.
import { fillMask } from "@huggingface/inference";

const [endpointUrl, calls] = process.argv.slice(2);
const answers = [];
for (const call of JSON.parse(calls)) {
  try {
    answers.push(await fillMask({ endpointUrl, ...call }));
  } catch (error) {
    answers.push({ status: error.httpResponse?.status, message: error.message, body: error.httpResponse?.body });
  }
}
console.log(JSON.stringify(answers));
