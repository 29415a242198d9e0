// Every error that the gateway tells, read by the official clients' own classes: the
// corpus that internal/wire makes, from a server that only repeats it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import http from "node:http";
import { after, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { ApiError, GoogleGenAI } from "@google/genai";
import OpenAI from "openai";

const path = process.env.SLUICE_ERROR_CORPUS;
assert.ok(path, "SLUICE_ERROR_CORPUS is not set: run this through test/sdk/sdk_test.go");
const corpus = readFileSync(path, "utf8").trim().split("\n").map((l) => JSON.parse(l));

let now; // what is repeated
const server = http.createServer((request, response) => {
  request.resume();
  request.on("end", () => {
    const body = JSON.stringify(now.body);
    if (now.kind === "answer") {
      response.writeHead(now.status, now.header).end(body);
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(now.dialect === "anthropic" ? `event: error\ndata: ${body}\n\n` : `data: ${body}\n\n`);
  });
});
await new Promise((r) => server.listen(0, "127.0.0.1", r));
after(() => server.close());
const base = `http://127.0.0.1:${server.address().port}`;

// once is one error of each status, type and code: what differs else is text.
function once(dialect, kind) {
  const seen = new Map();
  for (const e of corpus) {
    const of = e.body.error ?? e.body;
    if (e.dialect === dialect && e.kind === kind) seen.set([e.status, of.type, of.code, of.status, of.param === null].join(), e);
  }
  assert.ok(seen.size > 5, `${seen.size} errors of ${dialect}`);
  return [...seen.values()];
}

const classes = (sdk) => ({
  400: sdk.BadRequestError, 401: sdk.AuthenticationError, 403: sdk.PermissionDeniedError, 404: sdk.NotFoundError,
  409: sdk.ConflictError, 422: sdk.UnprocessableEntityError, 429: sdk.RateLimitError,
});
const classOf = (sdk, status) => classes(sdk)[status] ?? (status >= 500 ? sdk.InternalServerError : sdk.APIError);
const ask = [{ role: "user", content: "x" }];
const thrown = async (f) => {
  try {
    await f();
  } catch (e) {
    return e;
  }
  assert.fail(`no error of ${JSON.stringify(now)}`);
};
const drain = async (stream) => {
  for await (const _ of await stream) { /* until it throws */ }
};

test("openai: answers and streams", async () => {
  const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: "k", maxRetries: 0 });
  for (now of once("openai", "answer")) {
    const e = await thrown(() => client.chat.completions.create({ model: "m", messages: ask }));
    assert.ok(e instanceof classOf(OpenAI, now.status), `${now.status} is ${e.constructor.name}`);
    const { message, type, code, param } = now.body.error;
    assert.deepEqual([e.status, e.type, e.code, e.param, e.error.message], [now.status, type, code, param, message]);
  }
  for (now of once("openai", "event")) {
    const e = await thrown(() => drain(client.chat.completions.create({ model: "m", messages: ask, stream: true })));
    assert.ok(e instanceof OpenAI.APIError, e.constructor.name);
    assert.deepEqual([e.type, e.code, e.param], [now.body.error.type, now.body.error.code, now.body.error.param]);
  }
  for (now of once("openai", "response event")) {
    const e = await thrown(() => drain(client.responses.create({ model: "m", input: "x", stream: true })));
    assert.ok(e instanceof OpenAI.APIError, e.constructor.name);
  }
});

test("anthropic: answers and streams", async () => {
  const client = new Anthropic({ baseURL: base, apiKey: "k", maxRetries: 0 });
  const request = { model: "m", max_tokens: 1, messages: ask };
  for (now of once("anthropic", "answer")) {
    const e = await thrown(() => client.messages.create(request));
    assert.ok(e instanceof classOf(Anthropic, now.status), `${now.status} is ${e.constructor.name}`);
    assert.deepEqual([e.status, e.type, e.apiMessage, e.requestID], [now.status, now.body.error.type, now.body.error.message, "req_1"]);
  }
  for (now of once("anthropic", "event")) {
    const e = await thrown(() => drain(client.messages.create({ ...request, stream: true })));
    assert.ok(e instanceof Anthropic.APIError, e.constructor.name);
    assert.equal(e.error.error.type, now.body.error.type);
  }
});

test("gemini: answers", async () => {
  const client = new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl: base } });
  for (now of once("gemini", "answer")) {
    const e = await thrown(() => client.models.generateContent({ model: "m", contents: "x" }));
    assert.ok(e instanceof ApiError, e.constructor.name);
    const { error } = JSON.parse(e.message);
    assert.deepEqual([e.status, error.code, error.status, error.message], [now.status, now.status, now.body.error.status, now.body.error.message]);
  }
});
