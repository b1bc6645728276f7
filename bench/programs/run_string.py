# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# Building, splitting and searching text.
import time


def work():
    parts = []
    for i in range(8000):
        parts.append("item" + str(i) + "=" + str(i * i))
    text = ";".join(parts)
    found = 0
    for pair in text.split(";"):
        name, value = pair.split("=")
        if "7" in name and value.endswith("9"):
            found += 1
    return len(text.upper().replace("ITEM", "x")) + found


best = float("inf")
for _ in range(7):
    start = time.perf_counter()
    result = work()
    best = min(best, time.perf_counter() - start)
print(f"{best * 1000:.3f} {result}")
