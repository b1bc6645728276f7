"""A text parser: an access log with lines of another kind in it."""
import re
from collections import Counter, defaultdict

LINE = re.compile(
    r"(?P<host>\S+) \[(?P<time>[^\]]+)\] "
    r'"(?P<method>[A-Z]+) (?P<path>\S+) HTTP/[\d.]+" '
    r"(?P<status>\d{3}) (?P<bytes>\d+) (?P<ms>\d+)ms"
)

statuses, hosts, times, skipped = Counter(), Counter(), defaultdict(list), []
with open("/workspace/access.log") as log:
    for number, line in enumerate(log, 1):
        match = LINE.fullmatch(line.rstrip("\n"))
        if match is None:
            skipped.append(number)
            continue
        statuses[match["status"]] += 1
        hosts[match["host"]] += 1
        times[match["method"], match["path"]].append(int(match["ms"]))

print(f"{statuses.total()} requests, lines not understood: {skipped}")
print("status:", dict(sorted(statuses.items())))
print("busiest hosts:", sorted(hosts.items(), key=lambda item: (-item[1], item[0]))[:3])
print(f"{'request':24} {'count':>5} {'median':>7} {'worst':>6}")
for (method, path), ms in sorted(times.items(), key=lambda item: (-len(item[1]), item[0])):
    ms.sort()
    print(f"{method + ' ' + path:24} {len(ms):5} {ms[len(ms) // 2]:4} ms {ms[-1]:3} ms")
