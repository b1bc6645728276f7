# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# JSON out and in again.
import json
import time

DATA = [{"id": i, "name": "name %d" % i, "tags": ["a", "b", str(i)], "score": i / 4, "ok": i % 3 == 0} for i in range(2000)]


def work():
    text = json.dumps(DATA)
    return len(text) + len(json.loads(text))


best = float("inf")
for _ in range(7):
    start = time.perf_counter()
    result = work()
    best = min(best, time.perf_counter() - start)
print(f"{best * 1000:.3f} {result}")
