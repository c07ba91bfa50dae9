"""A file that grows by whole groups, each on the disk before the next; one process at a time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

from collector.contract.errors import DossierError

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NOT_WRITABLE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class AppendFile:
    """A file that grows by whole groups: a group that does not fit leaves no byte behind."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd
        self._has_leftover = False
        self.byte_count = os.fstat(fd).st_size

    @classmethod
    def create(cls, path: Path) -> AppendFile:
        """Open a file that must not exist yet. Raises DossierError."""
        return cls._open(path, os.O_CREAT | os.O_EXCL)

    @classmethod
    def reopen(cls, path: Path, *, or_create: bool = False) -> AppendFile:
        """Open a file to append to. Raises DossierError."""
        return cls._open(path, os.O_CREAT if or_create else 0)

    @classmethod
    def _open(cls, path: Path, flags: int) -> AppendFile:
        try:
            return cls(path, os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | flags, 0o644))
        except OSError as error:
            raise refusal("cannot be opened for writing", path, error) from None

    def lock(self) -> None:
        """Take the file for this process alone; the lock ends with the process, however it dies."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise refusal("cannot be locked", self.path, error) from None
            raise DossierError(
                f"{self.path} is being written by another collector",
                next_step="wait until that one ends, or start a new run without --resume",
            ) from None

    def append(self, group: bytes) -> None:
        """Write the group and return when it is on the disk. Raises DossierError; the file is then as it was before."""
        try:
            if self._has_leftover:
                self._drop_leftover()
            left = memoryview(group)
            while left:
                left = left[os.write(self._fd, left) :]
            os.fsync(self._fd)
        except OSError as error:
            self._has_leftover = True
            with contextlib.suppress(OSError):
                self._drop_leftover()
            raise refusal("could not be written", self.path, error) from None
        self.byte_count += len(group)

    def _drop_leftover(self) -> None:
        os.ftruncate(self._fd, self.byte_count)
        self._has_leftover = False

    def cut(self, byte_count: int) -> int:
        """Shorten the file to `byte_count` and return how many bytes were cut."""
        lost, self.byte_count = self.byte_count - byte_count, byte_count
        os.ftruncate(self._fd, byte_count)
        os.fsync(self._fd)
        return lost

    def close(self) -> None:
        """Close the file; the lock goes with it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def refusal(what: str, path: Path, error: OSError) -> DossierError:
    """Return the operating system's refusal as an error with a next step."""
    if error.errno in _NO_SPACE:
        step = "free space on that disk, then run again with --resume: all that was acknowledged is in the file"
    elif error.errno in _NOT_WRITABLE:
        step = "give this user the right to read and write there, or name another folder with --out"
    else:
        step = "name a folder on a local disk with --out"
    return DossierError(f"{path} {what}: {error.strerror}", next_step=step)
