// The Vercel AI SDK with its OpenAI-compatible and Anthropic providers: the
// strictest stream reader of them all.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, streamText, tool } from "ai";
import { key, longQuestion, question, smallKey, tools, url } from "./gateway.js";

const providers = {
  "openai-compatible": (apiKey) => createOpenAICompatible({ name: "sluice", baseURL: `${url}/v1`, apiKey, includeUsage: true }),
  anthropic: (apiKey) => createAnthropic({ baseURL: `${url}/v1`, apiKey }),
};
const aiTools = Object.fromEntries(tools.map((t) => [t.name, tool({ description: t.description, inputSchema: jsonSchema(t.schema) })]));

for (const [name, provider] of Object.entries(providers)) {
  const model = (id) => provider(key)(id);

  test(`${name}: plain`, async () => {
    const { text, usage } = await generateText({ model: model("sim-small"), prompt: question, maxOutputTokens: 200 });
    assert.ok(text.length > 0);
    assert.equal(usage.outputTokens, 60);
  });

  test(`${name}: streamed`, async () => {
    const errors = [];
    const result = streamText({ model: model("sim-small"), prompt: question, maxOutputTokens: 200, onError: (e) => errors.push(e) });
    let text = "";
    for await (const part of result.textStream) text += part;
    assert.deepEqual(errors, []);
    assert.ok(text.length > 0);
    assert.equal((await result.usage).outputTokens, 60);
  });

  test(`${name}: two parallel tool calls, streamed`, async () => {
    const result = streamText({ model: model("sim-small"), prompt: "weather and time in Basel?", tools: aiTools, maxOutputTokens: 200 });
    for await (const _ of result.fullStream);
    assert.equal((await result.toolCalls).length, 2);
  });

  test(`${name}: cancel in mid-stream`, async () => {
    const abort = new AbortController();
    const result = streamText({ model: model("sim-small"), prompt: longQuestion, maxOutputTokens: 3000, abortSignal: abort.signal, onError: () => {} });
    let parts = 0;
    for await (const part of result.fullStream) {
      if (part.type === "text-delta" && ++parts === 5) abort.abort();
    }
    assert.ok(parts >= 5);
  });

  test(`${name}: 429`, async () => {
    const call = () => generateText({ model: provider(smallKey)("sim-small"), prompt: "[[tokens=2]]", maxRetries: 0, maxOutputTokens: 5 });
    const errors = [];
    for (let i = 0; i < 2; i++) await call().catch((e) => errors.push(e));
    assert.ok(errors.length >= 1);
    assert.equal(errors[0].statusCode, 429);
  });

  test(`${name}: upstream death in mid-stream is an error`, async () => {
    const errors = [];
    const result = streamText({ model: model("dies"), prompt: question, maxOutputTokens: 200, maxRetries: 0, onError: (e) => errors.push(e) });
    try {
      for await (const part of result.fullStream) if (part.type === "error") errors.push(part.error);
    } catch (e) {
      errors.push(e);
    }
    assert.ok(errors.length > 0);
  });
}
