# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0

# Sorting numbers, once by a key.
state = 1
NUMBERS = Array.new(20_000) { state = (state * 1_103_515_245 + 12_345) % 2_147_483_648 }

def work
  ordered = NUMBERS.sort
  by_key = NUMBERS.sort_by.with_index { |n, i| [n % 1000, i] }
  ordered[5000] + by_key[5000]
end

best, result = Array.new(7) {
  start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  value = work
  [Process.clock_gettime(Process::CLOCK_MONOTONIC) - start, value]
}.min_by(&:first)
printf "%.3f %s\n", best * 1000, result
