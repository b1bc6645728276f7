// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// JSON out and in again.
const data = [];
for (let i = 0; i < 2000; i++) {
  data.push({ id: i, name: "name " + i, tags: ["a", "b", String(i)], score: i / 4, ok: i % 3 === 0 });
}

function work() {
  const text = JSON.stringify(data);
  return text.length + JSON.parse(text).length;
}

let best = Infinity;
let result;
for (let round = 0; round < 7; round++) {
  const start = performance.now();
  result = work();
  best = Math.min(best, performance.now() - start);
}
console.log(best.toFixed(3) + " " + result);
