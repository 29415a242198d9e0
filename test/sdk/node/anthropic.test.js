// @anthropic-ai/sdk, unchanged but for base URL and key.
import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { entries, key, longQuestion, question, smallKey, tools, url } from "./gateway.js";

const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
const ask = (content) => [{ role: "user", content }];
const anthropicTools = tools.map((t) => ({ name: t.name, description: t.description, input_schema: t.schema }));

test("models are listed in this dialect", async () => {
  const ids = [];
  for await (const m of client.models.list()) ids.push(m.id);
  assert.ok(ids.includes("sim-small"), `${ids}`);
});

test("plain", async () => {
  const { data, response } = await client.messages.create({ model: "sim-small", max_tokens: 200, messages: ask(question) }).withResponse();
  assert.equal(data.usage.output_tokens, 60);
  assert.ok(data.content[0].text.length > 0);
  await entries(response.headers.get("sluice-request-id"));
});

for (const version of ["2023-06-01", "2026-10-21"]) {
  test(`streamed, anthropic-version ${version}`, async () => {
    const stream = client.messages.stream({ model: "sim-small", max_tokens: 200, messages: ask(question) }, { headers: { "anthropic-version": version } });
    let text = "";
    stream.on("text", (t) => { text += t; });
    const final = await stream.finalMessage();
    assert.equal(final.stop_reason, "end_turn");
    assert.equal(final.usage.output_tokens, 60);
    assert.equal(final.content[0].text, text);
  });
}

test("two parallel tool calls, plain and streamed", async () => {
  const request = { model: "sim-small", max_tokens: 200, messages: ask("weather and time in Basel?"), tools: anthropicTools };
  const uses = (m) => m.content.filter((c) => c.type === "tool_use");
  const plain = await client.messages.create(request);
  assert.equal(uses(plain).length, 2);
  assert.equal(plain.stop_reason, "tool_use");
  const streamed = await client.messages.stream(request).finalMessage();
  assert.deepEqual(uses(streamed).map((u) => [u.name, typeof u.input]), uses(plain).map((u) => [u.name, typeof u.input]));
});

test("count_tokens", async () => {
  const { input_tokens } = await client.messages.countTokens({ model: "sim-small", messages: ask(question) });
  assert.ok(input_tokens > 5 && input_tokens < 100, `${input_tokens}`);
});

test("cancel in mid-stream is accounted as cancelled", async () => {
  const { data: stream, response } = await client.messages.create({ model: "sim-small", max_tokens: 3000, messages: ask(longQuestion), stream: true }).withResponse();
  let events = 0;
  for await (const event of stream) {
    if (event.type === "content_block_delta" && ++events === 5) stream.controller.abort();
  }
  assert.match(JSON.stringify(await entries(response.headers.get("sluice-request-id"))), /"cancelled"/);
});

test("429", async () => {
  const small = new Anthropic({ baseURL: url, apiKey: smallKey, maxRetries: 0 });
  const errors = [];
  for (let i = 0; i < 2; i++) {
    await small.messages.create({ model: "sim-small", max_tokens: 5, messages: ask("[[tokens=2]]") }).catch((e) => errors.push(e));
  }
  assert.ok(errors.length >= 1);
  assert.ok(errors[0] instanceof Anthropic.RateLimitError);
  assert.equal(errors[0].error.error.type, "rate_limit_error");
});

test("upstream death in mid-stream is an error, not an end", async () => {
  const stream = await client.messages.create({ model: "dies", max_tokens: 200, messages: ask(question), stream: true });
  await assert.rejects(async () => {
    for await (const _ of stream);
  });
});

test("errors are typed", async () => {
  const bad = new Anthropic({ baseURL: url, apiKey: "sk-wrong", maxRetries: 0 });
  await assert.rejects(bad.messages.create({ model: "sim-small", max_tokens: 5, messages: ask("x") }), Anthropic.AuthenticationError);
  await assert.rejects(client.messages.create({ model: "no-such", max_tokens: 5, messages: ask("x") }), Anthropic.NotFoundError);
});
