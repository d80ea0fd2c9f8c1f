"""Prints the decisions in the log of a running decider: read.py [DIR [NAME]]."""
import asyncio, json, sys
import msgpack, nats  # pip install nats-py msgpack


async def main(folder, name):
    access = json.load(open(f"{folder}/connect.json"))
    nc = await nats.connect(access["url"], user=access["user"], password=access["password"],
                            inbox_prefix=access["inbox"])  # which nobody else can read
    js = nc.jetstream()
    sub = await js.subscribe(f"{name}.decisions.0", ordered_consumer=True)
    while True:
        try:
            m = await sub.next_msg(timeout=1)
        except asyncio.TimeoutError:
            break
        if not (m.headers or {}).get("hindsight-type"):  # else a control record
            d = msgpack.unpackb(m.data)
            print(d["n"], d["id"], d["action"], round(d["propensity"], 3), "learned", d["learned"])
    await nc.close()


folder = sys.argv[1] if len(sys.argv) > 1 else "hindsight-data"
asyncio.run(main(folder, sys.argv[2] if len(sys.argv) > 2 else "hindsight"))
