// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Nested loops over small integers.
function work() {
  let total = 0;
  for (let i = 0; i < 1000; i++) {
    for (let j = 0; j < 1000; j++) total = (total + i * j) % 1000003;
  }
  return total;
}

let best = Infinity;
let result;
for (let round = 0; round < 7; round++) {
  const start = performance.now();
  result = work();
  best = Math.min(best, performance.now() - start);
}
console.log(best.toFixed(3) + " " + result);
