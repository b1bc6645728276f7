// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Calls of a function: fib(27), 630,000 calls.
function fib(n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

function work() {
  return fib(27);
}

let best = Infinity;
let result;
for (let round = 0; round < 7; round++) {
  const start = performance.now();
  result = work();
  best = Math.min(best, performance.now() - start);
}
console.log(best.toFixed(3) + " " + result);
