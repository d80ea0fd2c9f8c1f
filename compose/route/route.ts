// Asks which model to call, calls it, and reports what it was worth: node route.ts PROMPT SCORE
const [prompt, score] = process.argv.slice(2), env = process.env;
const route = env.ROUTE ?? "http://127.0.0.1:8080"; // and MODELS=https://openrouter.ai/api/v1

async function post(url, body, headers = {}) {
  const init = { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json", ...headers } };
  const answer = await fetch(url, init);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

const decision = await post(`${route}/v1/decide`, { features: { prompt } });
const began = performance.now();
const answer = await post(`${env.MODELS}/chat/completions`, { model: decision.action, messages: [{ role: "user", content: prompt }] },
  { Authorization: `Bearer ${env.MODELS_KEY}` });
const known = { tokens: answer.usage.completion_tokens, latency_ms: performance.now() - began };
await post(`${route}/v1/outcome`, { id: decision.id, outcomes: known });
console.log(decision.action, answer.choices[0].message.content);
// The score comes from a judge, a thumb or a ticket: hours later, from another program.
console.log(await post(`${route}/v1/outcome`, { id: decision.id, outcomes: { quality: Number(score) } }));
