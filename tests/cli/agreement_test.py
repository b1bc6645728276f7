# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Files and memory are of the same run, whenever the process is killed: they are stored one after the other."""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop(1)
KILLS = int(os.environ.get("SW_KILLS", "25"))
# The first adds one to a number in memory and writes it into a file, the second tells both.
PROGRAMS = {
    "javascript": ("globalThis.n = (globalThis.n ?? 0) + 1; fs.writeFileSync('n', String(n))",
                   "[globalThis.n ?? 0, fs.existsSync('n') ? Number(fs.readFileSync('n', 'utf8')) : 0]"),
    "perl": ("our $n; $n += 1; open(my $file, '>', 'n') or die; print $file $n; close $file",
             "our $n; [$n // 0, -e 'n' ? do { open(my $file, '<', 'n') or die; <$file> + 0 } : 0]"),
    "python": ("n = globals().get('n', 0) + 1; open('n', 'w').write(str(n))",
               "import os; [globals().get('n', 0), int(open('n').read()) if os.path.exists('n') else 0]"),
    "ruby": ("$n = $n.to_i + 1; File.write('n', $n.to_s)",
             "[$n.to_i, File.exist?('n') ? File.read('n').to_i : 0]"),
}


class Agreement(unittest.TestCase):
    def test_files_and_memory_agree_after_every_kill(self):
        for language, (step, look) in PROGRAMS.items():
            with self.subTest(language):
                self.check(language, step, look)

    def check(self, language, step, look):
        seed = int(os.environ.get("SW_SEED", time.time_ns() % 2**32))
        moments = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder:
            command = [PROGRAM, "run", "--data", str(pathlib.Path(folder, "data")), "--sandbox", "s", "-l", language]

            def run(code):
                done = subprocess.run([*command, "--json", "-c", code], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                return json.loads(done.stdout)

            began = time.monotonic()
            run(step)
            usual = time.monotonic() - began
            known = 1
            for kill in range(KILLS):
                process = subprocess.Popen([*command, "-c", step], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(moments.uniform(0, 1.2 * usual))  # not to wait for anything: the moment is what is tried
                process.kill()
                process.wait()
                answer = run(look)
                memory, file = answer["results"][0]["json"]
                where = f"seed {seed}, kill {kill}: {answer['context']}"
                self.assertEqual(memory, file, where)
                self.assertIn(memory, (known, known + 1), where)
                known = memory


if __name__ == "__main__":
    unittest.main()
