// Reranks with LangChain's and Vercel's clients and prints a JSON list with what each call found.
// Usage: node rerank.js, with a JSON list of {client, url, model, query, texts, own} as standard input.
import { readFileSync } from "node:fs";

import { createCohere } from "@ai-sdk/cohere";
import { CohereRerank } from "@langchain/cohere";
import { Document } from "@langchain/core/documents";
import { rerank } from "ai";
import { CohereClient } from "cohere-ai";

const clients = {
  async langchain({ url, model, query, texts, own }) {
    const client = new CohereClient({ token: "none", environment: url });
    const documents = texts.map((pageContent, index) => new Document({ pageContent, metadata: { index } }));
    const found = await new CohereRerank({ client, model, ...own }).compressDocuments(documents, query);
    return found.map(({ metadata }) => [metadata.index, metadata.relevanceScore]);
  },
  async vercel({ url, model, query, texts, own }) {
    const cohere = createCohere({ baseURL: `${url}/v2`, apiKey: "none" });
    const found = await rerank({ model: cohere.reranking(model), query, documents: texts, ...own });
    return found.ranking.map(({ originalIndex, score }) => [originalIndex, score]);
  },
};

const found = [];
for (const call of JSON.parse(readFileSync(0, "utf8"))) {
  found.push(await clients[call.client](call).catch((error) => `${error.name}: ${error.message}`));
}
console.log(JSON.stringify(found));
