"""The calls of Azure Personalizer to a running decider; PERSONALIZER.md says what stands for what.

personalizer.py [--nats URL] [--model NAME] rank REQUEST.json | reward EVENT-ID VALUE | activate EVENT-ID
personalizer.py evaluate LOG.dsjson [FLAGS of replayer backtest]
"""
import argparse, asyncio, json, random, subprocess, sys, uuid
import nats  # pip install nats-py


def flat(value, name="", out=None):
    """One object of numbers, texts and booleans: keys are joined by dots, objects in a list belong to the
    list's own name, other elements have their place in it behind them; keys that begin with _ are no features."""
    out = {} if out is None else out
    if isinstance(value, dict):
        for key, inner in value.items():
            if not key.startswith("_"):
                flat(inner, f"{name}.{key}" if name else key, out)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            flat(inner, name if isinstance(inner, dict) else f"{name}.{i}" if name else str(i), out)
    elif value is not None:
        out[name] = value
    return out


def context(request):
    """What we ask for a Rank request. The first action that is not excluded is the default one."""
    excluded = request.get("excludedActions") or []
    actions = [{"name": a["id"], "features": flat(a.get("features") or [])}
               for a in request["actions"] if a["id"] not in excluded]
    return {"id": request.get("eventId") or str(uuid.uuid4()), "features": flat(request.get("contextFeatures") or []),
            "actions": actions, "baseline": actions[0]["name"]}


def response(decision):
    """The Rank response: the action that was drawn first, the others by their probabilities."""
    ranking = [{"id": a, "probability": p} for a, p in decision["propensities"].items()]
    ranking.sort(key=lambda r: (r["id"] != decision["action"], -r["probability"], r["id"]))
    return {"ranking": ranking, "eventId": decision["id"], "rewardActionId": decision["action"]}


async def ask(nc, subject, body):
    """Sends a request, and again where the answer is "not now", after longer each time and at random: with the same
    id, and the same bytes, a decision is sent again. Keys are sorted as the Go program sorts them, so that each gets
    the other's decisions."""
    payload = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    for attempt in range(16):
        await asyncio.sleep(min(1, 0.05 * 2**attempt) * random.uniform(0.5, 1.5) if attempt else 0)
        try:
            reply = await nc.request(subject, payload, timeout=2)
        except (nats.errors.TimeoutError, nats.errors.NoRespondersError):
            continue
        headers = reply.headers or {}
        if not headers.get("Nats-Service-Error"):
            return json.loads(reply.data)
        if headers.get("Nats-Service-Error-Code") not in ("429", "503"):
            sys.exit(f"{subject}: {headers['Nats-Service-Error']}")
    sys.exit(f"{subject}: no answer at {nc.connected_url.netloc}; a decider with this model must run there")


async def tell(e):
    if not isinstance(e, ConnectionRefusedError):  # of which the last line tells
        print(e, file=sys.stderr)


async def main(args):
    try:  # for a second or two, while a decider starts
        nc = await nats.connect(args.nats, error_cb=tell, max_reconnect_attempts=2, reconnect_time_wait=0.5)
    except nats.errors.NoServersError:
        sys.exit(f"nobody answers at {args.nats}: start a decider")
    if args.verb == "rank":
        with open(args.request) as f:
            decision = await ask(nc, f"{args.model}.decide", context(json.load(f)))
        print(json.dumps(response(decision), indent=2))
    elif args.verb == "reward":  # under an id of its own: where rewards are summed, one that is sent twice counts once
        await ask(nc, f"{args.model}.outcome", {"id": args.event, "reward": args.value, "outcome_id": str(uuid.uuid4())})
    elif args.verb == "activate":
        await ask(nc, f"{args.model}.outcome", {"id": args.event, "activated": True})
    await nc.close()


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--nats", default="nats://127.0.0.1:4222", help="where the decider answers")
    p.add_argument("--model", default="hindsight", help="name of its model")
    verbs = p.add_subparsers(dest="verb", required=True)
    verbs.add_parser("rank").add_argument("request")
    reward = verbs.add_parser("reward")
    reward.add_argument("event")
    reward.add_argument("value", type=float)
    verbs.add_parser("activate").add_argument("event")
    evaluate = verbs.add_parser("evaluate")
    evaluate.add_argument("log")
    evaluate.add_argument("flags", nargs=argparse.REMAINDER)
    args = p.parse_args()
    if args.verb == "evaluate":  # what each policy would have earned, with intervals
        sys.exit(subprocess.call(["replayer", "backtest", "--data", args.log, *args.flags]))
    asyncio.run(main(args))
