// The official Gemini SDK against backends of each dialect, and the other dialects'
// clients against a Gemini backend.
import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { ApiError, FunctionCallingConfigMode, GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { entries, key, question, smallKey, tools, url } from "./gateway.js";

const client = (apiKey) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: url } });
const genai = client(key);
const functions = [{ functionDeclarations: tools.map((t) => ({ name: t.name, description: t.description, parametersJsonSchema: t.schema })) }];
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const schema = { type: "object", properties: { city: { type: "string" }, sunny: { type: "boolean" } }, required: ["city", "sunny"] };
const calls = (r) => r.functionCalls.map((c) => [c.name, c.args]);

for (const model of ["gemini", "gpt", "claude", "bedrock"]) {
  test(`genai on ${model}: plain, with instructions, bound and stop`, async () => {
    const r = await genai.models.generateContent({ model, contents: question, config: { systemInstruction: "Be brief.", maxOutputTokens: 200, temperature: 0.5, stopSequences: ["END"] } });
    assert.ok(r.text.length > 0);
    assert.equal(r.candidates[0].finishReason, "STOP");
    assert.equal(r.usageMetadata.candidatesTokenCount, 60);
    assert.equal(r.usageMetadata.totalTokenCount, r.usageMetadata.promptTokenCount + 60);
    const explained = await entries(r.sdkHttpResponse.headers["sluice-request-id"]);
    assert.equal(explained.steps[0].translated, { gemini: undefined, gpt: "openai", claude: "anthropic", bedrock: "bedrock" }[model]);
  });

  test(`genai on ${model}: streamed, in a conversation`, async () => {
    const chat = genai.chats.create({ model });
    let text = "", last = null;
    for await (const chunk of await chat.sendMessageStream({ message: question })) {
      text += chunk.text ?? "";
      last = chunk;
    }
    assert.equal(last.candidates[0].finishReason, "STOP");
    assert.equal(last.usageMetadata.candidatesTokenCount, 60);
    const again = await chat.sendMessage({ message: "And? [[tokens=5]]" });
    assert.ok(again.text.length > 0);
    assert.ok(chat.getHistory().length >= 4);
  });

  test(`genai on ${model}: two parallel calls, plain and streamed, and their results`, async () => {
    const contents = [{ role: "user", parts: [{ text: "weather and time in Basel?" }] }];
    const config = { tools: functions, toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.AUTO } } };
    const plain = await genai.models.generateContent({ model, contents, config });
    const parts = [];
    for await (const chunk of await genai.models.generateContentStream({ model, contents, config })) parts.push(...(chunk.candidates[0].content.parts ?? []));
    assert.equal(plain.functionCalls.length, 2);
    for (const c of plain.functionCalls) assert.equal(typeof c.args.city, "string");
    assert.deepEqual(parts.filter((p) => p.functionCall).map((p) => [p.functionCall.name, p.functionCall.args]), calls(plain));
    const results = plain.functionCalls.map((c) => ({ functionResponse: { ...(c.id && { id: c.id }), name: c.name, response: { output: "sunny" } } }));
    for (const answer of [plain.candidates[0].content, { role: "model", parts }]) {
      const ids = answer.parts.filter((p) => p.functionCall).map((p) => p.functionCall.id);
      results.forEach((r, i) => (ids[i] ? (r.functionResponse.id = ids[i]) : delete r.functionResponse.id));
      const next = await genai.models.generateContent({ model, contents: [...contents, answer, { role: "user", parts: results }], config });
      assert.ok(next.text.length > 0);
    }
  });

  test(`genai on ${model}: an image, structured output, a count`, async () => {
    const seen = await genai.models.generateContent({ model, contents: [{ text: "What is this? [[tokens=5]]" }, { inlineData: { mimeType: "image/png", data: pixel } }] });
    assert.ok(seen.usageMetadata.promptTokenCount > 500, `an image took ${seen.usageMetadata.promptTokenCount} tokens`);
    const shaped = await genai.models.generateContent({ model, contents: "Basel?", config: { responseMimeType: "application/json", responseJsonSchema: schema } });
    const { city, sunny } = JSON.parse(shaped.text);
    assert.equal(typeof city, "string");
    assert.equal(typeof sunny, "boolean");
    assert.ok((await genai.models.countTokens({ model, contents: question })).totalTokens > 0);
  });

  test(`genai on ${model}: an error in mid-stream is an error, a 429 is a 429`, async () => {
    let text = "";
    await assert.rejects(async () => {
      for await (const chunk of await genai.models.generateContentStream({ model: `${model}-dies`, contents: question })) text += chunk.text ?? "";
    });
    assert.ok(text.length > 0);
    const errors = [];
    for (let i = 0; i < 2; i++) await client(smallKey).models.generateContent({ model, contents: "[[tokens=2]]" }).catch((e) => errors.push(e));
    assert.ok(errors[0] instanceof ApiError);
    assert.equal(errors[0].status, 429);
    assert.match(errors[0].message, /RESOURCE_EXHAUSTED/);
  });
}

test("genai: the list of models", async () => {
  const names = [];
  for await (const m of await genai.models.list()) names.push(m.name);
  assert.ok(names.includes("models/gemini") && names.includes("models/gpt"));
  assert.equal((await genai.models.get({ model: "gemini" })).name, "models/gemini");
});

test("genai: what another dialect has no place for is refused with its path", async () => {
  const err = await genai.models.generateContent({ model: "claude", contents: "x", config: { seed: 1 } }).catch((e) => e);
  assert.equal(err.status, 400);
  assert.match(err.message, /generationConfig\.seed/);
});

test("openai on gemini: plain, streamed, two parallel calls and their results, an image, structured output, errors", async () => {
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
  const model = "gemini";
  const ask = (content) => [{ role: "user", content }];
  const plain = await openai.chat.completions.create({ model, messages: [{ role: "system", content: "Be brief." }, ...ask(question)], seed: 7, temperature: 1.5 });
  assert.equal(plain.usage.completion_tokens, 60);
  assert.equal(plain.choices[0].finish_reason, "stop");
  let text = "";
  const stream = await openai.chat.completions.create({ model, messages: ask(question), stream: true });
  for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
  assert.ok(text.length > 0);
  const request = { model, messages: ask("weather and time in Basel?"), tools: tools.map((t) => ({ type: "function", function: { name: t.name, parameters: t.schema } })) };
  for (const message of [(await openai.chat.completions.create(request)).choices[0].message, (await openai.chat.completions.stream(request).finalChatCompletion()).choices[0].message]) {
    assert.equal(message.tool_calls.length, 2);
    const results = message.tool_calls.map((c) => ({ role: "tool", tool_call_id: c.id, content: "sunny" }));
    const next = await openai.chat.completions.create({ ...request, messages: [...request.messages, message, ...results] });
    assert.ok(next.choices[0].message.content.length > 0);
  }
  const seen = await openai.chat.completions.create({ model, messages: ask([{ type: "text", text: "What is this? [[tokens=5]]" }, { type: "image_url", image_url: { url: `data:image/png;base64,${pixel}` } }]) });
  assert.ok(seen.usage.prompt_tokens > 500);
  const shaped = await openai.chat.completions.create({ model, messages: ask("Basel?"), response_format: { type: "json_schema", json_schema: { name: "weather", strict: true, schema } } });
  assert.equal(typeof JSON.parse(shaped.choices[0].message.content).sunny, "boolean");
  const dying = await openai.chat.completions.create({ model: "gemini-dies", messages: ask(question), stream: true });
  await assert.rejects(async () => {
    for await (const _ of dying);
  }, OpenAI.APIError);
  const web = await openai.chat.completions.create({ model, messages: ask([{ type: "image_url", image_url: { url: "https://example.com/a.png" } }]) }).catch((e) => e);
  assert.equal(web.code, "untranslatable");
});

test("anthropic on gemini: plain, streamed, two parallel calls and their results, thinking, an image, errors", async () => {
  const anthropic = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
  const base = { model: "gemini", max_tokens: 4000 };
  const ask = (content) => [{ role: "user", content }];
  const plain = await anthropic.messages.create({ ...base, system: "Be brief.", messages: ask(question) });
  assert.equal(plain.stop_reason, "end_turn");
  assert.equal(plain.usage.output_tokens, 60);
  const streamed = await anthropic.messages.stream({ ...base, messages: ask(question) }).finalMessage();
  assert.equal(streamed.usage.output_tokens, 60);
  const request = { ...base, messages: ask("weather and time in Basel?"), tools: tools.map((t) => ({ name: t.name, input_schema: t.schema })) };
  for (const m of [await anthropic.messages.create(request), await anthropic.messages.stream(request).finalMessage()]) {
    const uses = m.content.filter((c) => c.type === "tool_use");
    assert.equal(uses.length, 2);
    assert.ok(m.content.some((c) => c.type === "redacted_thinking"), "the signature of the first call has to come back");
    const results = uses.map((u) => ({ type: "tool_result", tool_use_id: u.id, content: "sunny" }));
    const next = await anthropic.messages.create({ ...request, messages: [...request.messages, { role: "assistant", content: m.content }, { role: "user", content: results }] });
    assert.equal(next.stop_reason, "end_turn");
  }
  const thought = await anthropic.messages.stream({ ...base, thinking: { type: "enabled", budget_tokens: 1024 }, messages: ask("Think. [[reasoning=20!tokens=40]]") }).finalMessage();
  assert.equal(thought.content[0].type, "thinking");
  const seen = await anthropic.messages.create({ ...base, messages: ask([{ type: "text", text: "What is this? [[tokens=5]]" }, { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } }]) });
  assert.ok(seen.usage.input_tokens > 500);
  await assert.rejects(anthropic.messages.stream({ ...base, model: "gemini-dies", messages: ask(question) }).finalMessage());
});

test("several candidates and sound by a backend of the OpenAI dialect", async () => {
  const contents = [{ role: "user", parts: [{ text: "[[tokens=9]]" }, { inlineData: { mimeType: "audio/mp3", data: "UklGRg==" } }] }];
  const request = { model: "gpt", contents, config: { candidateCount: 2 } };
  const whole = await genai.models.generateContent(request);
  assert.deepEqual(whole.candidates.map((c) => [c.index, c.finishReason]), [[0, "STOP"], [1, "STOP"]]);
  assert.equal(whole.usageMetadata.candidatesTokenCount, 18);
  const texts = ["", ""], ends = {};
  let usage;
  for await (const event of await genai.models.generateContentStream(request)) {
    for (const c of event.candidates ?? []) {
      for (const p of c.content?.parts ?? []) texts[c.index] += p.text ?? "";
      if (c.finishReason) ends[c.index] = c.finishReason;
    }
    usage = event.usageMetadata ?? usage;
  }
  assert.deepEqual(texts, whole.candidates.map((c) => c.content.parts.map((p) => p.text).join("")));
  assert.deepEqual(ends, { 0: "STOP", 1: "STOP" });
  assert.equal(usage.candidatesTokenCount, 18);
});
