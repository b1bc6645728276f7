# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# Sorting numbers, and records by a key.
use strict;
use warnings;
use Time::HiRes 'time';

my $state = 1;
my @numbers = map { $state = ($state * 1103515245 + 12345) % 2147483648 } 1 .. 20000;

sub work {
    my @ordered = sort { $a <=> $b } @numbers;
    my @by_key = sort { $a % 1000 <=> $b % 1000 } @numbers;
    return $ordered[5000] + $by_key[5000];
}

my ($best, $result) = (9e9);
for (1 .. 7) {
    my $start = time;
    $result = work();
    my $took = time - $start;
    $best = $took if $took < $best;
}
printf "%.3f %s\n", $best * 1000, $result;
