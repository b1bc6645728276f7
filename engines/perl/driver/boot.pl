# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# Runs once, at bake: loads the common modules (@modules is put before this text), without importing anything, and
# returns the sub by which the driver shows what JSON cannot hold. That one keeps references to all it uses, so that
# what a program does to Data::Dumper stays the program's own affair.
for my $module (@modules) {
    (my $file = "$module.pm") =~ s{::}{/}g;
    require $file;
}
require Data::Dumper;
my ($make, $write) = (\&Data::Dumper::new, \&Data::Dumper::Dumpxs);
sub {
    my $dumper = $make->('Data::Dumper', [$_[0]], []);
    @$dumper{qw(terse indent sortkeys useqq useperl deepcopy purity quotekeys maxdepth deparse sparseseen)} =
        (1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0);
    @$dumper{qw(pad varname pair freezer toaster trailingcomma)} = ('', 'VAR', ' => ', '', '', 0);
    my $text = $write->($dumper);
    chomp $text;
    $text;
};
