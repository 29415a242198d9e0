// What every client test needs: the gateway's address and key, and what the
// provider and the ledger say of a request.
import assert from "node:assert/strict";

export const url = need("SLUICE_URL");
export const key = need("SLUICE_KEY");
export const smallKey = need("SLUICE_SMALL_KEY"); // one request per minute
export const poorKey = need("SLUICE_POOR_KEY"); // a budget of a tenth of a cent
const admin = need("SLUICE_ADMIN");
const token = need("SLUICE_ADMIN_TOKEN");

function need(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run this through test/sdk/sdk_test.go`);
  return value;
}

// until looks again and again, as a client does who polls, until done says so of what
// it saw. Its bound is for what never comes: a busy machine may well take seconds.
export async function until(look, done, what) {
  for (let i = 0; i < 2400; i++) {
    const seen = await look();
    if (done(seen)) return seen;
    await new Promise((r) => setTimeout(r, 25));
  }
  assert.fail(`${what} did not come to an end within a minute`);
}

// entries are the ledger's rows of one request, once its journal has drained.
export async function entries(id) {
  const look = async () => {
    const answer = await fetch(`${admin}/admin/v1/requests/${id}`, { headers: { authorization: `Bearer ${token}` } });
    return answer.ok ? answer.json() : (await answer.text(), {});
  };
  return until(look, (body) => body.steps?.length, `the ledger's entry of ${id}`);
}

export const tools = [
  { name: "get_weather", description: "The weather in a city", schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } },
  { name: "get_time", description: "The local time in a city", schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } },
];

export const question = "Tell me about the sluices of the Rhine. [[tokens=60]]";
export const longQuestion = "Tell me everything about the sluices of the Rhine. [[tokens=2000!gap=20ms]]";
