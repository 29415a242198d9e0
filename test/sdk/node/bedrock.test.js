// Official clients of OpenAI chat and Anthropic against a Bedrock backend, which streams
// in binary frames and ends with an exception where it fails. Those of Gemini and of
// Responses run on it in their own files.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { ApiError, GoogleGenAI } from "@google/genai";
import { jsonSchema, streamText, tool } from "ai";
import OpenAI from "openai";
import { entries, key, question, smallKey, tools, url } from "./gateway.js";

const model = "bedrock";
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
const ask = (content) => [{ role: "user", content }];
const openaiTools = tools.map((t) => ({ type: "function", function: { name: t.name, description: t.description, parameters: t.schema } }));
const anthropicTools = tools.map((t) => ({ name: t.name, description: t.description, input_schema: t.schema }));
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const schema = { type: "object", properties: { city: { type: "string" }, sunny: { type: "boolean" } }, required: ["city", "sunny"], additionalProperties: false };

async function translated(response) {
  const explained = await entries(response.headers.get("sluice-request-id"));
  assert.equal(explained.steps[0].translated, "bedrock");
  return explained;
}

test("openai on bedrock: plain, with instructions, bound and stop", async () => {
  const { data, response } = await openai.chat.completions
    .create({ model, messages: [{ role: "system", content: "Be brief." }, ...ask(question)], max_completion_tokens: 200, temperature: 0.5, stop: ["END"], user: "u1" })
    .withResponse();
  assert.ok(data.choices[0].message.content.length > 0);
  assert.equal(data.choices[0].finish_reason, "stop");
  assert.equal(data.usage.completion_tokens, 60);
  assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + 60);
  await translated(response);
  const cut = await openai.chat.completions.create({ model, messages: ask(question), max_completion_tokens: 7 });
  assert.equal(cut.choices[0].finish_reason, "length");
});

test("openai on bedrock: streamed, the same text and usage only where asked for", async () => {
  const texts = [];
  for (const stream_options of [undefined, { include_usage: true }]) {
    const stream = await openai.chat.completions.create({ model, messages: ask(question), stream: true, stream_options });
    let text = "", usage = null, finish = null;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? "";
      finish = chunk.choices[0]?.finish_reason ?? finish;
      usage = chunk.usage ?? usage;
    }
    assert.equal(finish, "stop");
    assert.equal(usage?.completion_tokens, stream_options ? 60 : undefined);
    texts.push(text);
  }
  assert.ok(texts[0].length > 0);
  assert.equal(texts[0], texts[1]);
});

test("openai on bedrock: two parallel tool calls, plain and streamed, and their results", async () => {
  const request = { model, messages: ask("weather and time in Basel?"), tools: openaiTools };
  const plain = (await openai.chat.completions.create(request)).choices[0];
  const streamed = (await openai.chat.completions.stream(request).finalChatCompletion()).choices[0];
  for (const choice of [plain, streamed]) {
    assert.equal(choice.finish_reason, "tool_calls");
    assert.equal(choice.message.tool_calls.length, 2);
    for (const c of choice.message.tool_calls) assert.equal(typeof JSON.parse(c.function.arguments).city, "string");
    const results = choice.message.tool_calls.map((c) => ({ role: "tool", tool_call_id: c.id, content: "sunny" }));
    const next = await openai.chat.completions.create({ ...request, messages: [...request.messages, choice.message, ...results] });
    assert.ok(next.choices[0].message.content.length > 0);
    assert.equal(next.choices[0].finish_reason, "stop");
  }
  const parsed = (choice) => choice.message.tool_calls.map((c) => [c.function.name, JSON.parse(c.function.arguments)]);
  assert.deepEqual(parsed(streamed), parsed(plain));
});

test("openai on bedrock: an image, structured output", async () => {
  const seen = await openai.chat.completions.create({ model, messages: ask([{ type: "text", text: "What is this? [[tokens=5]]" }, { type: "image_url", image_url: { url: `data:image/png;base64,${pixel}` } }]) });
  assert.ok(seen.usage.prompt_tokens > 500, `an image took ${seen.usage.prompt_tokens} tokens`);
  const request = { model, messages: ask("Basel?"), response_format: { type: "json_schema", json_schema: { name: "weather", strict: true, schema } } };
  const shaped = [(await openai.chat.completions.create(request)).choices[0], (await openai.chat.completions.stream(request).finalChatCompletion()).choices[0]];
  for (const { message } of shaped) {
    const { city, sunny } = JSON.parse(message.content);
    assert.equal(typeof city, "string");
    assert.equal(typeof sunny, "boolean");
  }
});

test("openai on bedrock: reasoning and its signature come, and go back", async () => {
  const request = { model, messages: ask("Think. [[reasoning=20!tokens=40]]"), max_completion_tokens: 4000, reasoning_effort: "high" };
  const { message } = (await openai.chat.completions.create(request)).choices[0];
  assert.ok(message.content.length > 0);
  const next = await openai.chat.completions.create({ ...request, messages: [...request.messages, { role: "assistant", content: "a", reasoning_content: "t", reasoning_details: [{ type: "reasoning.text", text: "t", signature: "c2ln", index: 0 }] }, ...ask("And? [[tokens=5]]")] });
  assert.ok(next.choices[0].message.content.length > 0);
});

test("openai on bedrock: what it has no place for is refused with its path", async () => {
  const image = ask([{ type: "image_url", image_url: { url: "https://example.com/a.png" } }]);
  for (const [param, extra] of [["seed", { seed: 1 }], ["n", { n: 2 }], ["parallel_tool_calls", { tools: openaiTools, parallel_tool_calls: false }], ["messages[0].content[0]", { messages: image }]]) {
    const err = await openai.chat.completions.create({ model, messages: ask("x"), ...extra }).catch((e) => e);
    assert.ok(err instanceof OpenAI.BadRequestError, `${param}: ${err}`);
    assert.ok(err.param.startsWith(param), `${err.param}, not ${param}`);
    assert.equal(err.code, "untranslatable");
  }
});

test("openai on bedrock: an error in mid-stream is an error, a 429 is a 429", async () => {
  const stream = await openai.chat.completions.create({ model: "bedrock-dies", messages: ask(question), stream: true });
  let text = "";
  await assert.rejects(async () => {
    for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
  }, OpenAI.APIError);
  assert.ok(text.length > 0);
  const small = new OpenAI({ baseURL: `${url}/v1`, apiKey: smallKey, maxRetries: 0 });
  const errors = [];
  for (let i = 0; i < 2; i++) await small.chat.completions.create({ model, messages: ask("[[tokens=2]]") }).catch((e) => errors.push(e));
  assert.ok(errors.at(-1) instanceof OpenAI.RateLimitError);
});

test("anthropic on bedrock: plain, with instructions, bound and stop", async () => {
  const { data, response } = await anthropic.messages
    .create({ model, max_tokens: 200, system: [{ type: "text", text: "Be brief." }, { type: "text", text: "Be kind." }], messages: ask(question), stop_sequences: ["END"], metadata: { user_id: "u1" } })
    .withResponse();
  assert.equal(data.type, "message");
  assert.equal(data.stop_reason, "end_turn");
  assert.equal(data.usage.output_tokens, 60);
  assert.ok(data.content[0].text.length > 0);
  await translated(response);
});

test("anthropic on bedrock: streamed", async () => {
  const stream = anthropic.messages.stream({ model, max_tokens: 200, messages: ask(question) });
  let text = "";
  stream.on("text", (t) => { text += t; });
  const final = await stream.finalMessage();
  assert.equal(final.stop_reason, "end_turn");
  assert.equal(final.usage.output_tokens, 60);
  assert.ok(final.usage.input_tokens > 0, "the figures of the input come at the end");
  assert.equal(final.content[0].text, text);
});

test("anthropic on bedrock: two parallel tool calls, plain and streamed, and their results", async () => {
  const request = { model, max_tokens: 200, messages: ask("weather and time in Basel?"), tools: anthropicTools };
  const plain = await anthropic.messages.create(request);
  const streamed = await anthropic.messages.stream(request).finalMessage();
  const uses = (m) => m.content.filter((c) => c.type === "tool_use");
  for (const m of [plain, streamed]) {
    assert.equal(m.stop_reason, "tool_use");
    assert.equal(uses(m).length, 2);
    for (const u of uses(m)) assert.equal(typeof u.input.city, "string");
    const results = uses(m).map((u) => ({ type: "tool_result", tool_use_id: u.id, content: "sunny" }));
    const next = await anthropic.messages.create({ ...request, messages: [...request.messages, { role: "assistant", content: m.content }, { role: "user", content: results }] });
    assert.equal(next.stop_reason, "end_turn");
    assert.ok(next.content[0].text.length > 0);
  }
  assert.deepEqual(uses(streamed).map((u) => [u.name, u.input]), uses(plain).map((u) => [u.name, u.input]));
});

test("anthropic on bedrock: thinking, streamed and plain, signed and sent back", async () => {
  const request = { model, max_tokens: 4000, thinking: { type: "enabled", budget_tokens: 1024 }, messages: ask("Think. [[reasoning=20!tokens=40]]") };
  for (const m of [await anthropic.messages.create(request), await anthropic.messages.stream(request).finalMessage()]) {
    assert.equal(m.content[0].type, "thinking");
    assert.ok(m.content[0].thinking.length > 0 && m.content[0].signature.length > 0);
    const next = await anthropic.messages.create({ ...request, messages: [...request.messages, { role: "assistant", content: m.content }, ...ask("And? [[tokens=5]]")] });
    assert.equal(next.stop_reason, "end_turn");
  }
});

test("anthropic on bedrock: an image, structured output, a count", async () => {
  const seen = await anthropic.messages.create({ model, max_tokens: 50, messages: ask([{ type: "text", text: "What is this? [[tokens=5]]" }, { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } }]) });
  assert.ok(seen.usage.input_tokens > 500, `an image took ${seen.usage.input_tokens} tokens`);
  const shaped = await anthropic.messages.create({ model, max_tokens: 200, messages: ask("Basel?"), output_config: { format: { type: "json_schema", schema } } });
  const { city, sunny } = JSON.parse(shaped.content[0].text);
  assert.equal(typeof city, "string");
  assert.equal(typeof sunny, "boolean");
  const { input_tokens } = await anthropic.messages.countTokens({ model, messages: ask(question) });
  assert.ok(input_tokens > 5 && input_tokens < 100, `${input_tokens}`);
});

test("anthropic on bedrock: a cache mark is carried", async () => {
  const answer = await anthropic.messages.create({ model, max_tokens: 5, messages: ask([{ type: "text", text: "x", cache_control: { type: "ephemeral" } }]) });
  assert.equal(answer.content[0].type, "text");
});

test("anthropic on bedrock: what it has no place for is refused with its path", async () => {
  const base = { model, max_tokens: 5, messages: ask("x") };
  for (const [path, extra] of [
    ["tool_choice.disable_parallel_tool_use", { tools: anthropicTools, tool_choice: { type: "auto", disable_parallel_tool_use: true } }],
  ]) {
    const err = await anthropic.messages.create({ ...base, ...extra }).catch((e) => e);
    assert.ok(err instanceof Anthropic.BadRequestError, `${path}: ${err}`);
    assert.ok(err.error.error.message.startsWith(path), err.error.error.message);
  }
});

test("anthropic on bedrock: an error in mid-stream is an error, a 429 is a 429", async () => {
  const stream = await anthropic.messages.create({ model: "bedrock-dies", max_tokens: 200, messages: ask(question), stream: true });
  let text = "";
  await assert.rejects(async () => {
    for await (const e of stream) text += e.delta?.text ?? "";
  }, Anthropic.APIError);
  assert.ok(text.length > 0);
  const small = new Anthropic({ baseURL: url, apiKey: smallKey, maxRetries: 0 });
  const errors = [];
  for (let i = 0; i < 2; i++) await small.messages.create({ model, max_tokens: 5, messages: ask("[[tokens=2]]") }).catch((e) => errors.push(e));
  assert.ok(errors.at(-1) instanceof Anthropic.RateLimitError);
});

test("every client is told that the provider has no room", async () => {
  const genai = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } });
  const limited = "bedrock-limited";
  const wait = { headers: { "sluice-max-wait": "0s" } };
  const told = [
    await openai.chat.completions.create({ model: limited, messages: ask("x") }, wait).catch((e) => e),
    await anthropic.messages.create({ model: limited, max_tokens: 5, messages: ask("x") }, wait).catch((e) => e),
    await genai.models.generateContent({ model: limited, contents: "x", config: { httpOptions: wait } }).catch((e) => e),
  ];
  assert.ok(told[0] instanceof OpenAI.APIError && told[1] instanceof Anthropic.APIError && told[2] instanceof ApiError, told.join());
  for (const e of told) assert.ok([429, 503, 529].includes(e.status), `${e.status} ${e}`);
});

test("the AI SDK, the strictest reader of streams, on bedrock", async () => {
  const models = [
    createOpenAICompatible({ name: "sluice", baseURL: `${url}/v1`, apiKey: key, includeUsage: true })(model),
    createAnthropic({ baseURL: `${url}/v1`, apiKey: key })(model),
  ];
  for (const m of models) {
    const streamed = streamText({ model: m, prompt: question, maxOutputTokens: 200, maxRetries: 0 });
    assert.ok((await streamed.text).length > 0);
    assert.equal((await streamed.usage).outputTokens, 60);
    const called = streamText({ model: m, prompt: "weather and time in Basel?", maxOutputTokens: 200, maxRetries: 0, tools: Object.fromEntries(tools.map((t) => [t.name, tool({ description: t.description, inputSchema: jsonSchema(t.schema) })])) });
    assert.equal((await called.toolCalls).length, 2);
  }
});
