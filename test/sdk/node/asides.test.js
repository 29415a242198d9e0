// Images, sound, moderations: openai-node, unchanged but for base URL and key.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI, { toFile } from "openai";
import { entries, key, url } from "./gateway.js";

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const sound = await toFile(Buffer.alloc(9000, 7), 'my name = "x".mp3', { type: "audio/mpeg" });
const picture = await toFile(Buffer.from("\x89PNG..."), "a.png", { type: "image/png" });

// charged is the ledger's row of the request that was answered so.
async function charged(response) {
  const { steps } = await entries(response.headers.get("sluice-request-id"));
  return steps.at(-1).charge;
}

test("images, by the image", async () => {
  const { data, response } = await client.images.generate({ model: "drawn", prompt: "a lighthouse", n: 2 }).withResponse();
  assert.equal(data.data.length, 2);
  const charge = await charged(response);
  assert.equal(charge.units, 2);
  assert.equal(charge.cost, "$0.08");
});

test("images as they come, by tokens", async () => {
  const stream = await client.images.generate({ model: "drawn-by-tokens", prompt: "a lighthouse", stream: true, partial_images: 1 });
  const types = [];
  let usage;
  for await (const event of stream) {
    types.push(event.type);
    usage = event.usage ?? usage;
  }
  assert.deepEqual(types, ["image_generation.partial_image", "image_generation.completed"]);
  assert.equal(usage.output_tokens, 272);
});

test("an edit", async () => {
  const answer = await client.images.edit({ model: "drawn", image: [picture, picture], prompt: "a hat" });
  assert.equal(answer.data.length, 1);
});

test("speech, by the character", async () => {
  const answer = await client.audio.speech.create({ model: "spoken", voice: "alloy", input: "Grüße 😀!" });
  assert.equal(answer.headers.get("content-type"), "audio/mpeg");
  assert.ok((await answer.arrayBuffer()).byteLength > 100);
  assert.equal((await charged(answer)).units, 8);
});

test("transcriptions: JSON, text, as they come", async () => {
  const { data, response } = await client.audio.transcriptions.create({ model: "heard", file: sound }).withResponse();
  assert.equal(data.text, "What was said.");
  assert.equal((await charged(response)).units, 3);
  assert.equal(await client.audio.transcriptions.create({ model: "heard", file: sound, response_format: "text" }), "What was said.\n");
  let text = "";
  for await (const event of await client.audio.transcriptions.create({ model: "heard", file: sound, stream: true })) {
    if (event.type === "transcript.text.delta") text += event.delta;
  }
  assert.equal(text, "What was said.");
  assert.equal((await client.audio.translations.create({ model: "heard", file: sound })).text, "What was said.");
});

test("moderations", async () => {
  const answer = await client.moderations.create({ model: "judged", input: ["one", "two"] });
  assert.equal(answer.results.length, 2);
});

test("what has no price is refused", async () => {
  await assert.rejects(client.audio.speech.create({ model: "drawn", voice: "alloy", input: "hello" }), (e) => e.status === 403 && /price/.test(e.message));
});

test("a backend's error keeps its status", async () => {
  await assert.rejects(client.images.generate({ model: "drawn-badly", prompt: "x" }), (e) => e.status === 429 || e.status === 503);
});
