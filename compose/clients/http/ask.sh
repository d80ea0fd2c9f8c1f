# Asks for a decision and reports what it was worth: sh ask.sh [URL]
set -eu
url=${1:-http://127.0.0.1:8080} id=$(date +%s)-$$
curl --fail-with-body -sS "$url/v1/decide" \
	--json '{"id":"'"$id"'","features":{"hour":14,"country":"DE"},"actions":["banner","video","none"]}'
curl --fail-with-body -sS "$url/v1/outcome" --json '{"id":"'"$id"'","reward":1}'
