# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""`sandbox-workers files` and `sandboxes`.

usage: files_test.py PROGRAM
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
BOUND_S = 600
ALL_BYTES = bytes(range(256)) * 5


class Commands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.env = {**os.environ, "SANDBOX_WORKERS_DATA": str(self.folder / "data")}
        self.here = self.folder / "here"
        self.here.mkdir()

    def start(self, *arguments, input=b""):
        done = subprocess.run([PROGRAM, *map(str, arguments)], input=input, capture_output=True, timeout=BOUND_S, check=False,
                              cwd=self.here, env=self.env)
        return done.returncode, done.stdout, done.stderr.decode()

    def files(self, *arguments, **options):
        return self.start("files", *arguments, **options)

    def done(self, *arguments, **options):
        status, out, err = self.files(*arguments, **options)
        self.assertEqual((status, err), (0, ""))
        return out

    def refused(self, *arguments, says, **options):
        status, out, err = self.files(*arguments, **options)
        self.assertEqual((status, out, err.count("\n")), (2, b"", 1), err)
        self.assertIn(says, err)

    def names(self, sandbox="s", *options):
        return [entry["path"].removeprefix("/workspace/") for entry in
                json.loads(self.done("ls", sandbox, "-R", "--json", *options))]


class Files(Commands):
    def test_any_bytes_go_in_and_come_out_unchanged(self):
        (self.here / "in").write_bytes(ALL_BYTES)
        self.done("put", "s", "in")
        self.assertEqual(self.done("cat", "s", "in"), ALL_BYTES)
        self.done("get", "s", "in", "out")
        self.assertEqual((self.here / "out").read_bytes(), ALL_BYTES)
        self.done("put", "s", "-", "b", input=ALL_BYTES)
        self.assertEqual(self.done("cat", "s", "/workspace/b"), ALL_BYTES)
        self.assertEqual(self.done("cat", "s", "b"), ALL_BYTES)

    def test_the_program_sees_them(self):
        self.done("put", "s", "-", "data.txt", input=b"from outside")
        run = self.start("run", "--sandbox", "s", "-l", "javascript", "-c",
                         "fs.mkdirSync('d'); fs.writeFileSync('d/e', 'E'); fs.readFileSync('data.txt', 'utf8')")
        self.assertEqual(run, (0, b"'from outside'\n", ""))
        self.assertEqual(self.names(), ["d", "d/e", "data.txt"])

    def test_names_follow_those_of_cp(self):
        (self.here / "f").write_bytes(b"F")
        (self.here / "into").mkdir()
        self.done("put", "s", "f", "/workspace/")
        self.done("put", "s", "f", "g")
        self.start("run", "--sandbox", "s", "-l", "javascript", "-c", "fs.mkdirSync('d')")
        self.done("put", "s", "f", "d")
        self.assertEqual(self.names(), ["d", "d/f", "f", "g"])
        self.done("get", "s", "d/f", "into")
        self.done("get", "s", "g")
        self.done("cp", "s:d/f", "into/h")
        self.assertEqual(sorted(path.name for path in (self.here / "into").iterdir()), ["f", "h"])
        self.assertTrue((self.here / "g").exists())

    def test_folders_are_copied_with_all_that_is_in_them(self):
        tree = self.here / "tree"
        (tree / "deep" / "deeper").mkdir(parents=True)
        (tree / "deep" / "deeper" / "f").write_bytes(ALL_BYTES)
        (tree / "empty").mkdir()
        self.done("cp", "-r", "tree", "s:")
        everything = ["tree", "tree/deep", "tree/deep/deeper", "tree/deep/deeper/f", "tree/empty"]
        self.assertEqual(self.names(), everything)
        self.done("cp", "-r", "tree/.", "t:")
        self.assertEqual(self.names("t"), [name.removeprefix("tree/") for name in everything[1:]])
        self.done("cp", "-r", "s:tree", "u:copy")
        self.assertEqual(self.names("u"), [name.replace("tree", "copy", 1) for name in everything])
        self.done("cp", "-r", "u:copy", "back")
        self.assertEqual((self.here / "back" / "deep" / "deeper" / "f").read_bytes(), ALL_BYTES)
        self.assertTrue((self.here / "back" / "empty").is_dir())
        self.done("cp", "-r", "u:copy", "back")
        self.assertTrue((self.here / "back" / "copy" / "deep").is_dir())
        self.refused("cp", "-r", "u:copy", "back", says="back/copy exists")

    def test_a_file_of_the_host_is_replaced_whole_and_keeps_its_mode(self):
        target = self.here / "f"
        target.write_bytes(b"old")
        target.chmod(0o640)
        self.done("put", "s", "-", "f", input=b"new")
        self.done("get", "s", "f")
        self.assertEqual((target.read_bytes(), target.stat().st_mode & 0o777), (b"new", 0o640))
        self.assertEqual([path.name for path in self.here.iterdir()], ["f"])

    def test_links_on_the_host_are_never_written_through(self):
        other = self.folder / "other"
        other.write_bytes(b"somebody's")
        (self.here / "f").symlink_to(other)
        self.done("put", "s", "-", "f", input=b"new")
        self.done("get", "s", "f")
        self.assertEqual((other.read_bytes(), (self.here / "f").is_symlink()), (b"somebody's", False))

    def test_links_of_a_sandbox_are_left_out_by_name(self):
        self.start("run", "--sandbox", "s", "-l", "javascript", "-c",
                   "fs.mkdirSync('d'); fs.writeFileSync('d/f', 'F'); fs.symlinkSync('/etc', 'd/link')")
        status, _, err = self.files("cp", "-r", "s:d", "d")
        self.assertEqual((status, err), (0, "sandbox-workers: not copied: /workspace/d/link\n"))
        self.assertEqual([path.name for path in (self.here / "d").iterdir()], ["f"])

    def test_what_does_not_fit_leaves_everything_as_it_was(self):
        tree = self.here / "tree"
        tree.mkdir()
        for name in "ab":
            (tree / name).write_bytes(b"x")
            os.truncate(tree / name, 200 << 20)
        self.done("put", "s", "-", "old", input=b"old")
        self.done("cp", "-r", "tree", "s:first")
        status, _, err = self.files("cp", "-r", "tree", "s:second")
        self.assertEqual(status, 3, err)
        self.assertEqual(self.names(), ["first", "first/a", "first/b", "old"])
        os.truncate(tree / "a", (256 << 20) + 1)
        self.refused("put", "s", "tree/a", says="the limit is 268435456 bytes")
        self.assertEqual(self.names(), ["first", "first/a", "first/b", "old"])

    def test_files_are_removed_and_folders_only_if_asked(self):
        self.start("run", "--sandbox", "s", "-l", "javascript", "-c", "fs.mkdirSync('d'); fs.writeFileSync('d/f', 'F')")
        self.refused("rm", "s", "d", says="d is a folder (-r deletes it with all that is in it)")
        self.done("rm", "s", "d/f")
        self.done("rm", "-r", "s", "d")
        self.assertEqual(self.names(), [])

    def test_mistakes_are_named(self):
        self.done("put", "s", "-", "f", input=b"x")
        (self.here / "d").mkdir()
        for arguments, says in [
            (("cat", "s", "absent"), "absent"), (("cat", "s", "/workspace"), "operation on a directory"), (("cat", "t", "f"), "no sandbox 't'"),
            (("ls", "s", "absent"), "absent"), (("ls", "a b"), "Invalid sandbox id"), (("get", "s", "../../etc/passwd"), "../../etc/passwd"),
            (("get", "s", "/workspace"), "`files cp -r` copies folders"), (("put", "s", "d"), "d is a folder (`files cp -r`"),
            (("put", "s", "absent"), "cannot open absent"), (("put", "s", "-"), "stdin has no name"), (("put", "s", "d/../d"), "is a folder"),
            (("get", "s", "f", "no/such/folder"), "no/such"), (("cp", "d", "s:"), "d is a folder (-r copies folders)"),
            (("cp", "a", "b"), "neither is in a sandbox"), (("cp", "absent", "s:"), "cannot open absent"), (("cp", "t:f", "."), "no sandbox 't'"),
            (("rm", "s", "/workspace", "-r"), "/workspace"), (("rm", "s", ""), "must not be empty"), (("frob",), "unknown command 'frob'"),
            ((), "missing command"),
        ]:
            with self.subTest(arguments):
                self.refused(*arguments, says=says)
        self.assertEqual(self.names(), ["f"])

    def test_names_cannot_hide_anything_in_a_listing(self):
        self.start("run", "--sandbox", "s", "-l", "javascript", "-c", "fs.writeFileSync('a\\n\\x1b[2J', 'x')")
        listed = self.done("ls", "s").decode()
        self.assertEqual((listed.count("\n"), listed.endswith("a??[2J\n")), (1, True), listed)


class Sandboxes(Commands):
    def test_are_listed_shown_and_deleted(self):
        self.assertEqual(self.start("sandboxes", "list", "--json"), (0, b"[]\n", ""))
        self.assertFalse((self.folder / "data").exists())
        self.start("run", "--sandbox", "one", "-l", "javascript", "-c", "1")
        self.done("put", "two", "-", "f", input=b"12345")
        for command in (("sandboxes", "--json"), ("sandboxes", "list", "--json"), ("sandboxes", "--json", "list")):
            self.assertEqual([entry["id"] for entry in json.loads(self.start(*command)[1])], ["one", "two"])
        info = json.loads(self.start("sandboxes", "info", "two", "--json")[1])
        self.assertEqual((info["files"], info["bytes"], info["contexts"], info["env"]), (1, 5, [], {}))
        shown = self.start("sandboxes", "info", "one")[1].decode()
        self.assertIn("context    javascript (javascript, 1 runs, saved)\n", shown)
        self.assertEqual(self.start("sandboxes", "delete", "one"), (0, b"", ""))
        self.assertEqual([entry["id"] for entry in json.loads(self.start("sandboxes", "--json")[1])], ["two"])
        for arguments, says in [(("info", "one"), "no sandbox 'one'"), (("delete", "one"), "no sandbox 'one'"), (("frob",), "frob")]:
            status, out, err = self.start("sandboxes", *arguments)
            self.assertEqual((status, out), (2, b""), err)
            self.assertIn(says, err)

    def test_are_exported_and_imported(self):
        self.start("run", "--sandbox", "one", "-l", "javascript", "-c", "var x = 1; fs.writeFileSync('f', 'F')")
        self.start("run", "--sandbox", "one", "-l", "javascript", "-c", "x = 2")
        self.start("run", "--sandbox", "one", "-l", "javascript", "--context", "other", "-c", "1")
        self.assertEqual(self.start("sandboxes", "export", "one", "file"), (0, b"", ""))
        self.assertEqual((self.here / "file").stat().st_mode & 0o777, 0o600)
        self.assertEqual([path.name for path in self.here.iterdir()], ["file"])
        whole = (self.here / "file").read_bytes()
        status, less, err = self.start("sandboxes", "export", "one", "--context", "javascript", "--without-history")
        self.assertEqual((status, err), (0, ""))
        self.assertLess(len(less), len(whole))
        # To another host.
        self.env["SANDBOX_WORKERS_DATA"] = str(self.folder / "elsewhere")
        self.assertEqual(self.start("sandboxes", "import", "two", "file"), (0, b"", ""))
        self.assertEqual(self.start("sandboxes", "import", "three", input=less), (0, b"", ""))
        for sandbox, contexts, steps in (("two", 2, 2), ("three", 1, 1)):
            info = json.loads(self.start("sandboxes", "info", sandbox, "--json")[1])
            self.assertEqual(len(info["contexts"]), contexts)
            history = json.loads(self.start("context", "history", sandbox, "javascript", "--json")[1])
            self.assertEqual(len(history), steps)
            self.assertEqual(self.start("run", "--sandbox", sandbox, "-l", "javascript", "-c", "x + fs.readFileSync('f', 'utf8')")[1], b"'2F'\n")

    def test_what_cannot_be_imported_is_named_and_leaves_nothing(self):
        self.start("run", "--sandbox", "one", "-l", "javascript", "-c", "var x = 1")
        whole = self.start("sandboxes", "export", "one")[1]
        (self.here / "text").write_text("some text")
        (self.here / "half").write_bytes(whole[:len(whole) // 2])
        (self.here / "flipped").write_bytes(whole[:-80] + bytes([whole[-80] ^ 1]) + whole[-79:])
        (self.here / "whole").write_bytes(whole)
        for name, file, says in [("two", "text", "not an exported sandbox"), ("two", "half", "ends too early"),
                                 ("two", "flipped", "damaged"), ("two", "none", "No such file"), ("one", "whole", "already exists"),
                                 ("no name", "whole", "no name")]:
            status, out, err = self.start("sandboxes", "import", name, file)
            self.assertEqual((status in (2, 3), out, err.count("\n")), (True, b"", 1), err)
            self.assertIn(says, err)
        status, _, err = self.start("sandboxes", "export", "none", "file")
        self.assertEqual((status, (self.here / "file").exists()), (2, False))
        self.assertIn("no sandbox 'none'", err)
        self.assertEqual([entry["id"] for entry in json.loads(self.start("sandboxes", "--json")[1])], ["one"])


if __name__ == "__main__":
    unittest.main()
