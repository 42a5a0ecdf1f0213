"""Translate numpy's errors for .npy and .npz files that are damaged, encrypted or of an unreadable kind."""

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
    RuntimeError,  # encrypted; NotImplementedError, a way of packing that is not known, is one too
    OverflowError,
    MemoryError,  # a header that promises an array larger than any memory
    TypeError,
    SyntaxError,
)
