// Responses that a backend stores, by the official client: fetched, streamed again, listed,
// cancelled and deleted where they are kept, and by nobody else.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { entries, key, poorKey, until, url } from "./gateway.js";

const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const other = new OpenAI({ baseURL: `${url}/v1`, apiKey: poorKey, maxRetries: 0 });
const model = "native";

// collect is all events of a stream.
async function collect(stream) {
  const events = [];
  for await (const event of await stream) events.push(event);
  return events;
}

// ended polls as a client does.
const ended = (id) => until(() => openai.responses.retrieve(id), (r) => !["queued", "in_progress"].includes(r.status), id);

test("a stored response: retrieve, go on from it, delete", async () => {
  const made = await openai.responses.create({ model, input: "[[tokens=7]]", store: true });
  assert.deepEqual(await openai.responses.retrieve(made.id), made);
  const next = await openai.responses.create({ model, input: "[[tokens=3]]", previous_response_id: made.id });
  assert.equal(next.usage.output_tokens, 3);
  await openai.responses.delete(made.id);
  await assert.rejects(openai.responses.retrieve(made.id), OpenAI.NotFoundError);
  await assert.rejects(openai.responses.delete(made.id), OpenAI.NotFoundError);
  await assert.rejects(openai.responses.create({ model, input: "x", previous_response_id: made.id }), OpenAI.NotFoundError);
});

test("items are named by their ids", async () => {
  const made = await openai.responses.create({ model, input: "weather?", tools: [{ type: "function", name: "f", parameters: { type: "object", properties: {} }, strict: false }] });
  const input = [...made.output.map(({ id }) => ({ type: "item_reference", id })), { type: "function_call_output", call_id: made.output.find((o) => o.type === "function_call").call_id, output: "sunny" }];
  const next = await openai.responses.create({ model, input: [{ role: "user", content: "weather?" }, ...input, { role: "user", content: "[[tokens=3]]" }] });
  assert.equal(next.usage.output_tokens, 3);
  await assert.rejects(other.responses.create({ model, input }), OpenAI.NotFoundError);
});

test("what was streamed is streamed again, from any event on", async () => {
  const first = await collect(openai.responses.create({ model, input: "[[tokens=12]]", stream: true }));
  const id = first[0].response.id;
  assert.deepEqual(await collect(openai.responses.retrieve(id, { stream: true })), first);
  const at = first.findIndex((e) => e.type === "response.output_text.delta");
  const rest = await collect(openai.responses.retrieve(id, { stream: true, starting_after: first[at].sequence_number }));
  assert.deepEqual(rest, first.slice(at + 1));
});

test("what it answers to is listed page by page", async () => {
  const said = ["one", "two", "three"];
  const made = await openai.responses.create({ model, input: [...said.map((content) => ({ role: "user", content })), { role: "user", content: "[[tokens=3]]" }] });
  const page = await openai.responses.inputItems.list(made.id, { limit: 3, order: "asc" });
  assert.deepEqual(page.data.map((item) => item.content[0].text), said);
  assert.equal(page.has_more, true);
  const pages = [];
  for await (const p of (await openai.responses.inputItems.list(made.id, { limit: 3, order: "asc" })).iterPages()) pages.push(p.data.length);
  assert.deepEqual(pages, [3, 1]);
  const texts = [];
  for await (const item of openai.responses.inputItems.list(made.id, { limit: 1, order: "desc" })) texts.push(item.content[0].text);
  assert.deepEqual(texts, ["[[tokens=3]]", ...said.toReversed()]);
});

test("a response that is made in the background is polled to its end and billed once", async () => {
  const { data: made, response } = await openai.responses.create({ model, input: "[[tokens=9!first=100ms]]", background: true }).withResponse();
  assert.equal(made.status, "queued");
  const whole = await ended(made.id);
  assert.equal(whole.status, "completed");
  assert.equal(whole.usage.output_tokens, 9);
  assert.ok(whole.output_text.length > 0);
  const explained = await entries(response.headers.get("sluice-request-id"));
  assert.match(JSON.stringify(explained), /"background":\{"result":"ended"/);
});

test("a stream of one is gone on with where it was left", async () => {
  const stream = await openai.responses.create({ model, input: "[[tokens=8!gap=20ms]]", background: true, stream: true });
  let id, last, text = "";
  for await (const event of stream) {
    id ??= event.response.id;
    last = event.sequence_number;
    if (event.type === "response.output_text.delta") {
      text += event.delta;
      break;
    }
  }
  for (const event of await collect(openai.responses.retrieve(id, { stream: true, starting_after: last }))) {
    assert.equal(event.sequence_number, ++last);
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  assert.equal((await openai.responses.retrieve(id)).output_text, text);
});

test("one is cancelled", async () => {
  const { data: made, response } = await openai.responses.create({ model, input: "[[tokens=2000!gap=100ms]]", background: true }).withResponse();
  assert.equal((await openai.responses.cancel(made.id)).status, "cancelled");
  assert.equal((await openai.responses.retrieve(made.id)).status, "cancelled");
  const explained = await entries(response.headers.get("sluice-request-id"));
  assert.match(JSON.stringify(explained), /"background":\{"result":"stopped"/);
  const done = await openai.responses.create({ model, input: "[[tokens=3]]" });
  await assert.rejects(openai.responses.cancel(done.id), OpenAI.BadRequestError);
});

test("to another tenant none of it exists", async () => {
  const done = await openai.responses.create({ model, input: "[[tokens=3]]" });
  const running = await openai.responses.create({ model, input: "[[tokens=2000!gap=100ms]]", background: true });
  for (const { id } of [done, running]) {
    for (const attempt of [
      () => other.responses.retrieve(id), () => collect(other.responses.retrieve(id, { stream: true, starting_after: 1 })),
      () => other.responses.inputItems.list(id), () => other.responses.cancel(id), () => other.responses.delete(id),
      () => other.responses.create({ model, input: "x", previous_response_id: id }),
    ]) {
      await assert.rejects(attempt, (e) => {
        assert.ok(e instanceof OpenAI.NotFoundError, String(e));
        assert.match(e.message, /names a response that does not exist/);
        return true;
      });
    }
  }
  assert.equal((await openai.responses.retrieve(done.id)).status, "completed");
  assert.equal((await openai.responses.cancel(running.id)).status, "cancelled");
});
