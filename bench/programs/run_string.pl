# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# Building, splitting and searching text.
use strict;
use warnings;
use Time::HiRes 'time';

sub work {
    my @parts;
    push @parts, "item" . $_ . "=" . $_ * $_ for 0 .. 7999;
    my $text = join ";", @parts;
    my $found = 0;
    for my $pair (split /;/, $text) {
        my ($name, $value) = split /=/, $pair;
        $found++ if index($name, "7") >= 0 && substr($value, -1) eq "9";
    }
    (my $upper = uc $text) =~ s/ITEM/x/g;
    return length($upper) + $found;
}

my ($best, $result) = (9e9);
for (1 .. 7) {
    my $start = time;
    $result = work();
    my $took = time - $start;
    $best = $took if $took < $best;
}
printf "%.3f %s\n", $best * 1000, $result;
