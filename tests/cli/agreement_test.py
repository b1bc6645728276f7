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
# Adds one to a number in memory and writes it into a file; then tells both.
STEP = "globalThis.n = (globalThis.n ?? 0) + 1; fs.writeFileSync('n', String(n))"
LOOK = "[globalThis.n ?? 0, fs.existsSync('n') ? Number(fs.readFileSync('n', 'utf8')) : 0]"


class Agreement(unittest.TestCase):
    def test_files_and_memory_agree_after_every_kill(self):
        seed = int(os.environ.get("SW_SEED", time.time_ns() % 2**32))
        moments = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder:
            command = [PROGRAM, "run", "--data", str(pathlib.Path(folder, "data")), "--sandbox", "s", "-l", "javascript"]

            def run(code):
                done = subprocess.run([*command, "--json", "-c", code], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                return json.loads(done.stdout)

            began = time.monotonic()
            run(STEP)
            usual = time.monotonic() - began
            known = 1
            for kill in range(KILLS):
                process = subprocess.Popen([*command, "-c", STEP], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(moments.uniform(0, 1.2 * usual))  # not to wait for anything: the moment is what is tried
                process.kill()
                process.wait()
                answer = run(LOOK)
                memory, file = answer["results"][0]["json"]
                where = f"seed {seed}, kill {kill}: {answer['context']}"
                self.assertEqual(memory, file, where)
                self.assertIn(memory, (known, known + 1), where)
                known = memory


if __name__ == "__main__":
    unittest.main()
