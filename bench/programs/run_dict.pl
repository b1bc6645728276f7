# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# A hash that grows, is read and shrinks.
use strict;
use warnings;
use Time::HiRes 'time';

sub work {
    my %table;
    $table{$_ * 7919 % 65521} = $_ for 0 .. 19999;
    my $hits = 0;
    $hits += $table{$_} // 0 for 0 .. 19999;
    for (my $i = 0; $i < 20000; $i += 2) { delete $table{$i} }
    return $hits + keys %table;
}

my ($best, $result) = (9e9);
for (1 .. 7) {
    my $start = time;
    $result = work();
    my $took = time - $start;
    $best = $took if $took < $best;
}
printf "%.3f %s\n", $best * 1000, $result;
