# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Runs every example with the real program, as `./dev run examples/NAME` does, and compares what it prints.

usage: examples_test.py REPOSITORY PROGRAM NAME
"""
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

ROOT = pathlib.Path(sys.argv[1])
PROGRAM = sys.argv[2]
NAME = sys.argv[3]
del sys.argv[1:]

# Files that an example must leave in its workspace.
WRITES = {
    "weather_plot": ["plot.png"],
    "order_report": ["report.json"],
    "library_query": ["library.db"],
}


def check_png(data: bytes) -> tuple[int, int]:
    """Decodes a PNG as far as its pixels' bytes; raises ValueError if anything is wrong. Gives width and height."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("not a PNG")
    position, packed, size, rows_of = 8, b"", None, None
    kind = b""
    while kind != b"IEND":
        if position + 12 > len(data):
            raise ValueError("cut short")
        (length,), kind = struct.unpack(">I", data[position:position + 4]), data[position + 4:position + 8]
        body = data[position + 8:position + 8 + length]
        (crc,) = struct.unpack(">I", data[position + 8 + length:position + 12 + length])
        if crc != zlib.crc32(kind + body):
            raise ValueError(f"chunk {kind!r} is damaged")
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
            size, rows_of = (width, height), 1 + (width * channels * depth + 7) // 8
        elif kind == b"IDAT":
            packed += body
        position += 12 + length
    pixels = zlib.decompress(packed)
    if size is None or len(pixels) != size[1] * rows_of:
        raise ValueError("wrong number of pixels")
    if len(set(pixels)) < 16:
        raise ValueError("an empty picture")
    return size


class Example(unittest.TestCase):
    def test_prints_what_is_expected(self):
        with tempfile.TemporaryDirectory() as folder:
            workspace = pathlib.Path(folder, NAME)
            shutil.copytree(ROOT / "examples" / NAME, workspace)
            (main,) = workspace.glob("main.*")
            expected = (workspace / "expected.txt").read_text(encoding="utf-8")
            done = subprocess.run(
                [PROGRAM, "run", "--workspace", str(workspace), str(main)],
                stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(done.stdout, expected)
            for name in WRITES.get(NAME, []):
                data = (workspace / name).read_bytes()
                self.assertGreater(len(data), 0, name)
                if name.endswith(".png"):
                    self.assertEqual(check_png(data), (800, 400))


class Png(unittest.TestCase):
    def test_damage_is_noticed(self):
        def chunk(kind, body):
            return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

        rows = b"".join(b"\0" + bytes(range(30)) for _ in range(4))
        png = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 10, 4, 8, 2, 0, 0, 0))
               + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
        self.assertEqual(check_png(png), (10, 4))
        for bad in (png[:-1], b"GIF" + png[3:], png.replace(b"\x08\x02", b"\x08\x00", 1)):
            with self.assertRaises(ValueError):
                check_png(bad)


if __name__ == "__main__":
    unittest.main()
