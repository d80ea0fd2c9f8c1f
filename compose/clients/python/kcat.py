"""Turns what kcat -f '%h\\n%R%s' prints of the decisions into lines of JSON.

kcat -C -b localhost:9092 -t shop.decisions -o beginning -e -q -f '%h\\n%R%s' | kcat.py
"""
import json, struct, sys
import msgpack  # pip install msgpack

records = sys.stdin.buffer
while line := records.readline():  # the headers; then the length and the bytes of the value
    length = struct.unpack(">i", records.read(4))[0]
    value = records.read(max(length, 0))
    if b"hindsight-type=" in line:  # a control record
        continue
    d = json.loads(value) if value[:1] == b"{" else msgpack.unpackb(value)
    print(json.dumps({k: d[k] for k in d if not isinstance(d[k], bytes)}), flush=True)
