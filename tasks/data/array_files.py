"""Exceptions that numpy raises for unreadable .npy and .npz files.

Such a file is damaged, encrypted or in an unsupported format.
"""

import lzma
import zlib
from zipfile import BadZipFile

DAMAGED = (
    ValueError,
    EOFError,
    BadZipFile,
    zlib.error,
    lzma.LZMAError,
    LookupError,
    RuntimeError,  # encrypted; or its subclass NotImplementedError, for an unknown compression
    OverflowError,
    MemoryError,  # a header that declares an array larger than the memory
    TypeError,
    SyntaxError,
)
