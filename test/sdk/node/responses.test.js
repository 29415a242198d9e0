// The official client of Responses against backends that serve it ("native"), that have
// chat alone ("gpt"), and that speak another dialect.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { key, question, smallKey, tools, url } from "./gateway.js";

const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const declared = tools.map((t) => ({ type: "function", name: t.name, description: t.description, parameters: t.schema, strict: false }));
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const schema = { type: "object", properties: { city: { type: "string" }, sunny: { type: "boolean" } }, required: ["city", "sunny"], additionalProperties: false };

for (const model of ["native", "gpt", "claude", "gemini", "bedrock"]) {
  test(`${model}: plain, and streamed the same`, async () => {
    const request = { model, instructions: "Be brief.", input: question, max_output_tokens: 200 };
    const plain = await openai.responses.create(request);
    assert.equal(plain.status, "completed");
    assert.ok(plain.output_text.length > 0);
    assert.equal(plain.usage.output_tokens, 60);
    let text = "", last = null;
    for await (const event of await openai.responses.create({ ...request, stream: true })) {
      if (event.type === "response.output_text.delta") text += event.delta;
      if (event.type === "response.completed") last = event.response;
    }
    assert.equal(last.status, "completed");
    assert.equal(last.usage.output_tokens, 60);
    assert.equal(last.output.find((o) => o.type === "message").content[0].text, text);
    assert.equal(text, plain.output_text);
  });

  test(`${model}: two parallel tool calls and their results`, async () => {
    const input = [{ role: "user", content: "weather and time in Basel?" }];
    const streamed = await openai.responses.stream({ model, input, tools: declared }).finalResponse();
    const calls = streamed.output.filter((o) => o.type === "function_call");
    assert.equal(calls.length, 2);
    for (const c of calls) JSON.parse(c.arguments);
    const results = calls.map((c) => ({ type: "function_call_output", call_id: c.call_id, output: "sunny" }));
    const answer = await openai.responses.create({ model, input: [...input, ...calls, ...results], tools: declared });
    assert.ok(answer.output_text.length > 0);
  });

  test(`${model}: an image, and JSON by a schema`, async () => {
    const answer = await openai.responses.create({
      model,
      input: [{ role: "user", content: [{ type: "input_text", text: "Is it sunny?" }, { type: "input_image", image_url: `data:image/png;base64,${pixel}`, detail: "auto" }] }],
      text: { format: { type: "json_schema", name: "weather", schema, strict: true } },
    });
    assert.equal(typeof JSON.parse(answer.output_text).city, "string");
  });

  test(`${model}: an error in mid-stream throws`, async () => {
    await assert.rejects(async () => {
      for await (const _ of await openai.responses.create({ model: `${model}-dies`, input: question, stream: true }));
    });
  });
}

test("a limit is a 429 that the client knows", async () => {
  const small = new OpenAI({ baseURL: `${url}/v1`, apiKey: smallKey, maxRetries: 0 });
  await assert.rejects(async () => {
    for (let i = 0; i < 3; i++) await small.responses.create({ model: "gpt", input: "[[tokens=3]]" });
  }, OpenAI.RateLimitError);
});
