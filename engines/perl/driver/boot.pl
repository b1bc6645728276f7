# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# Runs once, at bake: loads the common modules (@modules is put before this text), without importing anything, and
# returns the sub by which the driver shows what JSON cannot hold. That one keeps references to all it uses, so that
# what a program does to Data::Dumper stays the program's own affair.
for my $module (@modules) {
    (my $file = "$module.pm") =~ s{::}{/}g;
    require $file;
}
# The C library's own ends the whole instance.
{ no warnings 'redefine'; *POSIX::abort = sub { kill ABRT => $$ } }
require Data::Dumper;
my $write = \&Data::Dumper::Dumpxs;
sub {
    # All that Data::Dumper's own `new` would take from its package's variables, which are the program's to set.
    my $text = $write->({
        level => 0, indent => 1, pad => '', xpad => '  ', apad => '', sep => "\n", pair => ' => ', varname => 'VAR', seen => {},
        todump => [$_[0]], names => [], terse => 1, purity => 0, useqq => 0, useperl => 0, freezer => '', toaster => '',
        deepcopy => 0, quotekeys => 1, bless => 'bless', maxdepth => 0, maxrecurse => 1000, sortkeys => 1, deparse => 0,
        noseen => 0, trailingcomma => 0,
    });
    substr($text, -1) = '' if substr($text, -1) eq "\n";  # not chomp, which asks $/
    $text;
};
