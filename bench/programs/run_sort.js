// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Sorting numbers, and records by a key.
const numbers = [];
let state = 1;
for (let i = 0; i < 20000; i++) {
  state = Number((BigInt(state) * 1103515245n + 12345n) % 2147483648n);
  numbers.push(state);
}

function work() {
  const ordered = [...numbers].sort((a, b) => a - b);
  const byKey = [...numbers].sort((a, b) => (a % 1000) - (b % 1000));
  return ordered[5000] + byKey[5000];
}

let best = Infinity;
let result;
for (let round = 0; round < 7; round++) {
  const start = performance.now();
  result = work();
  best = Math.min(best, performance.now() - start);
}
console.log(best.toFixed(3) + " " + result);
