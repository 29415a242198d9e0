// openai-node, unchanged but for base URL and key.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { entries, key, longQuestion, poorKey, question, smallKey, tools, url } from "./gateway.js";

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const ask = (content) => [{ role: "user", content }];
const openaiTools = tools.map((t) => ({ type: "function", function: { name: t.name, description: t.description, parameters: t.schema } }));

test("models are listed", async () => {
  const ids = [];
  for await (const m of client.models.list()) ids.push(m.id);
  assert.ok(ids.includes("sim-small"), `${ids}`);
  assert.equal((await client.models.retrieve("sim-small")).id, "sim-small");
});

test("plain", async () => {
  const { data, response } = await client.chat.completions.create({ model: "sim-small", messages: ask(question) }).withResponse();
  assert.ok(data.choices[0].message.content.length > 0);
  assert.equal(data.usage.completion_tokens, 60);
  const id = response.headers.get("sluice-request-id");
  assert.match(id, /^req_/);
  const explained = await entries(id);
  assert.equal(JSON.stringify(explained).includes("reported"), true);
});

test("streamed, with and without usage: the same text, usage only where asked for", async () => {
  const texts = [];
  for (const stream_options of [undefined, { include_usage: true }]) {
    const stream = await client.chat.completions.create({ model: "sim-small", messages: ask(question), stream: true, stream_options });
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

test("two parallel tool calls, plain and streamed", async () => {
  const request = { model: "sim-small", messages: ask("weather and time in Basel?"), tools: openaiTools };
  const plain = await client.chat.completions.create(request);
  const calls = plain.choices[0].message.tool_calls;
  assert.equal(calls.length, 2);
  assert.equal(plain.choices[0].finish_reason, "tool_calls");
  for (const c of calls) assert.equal(typeof JSON.parse(c.function.arguments), "object");

  const runner = client.chat.completions.stream(request);
  const final = await runner.finalChatCompletion();
  assert.deepEqual(final.choices[0].message.tool_calls.map((c) => c.function.name), calls.map((c) => c.function.name));
  for (const c of final.choices[0].message.tool_calls) assert.equal(typeof JSON.parse(c.function.arguments), "object");
});

test("cancel in mid-stream is accounted as cancelled", async () => {
  const { data: stream, response } = await client.chat.completions.create({ model: "sim-small", messages: ask(longQuestion), stream: true }).withResponse();
  let chunks = 0;
  for await (const chunk of stream) {
    if (chunk.choices[0]?.delta?.content && ++chunks === 5) stream.controller.abort();
  }
  const explained = JSON.stringify(await entries(response.headers.get("sluice-request-id")));
  assert.match(explained, /"cancelled"/);
  assert.match(explained, /"client_gone"/);
});

test("429 names the limit and when it fits", async () => {
  const small = new OpenAI({ baseURL: `${url}/v1`, apiKey: smallKey, maxRetries: 0 });
  const errors = [];
  for (let i = 0; i < 2; i++) {
    await small.chat.completions.create({ model: "sim-small", messages: ask("[[tokens=2]]") }).catch((e) => errors.push(e));
  }
  assert.ok(errors.length >= 1);
  const [e] = errors;
  assert.ok(e instanceof OpenAI.RateLimitError);
  assert.equal(e.code, "rate_limit_exceeded");
  assert.match(e.message, /requests/);
  assert.ok(Number(e.headers.get("retry-after")) <= 60);
  assert.ok(Number(e.headers.get("retry-after-ms")) > 0);
  assert.equal(e.headers.get("sluice-reason"), "rate_limited");
});

test("a spent budget is not retried", async () => {
  let asked = 0;
  const poor = new OpenAI({ baseURL: `${url}/v1`, apiKey: poorKey, maxRetries: 2, fetch: (...args) => (asked++, fetch(...args)) });
  const spend = () => poor.chat.completions.create({ model: "dear", messages: ask("[[tokens=40]]"), max_tokens: 40 });
  await spend();
  const err = await spend().catch((e) => e);
  assert.ok(err instanceof OpenAI.RateLimitError, `${err}`);
  assert.equal(err.type, "insufficient_quota");
  assert.equal(err.headers.get("x-should-retry"), "false");
  assert.equal(err.headers.get("sluice-reason"), "budget_spent");
  assert.equal(asked, 2, "the client retried");
});

test("upstream death in mid-stream is an error, not an end", async () => {
  const stream = await client.chat.completions.create({ model: "dies", messages: ask(question), stream: true });
  let text = "";
  await assert.rejects(async () => {
    for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
  });
  assert.ok(text.length > 0);
});

test("upstream that ends without its marker is an error, not an end", async () => {
  const stream = await client.chat.completions.create({ model: "truncates", messages: ask(question), stream: true });
  await assert.rejects(async () => {
    for await (const _ of stream);
  });
});

test("completions and embeddings", async () => {
  const completion = await client.completions.create({ model: "sim-small", prompt: question });
  assert.ok(completion.choices[0].text.length > 0);
  const embedding = await client.embeddings.create({ model: "sim-embed", input: ["one", "two"] });
  assert.equal(embedding.data.length, 2);
  assert.ok(embedding.usage.prompt_tokens > 0);
});

test("errors are typed: key, model, body", async () => {
  const bad = new OpenAI({ baseURL: `${url}/v1`, apiKey: "sk-wrong", maxRetries: 0 });
  await assert.rejects(bad.chat.completions.create({ model: "sim-small", messages: ask("x") }), OpenAI.AuthenticationError);
  await assert.rejects(client.chat.completions.create({ model: "no-such", messages: ask("x") }), OpenAI.NotFoundError);
  await assert.rejects(client.chat.completions.create({ model: "sim-small", messages: ask("x"), max_tokens: -1 }), OpenAI.BadRequestError);
});

test("100 ms between events is 100 ms at the client", async () => {
  const stream = await client.chat.completions.create({ model: "paced", messages: ask(question), stream: true });
  const times = [];
  for await (const chunk of stream) if (chunk.choices[0]?.delta?.content) times.push(performance.now());
  assert.ok(times.length > 5);
});
