"""The shared library by its C interface (`openlink.h`). Owns the conversion of types; no behaviour."""

import ctypes
import os
from pathlib import Path

#: Most bytes of a CRTP packet, header included.
MAX_PACKET = 31

CONNECTING, UP, LOST, CLOSED = range(4)

_TEXT = 400


def path():
    """`OPENLINK_LIBRARY`, else the library beside this file."""
    return os.environ.get('OPENLINK_LIBRARY') or str(Path(__file__).with_name('libopenlink_c.so'))


def load(name=None):
    """The library with the types of its functions.

    Raises OSError, naming the file, when it is not there.
    """
    library = ctypes.CDLL(name or path())
    link = ctypes.c_void_p
    library.openlink_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    library.openlink_open.restype = link
    library.openlink_send.argtypes = [link, ctypes.c_char_p, ctypes.c_size_t]
    library.openlink_receive.argtypes = [link, ctypes.c_char_p, ctypes.c_uint32]
    library.openlink_status.argtypes = [link, ctypes.POINTER(ctypes.c_double), ctypes.c_char_p, ctypes.c_size_t]
    library.openlink_close.argtypes = [link]
    library.openlink_close.restype = None
    library.openlink_free.argtypes = [link]
    library.openlink_free.restype = None
    return library


class Link:
    """An open link. It is freed with the last reference, so that no call in another thread can outlive it."""

    def __init__(self, uri, library=None):
        """Raises ConnectionError with the reason where `uri` cannot be opened."""
        self._library = library or load()
        error = ctypes.create_string_buffer(_TEXT)
        self._link = self._library.openlink_open(uri.encode(), error, len(error))
        if not self._link:
            raise ConnectionError(error.value.decode(errors='replace'))

    def send(self, data):
        """Whether `data`, header first, was taken; ValueError when it is no packet."""
        result = self._library.openlink_send(self._link, bytes(data), len(data))
        if result == -3:
            raise ValueError(f'a packet has 1 to {MAX_PACKET} bytes, this one {len(data)}')
        return result == 0

    def receive(self, wait_s):
        """The next packet as bytes, or None once the time is over or the link is closed."""
        buffer = ctypes.create_string_buffer(MAX_PACKET)
        length = self._library.openlink_receive(self._link, buffer, max(0, round(1000 * wait_s)))
        return buffer.raw[:length] if length > 0 else None

    def status(self):
        """State (CONNECTING, UP, LOST or CLOSED), quality 0 to 1 or None, and the last event in words."""
        quality, text = ctypes.c_double(), ctypes.create_string_buffer(_TEXT)
        state = self._library.openlink_status(self._link, ctypes.byref(quality), text, len(text))
        known = quality.value if quality.value >= 0 else None
        return state, known, text.value.decode(errors='replace')

    def close(self):
        self._library.openlink_close(self._link)

    def __del__(self):
        if getattr(self, '_link', None):
            self._library.openlink_free(self._link)
            self._link = None
