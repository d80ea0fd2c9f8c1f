"""Evaluates the flag shop for 20 visitors, twice, and reports rewards: 1 for blue, else 0."""
import json
import sys

import requests
from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext

url = sys.argv[1]
api.set_provider(OFREPProvider(url))
flags = api.get_client()
evaluations = []
for i in range(20):
    first, again = (
        flags.get_string_details("shop", "none", EvaluationContext(f"py-{i}", {"hour": hour, "tags": ["new"]}))
        for hour in (7, 8)
    )
    assert first == again, (first, again)
    reward = {"details": {"value": float(first.variant == "blue")}, "context": {"targetingKey": f"py-{i}"}}
    requests.post(f"{url}/ofrep/v1/track/shop", json=reward, timeout=5).raise_for_status()
    evaluations.append({"value": first.value, "variant": first.variant, "reason": first.reason, **first.flag_metadata})
other = flags.get_string_details("other", "none", EvaluationContext("py-0"))
nobody = flags.get_string_details("shop", "none")
print(json.dumps({"evaluations": evaluations, "other": other.error_code, "nobody": nobody.error_code}))
