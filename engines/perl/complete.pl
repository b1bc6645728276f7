# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# Is $ENV{SOURCE} a whole cell, or does it want more lines? Its value, 1 or 0, is the answer. The code is compiled as
# the body of a sub that nobody calls; what wants more says that something is missing at its end.
my $source = $ENV{SOURCE};
my $lines = () = $source =~ /\n/g;
local $SIG{__WARN__} = sub { };
eval "no strict; return sub {\n$source\n;\n};";
my $error = $@;
my $wants_more = $error =~ /^Missing right (?:curly|square)/m
  || $error =~ /^Can't find string terminator/m
  || $error =~ /anywhere before EOF/
  || $error =~ /, at EOF\b/
  || $error =~ /not terminated at/;
# An extra closing brace ends the sub too early, which is an error of its own and not a wish for more.
$wants_more && $error !~ /^Unmatched right/m ? 0 : 1;
