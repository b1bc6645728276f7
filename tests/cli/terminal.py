# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""`sandbox-workers repl` behind a pseudo-terminal, for tests."""
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

DEADLINE_S = 300


class Terminal:
    """The program behind a pseudo-terminal."""

    def __init__(self, program, home, *arguments):
        self.output = ""
        environment = {**os.environ, "XDG_STATE_HOME": str(home), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(program, [program, "repl", *arguments], environment)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def follower(self):
        """The program's side of the terminal."""
        return os.open(f"/proc/{self.pid}/fd/0", os.O_RDWR | os.O_NOCTTY)

    def echoes(self):
        return bool(termios.tcgetattr(self.fd)[3] & termios.ECHO)

    def press(self, key, pattern):
        self.type(key)
        return self.wait_for(pattern)

    def wait_for(self, pattern):
        """Reads until the pattern is there, and forgets everything up to its end."""
        end = time.monotonic() + DEADLINE_S
        while True:
            plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.output)
            found = re.search(pattern, plain)
            if found:
                self.output = plain[found.end():]
                return found
            if time.monotonic() > end:
                raise TimeoutError(f"waited for {pattern!r}, there is {plain!r}")
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.output += os.read(self.fd, 65536).decode("utf-8", "replace")
                except OSError:
                    raise AssertionError(f"it ended; waited for {pattern!r}, there is {plain!r}") from None

    def type(self, text):
        os.write(self.fd, text if isinstance(text, bytes) else text.encode())

    def cell(self, text, answer):
        self.type(text + "\r")
        return self.wait_for(answer)

    def leave(self, keys="\x04"):
        """Ctrl-D means the end only at a prompt: while a cell runs, the terminal itself reads it."""
        self.wait_for("> $")
        self.type(keys)
        return self.end()

    def end(self):
        """Its exit status, once it has ended."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    os.read(self.fd, 65536)
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
        raise TimeoutError("it did not end")
