"""Asks for a decision and reports what it was worth: python3 ask_requests.py [URL]"""
import sys
import requests  # pip install requests

url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
with requests.Session() as client:
    context = {"features": {"hour": 14, "country": "DE"}, "actions": ["banner", "video", "none"]}
    answer = client.post(f"{url}/v1/decide", json=context, timeout=5)
    answer.raise_for_status()
    decision = answer.json()
    print(decision["id"], decision["action"], decision["propensity"])
    answer = client.post(f"{url}/v1/outcome", json={"id": decision["id"], "reward": 1}, timeout=5)
    answer.raise_for_status()
    print(answer.text)
