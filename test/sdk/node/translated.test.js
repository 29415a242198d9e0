// Official clients of one dialect against backends of the other: "gpt" has an OpenAI
// backend alone, "claude" an Anthropic one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { generateText, jsonSchema, streamText, tool } from "ai";
import OpenAI from "openai";
import { entries, key, question, smallKey, tools, url } from "./gateway.js";

const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
const ask = (content) => [{ role: "user", content }];
const openaiTools = tools.map((t) => ({ type: "function", function: { name: t.name, description: t.description, parameters: t.schema } }));
const anthropicTools = tools.map((t) => ({ name: t.name, description: t.description, input_schema: t.schema }));
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const schema = { type: "object", properties: { city: { type: "string" }, sunny: { type: "boolean" } }, required: ["city", "sunny"], additionalProperties: false };

async function translated(response, into) {
  const explained = await entries(response.headers.get("sluice-request-id"));
  assert.equal(explained.steps[0].translated, into);
  return explained;
}

test("openai: plain, with instructions, bound and stop", async () => {
  const { data, response } = await openai.chat.completions
    .create({ model: "claude", messages: [{ role: "system", content: "Be brief." }, ...ask(question)], max_completion_tokens: 200, temperature: 0.5, stop: ["END"], user: "u1" })
    .withResponse();
  assert.ok(data.choices[0].message.content.length > 0);
  assert.equal(data.object, "chat.completion");
  assert.equal(data.choices[0].finish_reason, "stop");
  assert.equal(data.usage.completion_tokens, 60);
  assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + 60);
  const explained = await translated(response, "anthropic");
  assert.equal(explained.user, "u1");
});

test("openai: streamed, the same text and usage only where asked for", async () => {
  const texts = [];
  for (const stream_options of [undefined, { include_usage: true }]) {
    const stream = await openai.chat.completions.create({ model: "claude", messages: ask(question), stream: true, stream_options });
    let text = "", usage = null, finish = null;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? "";
      finish = chunk.choices[0]?.finish_reason ?? finish;
      usage = chunk.usage ?? usage;
      if (!stream_options) assert.equal("usage" in chunk, false, "usage reached a client that did not ask for it");
    }
    assert.equal(finish, "stop");
    assert.equal(usage?.completion_tokens, stream_options ? 60 : undefined);
    texts.push(text);
  }
  assert.equal(texts[0], texts[1]);
});

test("openai: two parallel tool calls, plain and streamed, and their results", async () => {
  const request = { model: "claude", messages: ask("weather and time in Basel?"), tools: openaiTools };
  const plain = (await openai.chat.completions.create(request)).choices[0];
  const streamed = (await openai.chat.completions.stream(request).finalChatCompletion()).choices[0];
  for (const choice of [plain, streamed]) {
    assert.equal(choice.finish_reason, "tool_calls");
    assert.equal(choice.message.tool_calls.length, 2);
    for (const c of choice.message.tool_calls) assert.equal(typeof JSON.parse(c.function.arguments).city, "string");
  }
  assert.deepEqual(streamed.message.tool_calls.map((c) => c.function), plain.message.tool_calls.map((c) => c.function));
  const results = plain.message.tool_calls.map((c) => ({ role: "tool", tool_call_id: c.id, content: "sunny" }));
  const next = await openai.chat.completions.create({ ...request, messages: [...request.messages, plain.message, ...results] });
  assert.ok(next.choices[0].message.content.length > 0);
  assert.equal(next.choices[0].finish_reason, "stop");
});

test("openai: an image, structured output", async () => {
  const seen = await openai.chat.completions.create({ model: "claude", messages: ask([{ type: "text", text: "What is this? [[tokens=5]]" }, { type: "image_url", image_url: { url: `data:image/png;base64,${pixel}` } }]) });
  assert.ok(seen.usage.prompt_tokens > 500, `an image took ${seen.usage.prompt_tokens} tokens`);
  const shaped = await openai.chat.completions.create({ model: "claude", messages: ask("Basel?"), response_format: { type: "json_schema", json_schema: { name: "weather", strict: true, schema } } });
  const { city, sunny } = JSON.parse(shaped.choices[0].message.content);
  assert.equal(typeof city, "string");
  assert.equal(typeof sunny, "boolean");
});

test("openai: reasoning comes with what its provider must get back", async () => {
  const request = { model: "claude", messages: ask("Think. [[reasoning=20!tokens=40]]"), max_completion_tokens: 4000 };
  const stream = await openai.chat.completions.create({ ...request, stream: true });
  for await (const _ of stream);
  const { choices } = await openai.chat.completions.create({ ...request, messages: [...request.messages, { role: "assistant", content: "a", reasoning_content: "t", reasoning_details: [{ type: "reasoning.text", text: "t", signature: "c2ln", index: 0 }] }, ...ask("And? [[tokens=5]]")] });
  assert.ok(choices[0].message.content.length > 0);
});

test("openai: what the other dialect has no place for is refused with its path", async () => {
  for (const [param, extra] of [["seed", { seed: 1 }], ["n", { n: 2 }], ["logprobs", { logprobs: true }], ["verbosity", { verbosity: "low" }]]) {
    const err = await openai.chat.completions.create({ model: "claude", messages: ask("x"), ...extra }).catch((e) => e);
    assert.ok(err instanceof OpenAI.BadRequestError, `${param}: ${err}`);
    assert.equal(err.param, param);
    assert.equal(err.code, "untranslatable");
  }
});

test("openai: an error in mid-stream is an error, a 429 is a 429", async () => {
  const stream = await openai.chat.completions.create({ model: "claude-dies", messages: ask(question), stream: true });
  let text = "";
  await assert.rejects(async () => {
    for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
  }, OpenAI.APIError);
  assert.ok(text.length > 0);
  const small = new OpenAI({ baseURL: `${url}/v1`, apiKey: smallKey, maxRetries: 0 });
  const errors = [];
  for (let i = 0; i < 2; i++) await small.chat.completions.create({ model: "claude", messages: ask("[[tokens=2]]") }).catch((e) => errors.push(e));
  assert.ok(errors[0] instanceof OpenAI.RateLimitError);
});

test("anthropic: plain, with instructions, bound and stop", async () => {
  const { data, response } = await anthropic.messages
    .create({ model: "gpt", max_tokens: 200, system: [{ type: "text", text: "Be brief." }, { type: "text", text: "Be kind." }], messages: ask(question), stop_sequences: ["END"], metadata: { user_id: "u1" } })
    .withResponse();
  assert.equal(data.type, "message");
  assert.equal(data.stop_reason, "end_turn");
  assert.equal(data.usage.output_tokens, 60);
  assert.ok(data.content[0].text.length > 0);
  await translated(response, "openai");
});

for (const version of ["2023-06-01", "2026-10-21"]) {
  test(`anthropic: streamed, anthropic-version ${version}`, async () => {
    const stream = anthropic.messages.stream({ model: "gpt", max_tokens: 200, messages: ask(question) }, { headers: { "anthropic-version": version } });
    let text = "";
    stream.on("text", (t) => { text += t; });
    const final = await stream.finalMessage();
    assert.equal(final.stop_reason, "end_turn");
    assert.equal(final.usage.output_tokens, 60);
    assert.ok(final.usage.input_tokens > 0, "the figures of the input come at the end");
    assert.equal(final.content[0].text, text);
  });
}

test("anthropic: two parallel tool calls, plain and streamed, and their results", async () => {
  const request = { model: "gpt", max_tokens: 200, messages: ask("weather and time in Basel?"), tools: anthropicTools };
  const plain = await anthropic.messages.create(request);
  const streamed = await anthropic.messages.stream(request).finalMessage();
  const uses = (m) => m.content.filter((c) => c.type === "tool_use");
  for (const m of [plain, streamed]) {
    assert.equal(m.stop_reason, "tool_use");
    assert.equal(uses(m).length, 2);
    for (const u of uses(m)) assert.equal(typeof u.input.city, "string");
  }
  assert.deepEqual(uses(streamed).map((u) => [u.name, u.input]), uses(plain).map((u) => [u.name, u.input]));
  const results = uses(plain).map((u) => ({ type: "tool_result", tool_use_id: u.id, content: "sunny" }));
  const next = await anthropic.messages.create({ ...request, messages: [...request.messages, { role: "assistant", content: plain.content }, { role: "user", content: results }] });
  assert.equal(next.stop_reason, "end_turn");
  assert.ok(next.content[0].text.length > 0);
});

test("anthropic: an image, structured output, a count", async () => {
  const seen = await anthropic.messages.create({ model: "gpt", max_tokens: 50, messages: ask([{ type: "text", text: "What is this? [[tokens=5]]" }, { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } }]) });
  assert.ok(seen.usage.input_tokens > 500, `an image took ${seen.usage.input_tokens} tokens`);
  const shaped = await anthropic.messages.create({ model: "gpt", max_tokens: 200, messages: ask("Basel?"), output_config: { format: { type: "json_schema", schema } } });
  const { city, sunny } = JSON.parse(shaped.content[0].text);
  assert.equal(typeof city, "string");
  assert.equal(typeof sunny, "boolean");
  const { input_tokens } = await anthropic.messages.countTokens({ model: "gpt", messages: ask(question) });
  assert.ok(input_tokens > 5 && input_tokens < 100, `${input_tokens}`);
});

test("anthropic: what the other dialect has no place for is refused with its path", async () => {
  const err = await anthropic.messages.create({ model: "gpt", max_tokens: 5, messages: ask([{ type: "text", text: "x", cache_control: { type: "ephemeral" } }]) }).catch((e) => e);
  assert.ok(err instanceof Anthropic.BadRequestError, `${err}`);
  assert.match(err.error.error.message, /^messages\[0\]\.content\[0\]\.cache_control .*translation set to warn/);
});

test("anthropic: an error in mid-stream is an error, a 429 is a 429", async () => {
  const stream = await anthropic.messages.create({ model: "gpt-dies", max_tokens: 200, messages: ask(question), stream: true });
  let text = "";
  await assert.rejects(async () => {
    for await (const e of stream) text += e.delta?.text ?? "";
  }, Anthropic.APIError);
  assert.ok(text.length > 0);
  const small = new Anthropic({ baseURL: url, apiKey: smallKey, maxRetries: 0 });
  const errors = [];
  for (let i = 0; i < 2; i++) await small.messages.create({ model: "gpt", max_tokens: 5, messages: ask("[[tokens=2]]") }).catch((e) => errors.push(e));
  assert.ok(errors.at(-1) instanceof Anthropic.RateLimitError);
});

test("the AI SDK, the strictest reader of streams, in both directions", async () => {
  const models = [
    createOpenAICompatible({ name: "sluice", baseURL: `${url}/v1`, apiKey: key, includeUsage: true })("claude"),
    createAnthropic({ baseURL: `${url}/v1`, apiKey: key })("gpt"),
  ];
  for (const model of models) {
    const plain = await generateText({ model, prompt: question, maxOutputTokens: 200, maxRetries: 0 });
    const streamed = streamText({ model, prompt: question, maxOutputTokens: 200, maxRetries: 0 });
    let text = "";
    for await (const t of streamed.textStream) text += t;
    assert.equal(text, plain.text);
    assert.equal((await streamed.usage).outputTokens, 60);
    const called = streamText({ model, prompt: "weather and time in Basel?", maxOutputTokens: 200, maxRetries: 0, tools: Object.fromEntries(tools.map((t) => [t.name, tool({ description: t.description, inputSchema: jsonSchema(t.schema) })])) });
    assert.equal((await called.toolCalls).length, 2);
    for (const c of await called.toolCalls) assert.equal(typeof c.input.city, "string");
  }
});

test("openai: several answers, whole and streamed, of a Gemini backend", async () => {
  const request = { model: "gemini", messages: ask("[[tokens=9]]"), n: 3 };
  const { data, response } = await openai.chat.completions.create(request).withResponse();
  await translated(response, "gemini");
  assert.deepEqual(data.choices.map((c) => [c.index, c.message.role, c.finish_reason]), [0, 1, 2].map((i) => [i, "assistant", "stop"]));
  assert.equal(data.usage.completion_tokens, 27);
  const streamed = await openai.chat.completions.stream({ ...request, stream_options: { include_usage: true } }).finalChatCompletion();
  assert.deepEqual(streamed.choices.map((c) => c.message.content), data.choices.map((c) => c.message.content));
  assert.deepEqual(streamed.choices.map((c) => c.finish_reason), ["stop", "stop", "stop"]);
  assert.equal(streamed.usage.completion_tokens, 27);
  for (const n of [9, 2]) { // more than the dialect gives; of a dialect that gives one
    await assert.rejects(openai.chat.completions.create({ ...request, n, model: n > 8 ? "gemini" : "claude" }), (e) => e instanceof OpenAI.BadRequestError && e.param === "n");
  }
});

test("openai: sound goes to a Gemini backend, and to no Anthropic one", async () => {
  const messages = [{ role: "user", content: [{ type: "text", text: question }, { type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } }] }];
  const { data, response } = await openai.chat.completions.create({ model: "gemini", messages }).withResponse();
  assert.ok(data.choices[0].message.content.length > 0);
  await translated(response, "gemini");
  await assert.rejects(openai.chat.completions.create({ model: "claude", messages }), OpenAI.BadRequestError);
});
