"""Asks a running decider for a decision and reports what it was worth."""
import asyncio, json, random, sys
import nats  # pip install nats-py


async def ask(nc, subject, body):
    """Sends a request and reads its reply; an error is a reply, too. One that passes, as under overload, is worth
    another try: later each time, and at random, so that clients do not come back all at once."""
    payload, wait = json.dumps(body).encode(), 1
    reply = await nc.request(subject, payload, timeout=2)
    while "Retry-After" in (reply.headers or {}) and wait < 10:
        await asyncio.sleep(wait * random.uniform(0.5, 1.5))
        reply, wait = await nc.request(subject, payload, timeout=2), 2 * wait
    answer = json.loads(reply.data)
    if "error" in answer:
        sys.exit(f"{subject}: {answer['error']['message']}")
    return answer


async def tell(e):
    if not isinstance(e, ConnectionRefusedError):  # of which the last line tells
        print(e, file=sys.stderr)


async def main(url):
    try:  # for a second or two, while a decider starts
        nc = await nats.connect(url, error_cb=tell, max_reconnect_attempts=2, reconnect_time_wait=0.5)
    except nats.errors.NoServersError:
        sys.exit(f"nobody answers at {url}: start a decider")
    context = {"features": {"hour": 14, "country": "DE"}, "actions": ["banner", "video", "none"]}
    try:
        decision = await ask(nc, "hindsight.decide", context)
    except nats.errors.NoRespondersError:
        sys.exit(f"hindsight.decide: nobody answers at {url}; the decider there has another model")
    print(decision["id"], decision["action"], decision["propensity"])
    print(await ask(nc, "hindsight.outcome", {"id": decision["id"], "reward": 1}))
    await nc.close()


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "nats://127.0.0.1:4222"))
