"""Asks a running decider for a decision and reports what it was worth."""
import asyncio, json, sys
import nats  # pip install nats-py


async def main(url):
    nc = await nats.connect(url)
    context = {"features": {"hour": 14, "country": "DE"}, "actions": ["banner", "video", "none"]}
    reply = await nc.request("hindsight.decide", json.dumps(context).encode(), timeout=2)
    decision = json.loads(reply.data)
    print(decision["id"], decision["action"], decision["propensity"])
    outcome = {"id": decision["id"], "reward": 1}
    reply = await nc.request("hindsight.outcome", json.dumps(outcome).encode(), timeout=2)
    print(json.loads(reply.data))
    await nc.close()


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "nats://127.0.0.1:4222"))
