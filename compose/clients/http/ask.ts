// Asks for a decision and reports what it was worth: node ask.ts [URL]
const url = process.argv[2] ?? "http://127.0.0.1:8080";
const post = { method: "POST", headers: { "Content-Type": "application/json" } };
const context = { features: { hour: 14, country: "DE" }, actions: ["banner", "video", "none"] };
const decided = await fetch(`${url}/v1/decide`, { ...post, body: JSON.stringify(context) });
if (!decided.ok) throw new Error(await decided.text());
const decision = await decided.json();
console.log(decision.id, decision.action, decision.propensity);
const told = await fetch(`${url}/v1/outcome`, { ...post, body: JSON.stringify({ id: decision.id, reward: 1 }) });
console.log(await told.text());
if (!told.ok) process.exit(1);
