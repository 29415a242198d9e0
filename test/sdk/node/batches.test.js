// The batch helpers of openai-node and the Anthropic SDK, unchanged but for base URL and
// key, and requests that are answered later.
import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI, { toFile } from "openai";
import { entries, key, poorKey, until, url } from "./gateway.js";

const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
const ask = (content) => [{ role: "user", content }];
const chat = (custom_id, model, content) => ({ custom_id, method: "POST", url: "/v1/chat/completions", body: { model, messages: ask(content) } });
const jsonl = (lines) => lines.map((l) => JSON.stringify(l) + "\n").join("");

const ended = (b) => ["completed", "failed", "expired", "cancelled"].includes(b.status);
const upload = async (lines, more) => openai.files.create({ file: await toFile(Buffer.from(jsonl(lines)), "in.jsonl"), purpose: "batch", ...more });
const run = (file, more) => openai.batches.create({ input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h", ...more });

test("files: create, retrieve, list, content, delete", async () => {
  const lines = [chat("a", "sim-small", "hello")];
  const file = await upload(lines, { expires_after: { anchor: "created_at", seconds: 3600 } });
  assert.match(file.id, /^file-/);
  assert.equal(file.object, "file");
  assert.equal(file.bytes, Buffer.byteLength(jsonl(lines)));
  assert.equal(file.filename, "in.jsonl");
  assert.equal(file.purpose, "batch");
  assert.equal(file.expires_at - file.created_at, 3600);
  assert.deepEqual(await openai.files.retrieve(file.id), file);
  assert.equal((await openai.files.waitForProcessing(file.id)).status, "processed");
  const seen = [];
  for await (const f of openai.files.list({ limit: 1, purpose: "batch" })) seen.push(f.id);
  assert.ok(seen.includes(file.id));
  assert.equal(await (await openai.files.content(file.id)).text(), jsonl(lines));
  assert.deepEqual(await openai.files.delete(file.id), { id: file.id, object: "file", deleted: true });
  await assert.rejects(openai.files.retrieve(file.id), OpenAI.NotFoundError);
});

test("a batch: answers in one file, errors in another", async () => {
  const lines = [];
  for (let i = 0; i < 10; i++) lines.push(chat(`line-${i}`, "sim-small", i % 5 === 4 ? "[[status=400]]" : "[[tokens=7]]"));
  const file = await upload(lines);
  const made = await run(file, { metadata: { night: "one" } });
  assert.match(made.id, /^batch_/);
  assert.equal(made.object, "batch");
  assert.deepEqual(made.metadata, { night: "one" });
  const batch = await until(() => openai.batches.retrieve(made.id), ended, made.id);
  assert.equal(batch.status, "completed", JSON.stringify(batch));
  assert.deepEqual(batch.request_counts, { total: 10, completed: 8, failed: 2 });
  assert.equal(batch.usage.output_tokens, 56);
  assert.equal(batch.model, "sim-small");
  for (const at of ["created_at", "in_progress_at", "finalizing_at", "completed_at", "expires_at"]) assert.equal(typeof batch[at], "number", at);
  const out = (await (await openai.files.content(batch.output_file_id)).text()).trim().split("\n").map((l) => JSON.parse(l));
  assert.equal(out.length, 8);
  for (const l of out) {
    assert.match(l.custom_id, /^line-/);
    assert.equal(l.error, null);
    assert.equal(l.response.status_code, 200);
    assert.equal(l.response.body.usage.completion_tokens, 7);
  }
  const explained = await entries(out[0].response.request_id);
  assert.match(JSON.stringify(explained), /"batch"/);
  const errors = (await (await openai.files.content(batch.error_file_id)).text()).trim().split("\n").map((l) => JSON.parse(l));
  assert.deepEqual(errors.map((l) => l.custom_id).sort(), ["line-4", "line-9"]);
  assert.ok(errors.every((l) => l.response.status_code === 400 && l.response.body.error.message));
  const seen = [];
  for await (const b of openai.batches.list({ limit: 1 })) seen.push(b.id);
  assert.ok(seen.includes(made.id));
});

test("a batch whose file is wrong says which line and why", async () => {
  const file = await upload([chat("a", "sim-small", "x"), { ...chat("b", "sim-small", "x"), method: "GET" }, chat("a", "sim-small", "x")]);
  const made = await run(file);
  const batch = await until(() => openai.batches.retrieve(made.id), ended, made.id);
  assert.equal(batch.status, "failed");
  assert.equal(typeof batch.failed_at, "number");
  assert.deepEqual(batch.errors.data.map((e) => [e.line, e.param, e.code]), [[2, "method", "invalid_method"], [3, "custom_id", "duplicate_custom_id"]]);
});

test("a batch is cancelled, and its unfinished requests are told", async () => {
  const lines = [];
  for (let i = 0; i < 40; i++) lines.push(chat(`l${i}`, "paced", "[[tokens=20]]"));
  const made = await run(await upload(lines));
  await until(() => openai.batches.retrieve(made.id), (b) => b.status === "in_progress", made.id);
  const cancelling = await openai.batches.cancel(made.id);
  assert.ok(["cancelling", "cancelled"].includes(cancelling.status), cancelling.status);
  const batch = await until(() => openai.batches.retrieve(made.id), ended, made.id);
  assert.equal(batch.status, "cancelled");
  assert.equal(batch.request_counts.completed + batch.request_counts.failed, 40);
  await assert.rejects(openai.batches.cancel(made.id), (e) => e instanceof OpenAI.ConflictError);
});

test("another tenant sees none of it", async () => {
  const other = new OpenAI({ baseURL: `${url}/v1`, apiKey: poorKey, maxRetries: 0 });
  const file = await upload([chat("a", "sim-small", "x")]);
  const batch = await run(file);
  for (const attempt of [
    () => other.files.retrieve(file.id), () => other.files.content(file.id), () => other.files.delete(file.id),
    () => other.batches.retrieve(batch.id), () => other.batches.cancel(batch.id),
    () => other.batches.create({ input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h" }),
  ]) await assert.rejects(attempt, OpenAI.NotFoundError);
  for await (const f of other.files.list()) assert.notEqual(f.id, file.id);
});

const message = (custom_id, content, model = "sim-small") => ({ custom_id, params: { model, max_tokens: 50, messages: ask(content) } });

test("message batches: create, retrieve, results, list, delete", async () => {
  const made = await anthropic.messages.batches.create({ requests: [message("a", "[[tokens=5]]"), message("b", "[[status=400]]"), { custom_id: "c", params: { model: "sim-small" } }] });
  assert.match(made.id, /^msgbatch_/);
  assert.equal(made.type, "message_batch");
  assert.equal(new Date(made.expires_at) - new Date(made.created_at), 24 * 3600 * 1000);
  const batch = await until(() => anthropic.messages.batches.retrieve(made.id), (b) => b.processing_status === "ended", made.id);
  assert.deepEqual(batch.request_counts, { processing: 0, succeeded: 1, errored: 2, canceled: 0, expired: 0 });
  const results = {};
  for await (const r of await anthropic.messages.batches.results(made.id)) results[r.custom_id] = r.result;
  assert.equal(results.a.type, "succeeded");
  assert.equal(results.a.message.usage.output_tokens, 5);
  for (const id of ["b", "c"]) {
    assert.equal(results[id].type, "errored");
    assert.equal(results[id].error.type, "error");
    assert.equal(results[id].error.error.type, "invalid_request_error");
  }
  const seen = [];
  for await (const b of anthropic.messages.batches.list({ limit: 1 })) seen.push(b.id);
  assert.ok(seen.includes(made.id));
  assert.deepEqual(await anthropic.messages.batches.delete(made.id), { id: made.id, type: "message_batch_deleted" });
  await assert.rejects(anthropic.messages.batches.retrieve(made.id), Anthropic.NotFoundError);
});

test("a message batch is cancelled", async () => {
  const requests = [];
  for (let i = 0; i < 40; i++) requests.push(message(`l${i}`, "[[tokens=20!gap=100ms]]"));
  const made = await anthropic.messages.batches.create({ requests });
  await assert.rejects(anthropic.messages.batches.delete(made.id), Anthropic.BadRequestError);
  const cancelling = await anthropic.messages.batches.cancel(made.id);
  assert.ok(cancelling.cancel_initiated_at);
  const batch = await until(() => anthropic.messages.batches.retrieve(made.id), (b) => b.processing_status === "ended", made.id);
  assert.ok(batch.request_counts.canceled > 0);
  assert.equal(Object.values(batch.request_counts).reduce((a, b) => a + b), 40);
});

test("a message batch that is wrong is refused where it is wrong", async () => {
  await assert.rejects(anthropic.messages.batches.create({ requests: [message("a", "x"), message("a", "x")] }), (e) => {
    assert.ok(e instanceof Anthropic.BadRequestError);
    assert.match(e.error.error.message, /requests\.1\.custom_id/);
    return true;
  });
});

test("a request is answered later", async () => {
  const body = { model: "sim-small", messages: ask("[[tokens=9]]") };
  const { data, response } = await openai.chat.completions.create(body, { headers: { prefer: "respond-async" } }).withResponse();
  assert.equal(response.status, 202);
  assert.equal(response.headers.get("preference-applied"), "respond-async");
  assert.equal(data.object, "sluice.answer");
  const poll = () => fetch(url + response.headers.get("location"), { headers: { authorization: `Bearer ${key}` } });
  const answer = await until(poll, (r) => r.status !== 202, "the answer");
  assert.equal(answer.status, 200);
  assert.equal((await answer.json()).usage.completion_tokens, 9);
  const other = await fetch(url + response.headers.get("location"), { headers: { authorization: `Bearer ${poorKey}` } });
  assert.equal(other.status, 404);
});

// losing is a fetch that loses the first answer to a POST once the gateway has given it: a
// client library then sends the same again by itself.
const losing = () => {
  const lost = { answers: 0, replayed: 0 };
  lost.fetch = async (at, init) => {
    const response = await fetch(at, init);
    if (init?.method?.toUpperCase() === "POST" && lost.answers++ === 0) {
      assert.equal(response.status < 300, true, await response.clone().text());
      throw new TypeError("fetch failed: the connection was lost");
    }
    if (response.headers.get("idempotent-replayed") === "true") lost.replayed++;
    return response;
  };
  return lost;
};
const once = (name) => ({ headers: { "Idempotency-Key": `${name}-${process.pid}-${Date.now()}` } });

test("what a library sends again under its key is made once", async () => {
  const content = jsonl([chat("a", "sim-small", "once")]);
  const clients = (lost) => [new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 2, fetch: lost.fetch }), new Anthropic({ baseURL: url, apiKey: key, maxRetries: 2, fetch: lost.fetch })];
  const night = `once-${process.pid}-${Date.now()}`;
  let file;
  for (const make of [
    async (o) => {
      const named = `${night}.jsonl`;
      file = await o.files.create({ file: await toFile(Buffer.from(content), named), purpose: "batch" }, once("file"));
      const seen = [];
      for await (const f of openai.files.list()) if (f.filename === named) seen.push(f.id);
      assert.deepEqual(seen, [file.id]);
    },
    async (o) => {
      const made = await o.batches.create({ input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h", metadata: { night } }, once("batch"));
      const seen = [];
      for await (const b of openai.batches.list()) if (b.metadata?.night === night) seen.push(b.id);
      assert.deepEqual(seen, [made.id]);
    },
    async (_, a) => {
      const before = (await anthropic.messages.batches.list({ limit: 1000 })).data.length;
      const made = await a.messages.batches.create({ requests: [message("a", "once")] }, once("messages"));
      const after = await anthropic.messages.batches.list({ limit: 1000 });
      assert.equal(after.data.length, before + 1);
      assert.equal(after.data[0].id, made.id);
    },
    async (o) => {
      const header = once("later");
      header.headers.prefer = "respond-async";
      const { data, response } = await o.chat.completions.create({ model: "sim-small", messages: ask("[[tokens=3]]") }, header).withResponse();
      assert.equal(response.status, 202);
      assert.match(data.id, /^async_/);
    },
  ]) {
    const lost = losing();
    await make(...clients(lost));
    assert.deepEqual([lost.answers, lost.replayed], [2, 1], make.toString());
  }
});

test("a key that has made something makes nothing else", async () => {
  const file = await upload([chat("a", "sim-small", "x")]);
  const named = once("other");
  const first = await openai.batches.create({ input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h" }, named);
  await assert.rejects(
    openai.batches.create({ input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "12h" }, named),
    (e) => e instanceof OpenAI.UnprocessableEntityError && e.code === "idempotency_mismatch",
  );
  assert.equal((await openai.batches.retrieve(first.id)).id, first.id);
});
