"""cflib's driver for `prrt://`. Owns what cflib expects of a link; packets and time are the library's."""

import threading
import time

import cflib.crtp
from cflib.crtp.crtpdriver import CRTPDriver
from cflib.crtp.crtpstack import CRTPPacket
from cflib.crtp.exceptions import WrongUriType

from .library import CLOSED, LOST, UP, Link

#: A peer that does not answer for so long is not there.
CONNECT_S = 5.0
#: A link that is lost for so long is given up; it calls again by itself until then.
LOST_S = 3.0
#: How often the quality is reported.
REPORT_S = 0.25


class OpenlinkDriver(CRTPDriver):
    """One link over the paced transport."""

    def __init__(self):
        super().__init__()
        # The transport repeats what is lost itself.
        self.needs_resending = False
        self.uri = ''
        self._link = None
        self._closing = threading.Event()
        self._statistics = self._failed = None

    def connect(self, uri, radio_link_statistics_callback, link_error_callback):
        """Opens the link and waits for the peer; raises ConnectionError, in words, when it does not answer."""
        if not uri.startswith('prrt://'):
            raise WrongUriType('not a prrt:// URI')
        if self._link is not None:
            raise ConnectionError(f'{self.uri} is open already')
        link = Link(uri)
        self._wait_until_up(uri, link)
        self._link, self.uri = link, uri
        self._statistics, self._failed = radio_link_statistics_callback, link_error_callback
        self._closing.clear()
        threading.Thread(target=self._watch, args=(link,), name='openlink', daemon=True).start()

    @staticmethod
    def _wait_until_up(uri, link):
        end = time.monotonic() + CONNECT_S
        while link.status()[0] != UP:
            if time.monotonic() > end:
                text = link.status()[2]
                link.close()
                raise ConnectionError(f'{uri}: nobody answers within {CONNECT_S:.0f} s: {text}')
            time.sleep(0.01)

    def _watch(self, link):
        """Reports the quality, and a link that stays lost."""
        lost_since = None
        while not self._closing.wait(REPORT_S):
            state, quality, text = link.status()
            if quality is not None and self._statistics:
                self._statistics({'link_quality': 100.0 * quality})
            if state == CLOSED:
                return
            if state != LOST:
                lost_since = None
            elif lost_since is None:
                lost_since = time.monotonic()
            elif time.monotonic() - lost_since > LOST_S:
                if self._failed:
                    self._failed(f'{self.uri}: {text}')
                return

    def send_packet(self, pk):
        """Queues a packet: setpoints go newest first, everything else in order. Waits while too many are queued."""
        link = self._link
        data = bytes([pk.get_header()]) + bytes(pk.data)
        while link is not None and not link.send(data):
            if link.status()[0] == CLOSED or self._closing.wait(0.005):
                return

    def receive_packet(self, wait=0):
        """The next packet, or None after `wait` seconds; negative waits until the link is closed."""
        link = self._link
        if link is None:
            return None
        data = link.receive(max(wait, 0))
        while data is None and wait < 0 and not self._closing.is_set():
            data = link.receive(1.0)
        return CRTPPacket(data[0], list(data[1:])) if data else None

    def get_status(self):
        return self._link.status()[2] if self._link else 'not connected'

    def get_name(self):
        return 'prrt'

    def scan_interface(self, address=None):
        """Nothing is found by scanning: a peer is known by its address."""
        return []

    def close(self):
        """Says goodbye to the peer. Closing twice does nothing."""
        self._closing.set()
        link, self._link = self._link, None
        if link is not None:
            link.close()


def register():
    """Makes cflib take this driver for `prrt://`, whether its drivers are initialised already or later.

    It takes the place of the stub that cflib ships.
    """
    stub = cflib.crtp.PrrtDriver
    cflib.crtp.PrrtDriver = OpenlinkDriver
    classes = cflib.crtp.CLASSES
    classes[:] = [OpenlinkDriver if driver is stub else driver for driver in classes]
