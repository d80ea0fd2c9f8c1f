"""Asks for a decision and reports what it was worth: python3 ask_httpx.py [URL]"""
import asyncio, sys
import httpx  # pip install httpx


async def main(url):
    async with httpx.AsyncClient(base_url=url, timeout=5) as client:
        context = {"features": {"hour": 14, "country": "DE"}, "actions": ["banner", "video", "none"]}
        answer = await client.post("/v1/decide", json=context)
        decision = answer.raise_for_status().json()
        print(decision["id"], decision["action"], decision["propensity"])
        answer = await client.post("/v1/outcome", json={"id": decision["id"], "reward": 1})
        print(answer.raise_for_status().text)


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"))
