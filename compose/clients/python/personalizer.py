"""Azure Personalizer's own SDKs, with nothing changed but the URL.

personalizer.py [URL [KEY]] ranks 50 times with the SDK of v1.0 (pip install azure-cognitiveservices-personalizer), then
with that of 2022-09-01-preview (pip install azure-ai-personalizer), and rewards the salad. Then it fills two slots.
"""
import json, os, sys
from azure.ai.personalizer import PersonalizerClient as Preview
from azure.cognitiveservices.personalizer import PersonalizerClient as V1
from azure.cognitiveservices.personalizer.models import RankableAction, RankRequest
from azure.core.credentials import AzureKeyCredential
from msrest.authentication import CognitiveServicesCredentials

url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
key = sys.argv[2] if len(sys.argv) > 2 else "none is needed on loopback"
with open(os.path.join(os.path.dirname(__file__), "../personalizer/rank.json")) as f:
    request = json.load(f)
del request["eventId"]  # each is an event of its own

client = V1(url, CognitiveServicesCredentials(key))
actions = [RankableAction(id=a["id"], features=a["features"]) for a in request["actions"]]
for _ in range(50):
    ranked = client.rank(RankRequest(actions=actions, context_features=request["contextFeatures"],
                                     excluded_actions=request["excludedActions"]))
    client.events.reward(ranked.event_id, 1.0 if ranked.reward_action_id == "salad" else 0.0)
print("v1.0:", ranked.reward_action_id, {a.id: a.probability for a in ranked.ranking})

client = Preview(url, AzureKeyCredential(key))
for _ in range(50):
    ranked = client.rank(request)
    client.reward(ranked["eventId"], {"value": 1.0 if ranked["rewardActionId"] == "salad" else 0.0})
print("2022-09-01-preview:", ranked["rewardActionId"], {a["id"]: a["probability"] for a in ranked["ranking"]})

slots = [{"id": "main", "baselineAction": "pasta", "excludedActions": ["juice"], "features": [{"size": "large"}]},
         {"id": "drink", "baselineAction": "juice"}]
ranked = client.rank_multi_slot({"actions": request["actions"], "contextFeatures": request["contextFeatures"],
                                 "slots": slots})
client.reward_multi_slot(ranked["eventId"], {"reward": [{"slotId": s["id"], "value": 1.0} for s in ranked["slots"]]})
client.activate_multi_slot(ranked["eventId"])
print("slots:", {s["id"]: s["rewardActionId"] for s in ranked["slots"]})
