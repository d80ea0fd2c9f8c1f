"""Prints a topic in the log of a running decider: read.py [DIR [TOPIC]].

TOPIC is hindsight.decisions unless said, of another model shop.decisions; or .feedback, or .rejects, which has
each context and outcome that could not be used, with the reason and its detail.
"""
import asyncio, json, sys
import msgpack, nats  # pip install nats-py msgpack


def text(value):
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


async def tell(e):
    if not isinstance(e, ConnectionRefusedError):  # of which the last line tells
        print(e, file=sys.stderr)


async def main(folder, topic):
    try:
        access = json.load(open(f"{folder}/connect.json"))
    except FileNotFoundError:
        sys.exit(f"{folder}/connect.json is not there: give the folder of a decider's log")
    try:
        nc = await nats.connect(access["url"], user=access["user"], password=access["password"], error_cb=tell,
                                inbox_prefix=access["inbox"],  # which nobody else can read
                                max_reconnect_attempts=2, reconnect_time_wait=0.5)
        sub = await nc.jetstream().subscribe(f"{topic}.0", ordered_consumer=True)
    except nats.errors.NoServersError:
        sys.exit(f"nobody answers at {access['url']}: start a decider on {folder}")
    except nats.js.errors.NotFoundError:
        sys.exit(f"the log in {folder} has no topic {topic}")
    pending = 1
    while pending:
        try:
            m = await sub.next_msg(timeout=1)
        except asyncio.TimeoutError:  # nothing is there
            break
        pending = m.metadata.num_pending
        if (m.headers or {}).get("hindsight-type"):  # a control record
            continue
        d = json.loads(m.data) if m.data[:1] == b"{" else msgpack.unpackb(m.data)
        if topic.endswith(".decisions"):
            print(d["n"], d["id"], d["action"], round(d["propensity"], 3), "learned", d["learned"])
        else:
            print(json.dumps(d, default=text))
    await nc.close()


folder = sys.argv[1] if len(sys.argv) > 1 else "hindsight-data"
topic = sys.argv[2] if len(sys.argv) > 2 else "hindsight"
asyncio.run(main(folder, topic if "." in topic else topic + ".decisions"))
