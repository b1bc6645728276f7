# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# Runs at bake, before the image is written: what a program does first is then done already.
my %h = (a => [1, 2.5, "x"], b => undef);
my @sorted = sort { $a <=> $b } map { $_ * 2 } 3, 1, 2;
my $text = sprintf "%05.2f %s %d", 3.14159, "s", 42;
$text =~ s/(\d+)\.(\d+)/$2.$1/ and length $1;
print {*STDOUT} "";
printf {*STDERR} "";
my @parts = split /,\s*/, "a, b";
eval { die "warm\n" };
eval "1 + 1";
my $when = localtime 0;
open my $file, '<', \"line\n" and my $line = <$file>;
{ list => \@sorted, %h };
