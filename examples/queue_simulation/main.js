// A small simulation: customers at a counter. How long do they wait with one, two or three clerks?

// A generator of our own with a fixed seed, so that each run shows the same numbers.
function* uniform(seed) {
  for (let state = BigInt(seed); ; ) {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    yield Number(state >> 11n) / 2 ** 53;
  }
}

class Simulation {
  #random = uniform(2025);

  /** A time between events that happen `rate` times a minute on average. */
  #interval(rate) {
    return -Math.log(1 - this.#random.next().value) / rate;
  }

  run({ clerks, customers, arrivals, served }) {
    const free = new Array(clerks).fill(0); // when each clerk is next free
    const waits = [];
    let now = 0;
    for (let i = 0; i < customers; i++) {
      now += this.#interval(arrivals);
      const clerk = free.indexOf(Math.min(...free));
      const start = Math.max(now, free[clerk]);
      free[clerk] = start + this.#interval(served);
      waits.push(start - now);
    }
    waits.sort((a, b) => a - b);
    const mean = waits.reduce((sum, wait) => sum + wait, 0) / customers;
    return { clerks, mean, worst: waits[waits.length - 1], nobody: waits.filter((wait) => wait === 0).length / customers };
  }
}

console.log("clerks   mean wait  longest  served at once");
for (const clerks of [1, 2, 3]) {
  const { mean, worst, nobody } = new Simulation().run({ clerks, customers: 20000, arrivals: 0.9, served: 1 });
  const minutes = (value) => value.toFixed(2).padStart(6) + " min";
  console.log(`${clerks}       ${minutes(mean)} ${minutes(worst)}  ${(nobody * 100).toFixed(1).padStart(5)} %`);
}
