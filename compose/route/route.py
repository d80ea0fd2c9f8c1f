"""Asks which model to call, calls it, and reports what it was worth: python3 route.py PROMPT"""
import os, sys, time
import requests  # pip install requests

route = os.environ.get("ROUTE", "http://127.0.0.1:8080")
models, key = os.environ["MODELS"], os.environ.get("MODELS_KEY", "")  # MODELS=https://openrouter.ai/api/v1
prompt = sys.argv[1]


def post(url, body, headers={}):
    answer = requests.post(url, json=body, headers=headers, timeout=60)
    answer.raise_for_status()
    return answer.json()


decision = post(f"{route}/v1/decide", {"features": {"prompt": sys.argv[1]}})
began = time.monotonic()
answer = post(f"{models}/chat/completions", {"model": decision["action"], "messages": [{"role": "user", "content": prompt}]},
              {"Authorization": f"Bearer {key}"})
known = {"tokens": answer["usage"]["completion_tokens"], "latency_ms": 1000 * (time.monotonic() - began)}
post(f"{route}/v1/outcome", {"id": decision["id"], "outcomes": known})
print(decision["action"], answer["choices"][0]["message"]["content"])
score = input("how good was that, from 0 to 1? ")  # a judge, a thumb, a ticket: hours later, from another program
print(post(f"{route}/v1/outcome", {"id": decision["id"], "outcomes": {"quality": float(score)}}))
