// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// A dictionary that grows, is read and shrinks.
function work() {
  const table = new Map();
  for (let i = 0; i < 20000; i++) table.set((i * 7919) % 65521, i);
  let hits = 0;
  for (let i = 0; i < 20000; i++) hits += table.get(i) ?? 0;
  for (let i = 0; i < 20000; i += 2) table.delete(i);
  return hits + table.size;
}

let best = Infinity;
let result;
for (let round = 0; round < 7; round++) {
  const start = performance.now();
  result = work();
  best = Math.min(best, performance.now() - start);
}
console.log(best.toFixed(3) + " " + result);
