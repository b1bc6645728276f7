// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The same programs in every language, for tests of contexts.

#include <map>
#include <string>

namespace sw::interpreter {

struct Programs {
  std::string one;       ///< sets n to 1
  std::string add;       ///< adds 1 to n; the value is n
  std::string add_fail;  ///< adds 1 to n and raises an error
  std::string loop;      ///< adds 1 to n and loops for ever
  std::string ends;      ///< adds 1 to n and does not react to being asked to stop
  std::string random;
  std::string cwd;
  std::string open_tmp;   ///< writes "one " to a file in /tmp and leaves it open
  std::string write_tmp;  ///< writes "two" to it and closes it; the value is what it holds
  /// prints "bye\n" when the context ends, and then has "left" in /workspace/left
  std::string at_end;
  std::string log_one;    ///< opens /workspace/log and writes "one\n"
  std::string log_two;    ///< writes "two\n" to it
  std::string log_three;  ///< writes "three\n" to it
};

inline const std::map<std::string, Programs>& programs() {
  static const std::map<std::string, Programs> all = {
      {"python",
       {.one = "n = 1",
        .add = "n += 1\nn",
        .add_fail = "n += 1\n1 / 0",
        .loop = "n += 1\nwhile True: pass",
        .ends = "n += 1\nwhile True:\n  try:\n    while True: pass\n  except BaseException: pass",
        .random = "import random, uuid, secrets, numpy as np\n"
                  "str((random.random(), uuid.uuid4(), secrets.token_hex(4), np.random.rand()))",
        .cwd = "import os; print(os.getcwd())",
        .open_tmp = "f = open('/tmp/f', 'w'); f.write('one ')",
        .write_tmp = "f.write('two'); f.close(); print(open('/tmp/f').read())",
        .at_end = "import atexit; atexit.register(print, 'bye')\n"
                  "left = open('/workspace/left', 'w'); left.write('left')",
        .log_one = "log = open('/workspace/log', 'w'); log.write('one\\n'); log.flush()",
        .log_two = "log.write('two\\n'); log.flush()\n",
        .log_three = "log.write('three\\n'); log.flush()"}},
      {"javascript",
       {.one = "let n = 1; undefined",
        .add = "n += 1",
        .add_fail = "n += 1; null.x",
        .loop = "n += 1; for (;;);",
        .ends = "n += 1; const a = new Uint8Array(64e6); for (;;) a.fill(1).sort()",
        .random = "Math.random() + crypto.randomUUID()",
        .cwd = "console.log(process.cwd())",
        .open_tmp = "const f = fs.openSync('/tmp/f', 'w'); fs.writeSync(f, 'one ')",
        .write_tmp = "fs.writeSync(f, 'two'); fs.closeSync(f); "
                     "console.log(fs.readFileSync('/tmp/f', 'utf8'))",
        .at_end = "process.on('exit', () => { fs.writeFileSync('left', 'left'); "
                  "console.log('bye') })",
        .log_one = "let log = fs.openSync('/workspace/log', 'w'); fs.writeSync(log, 'one\\n')",
        .log_two = "fs.writeSync(log, 'two\\n');\n",
        .log_three = "fs.writeSync(log, 'three\\n')"}},
      {"perl",
       {.one = "my $n = 1; undef",
        .add = "$n += 1",
        .add_fail = "$n += 1; die 'x'",
        .loop = "$n += 1; 1 while 1",
        .ends = "$n += 1; while (1) { eval { 1 while 1 } }",
        .random = "rand()",
        .cwd = "use Cwd; print getcwd(), \"\\n\"",
        .open_tmp = "open(our $f, '>', '/tmp/f') or die $!; print $f 'one '; undef",
        .write_tmp =
            "print $f 'two'; close $f; open(my $in, '<', '/tmp/f'); print scalar(<$in>), \"\\n\"",
        .at_end = "END { print \"bye\\n\" } open(our $left, '>', '/workspace/left') or die $!; "
                  "print $left 'left'; undef",
        .log_one =
            "use IO::Handle; open(our $log, '>', '/workspace/log') or die $!; $log->autoflush(1); "
            "print $log \"one\\n\"; undef",
        .log_two = "print $log \"two\\n\";\n",
        .log_three = "print $log \"three\\n\"; undef"}},
      {"ruby",
       {.one = "n = 1; nil",
        .add = "n += 1",
        .add_fail = "n += 1; raise 'x'",
        .loop = "n += 1; loop { }",
        .ends = "n += 1; begin; loop { }; rescue Exception; retry; end",
        .random = "require 'securerandom'; [rand, SecureRandom.hex(4), Random.new.rand].to_s",
        .cwd = "puts Dir.pwd",
        .open_tmp = "f = File.open('/tmp/f', 'w'); f.write('one '); nil",
        .write_tmp = "f.write('two'); f.close; puts File.read('/tmp/f')",
        .at_end = "at_exit { puts 'bye' }; left = File.open('/workspace/left', 'w'); "
                  "left.write('left'); nil",
        .log_one = "log = File.open('/workspace/log', 'w'); log.sync = true; log.puts('one'); nil",
        .log_two = "log.puts('two')\n",
        .log_three = "log.puts('three')"}},
  };
  return all;
}

}  // namespace sw::interpreter
