"""How much memory a server has, over time."""

import threading


class Looks(threading.Thread):
    """Looks at a server's memory now and then, until told to end."""

    def __init__(self, server, every):
        super().__init__(daemon=True)
        self.found = [server.resident_mib()]
        self._server = server
        self._every = every
        self._ended = threading.Event()

    def run(self):
        while not self._ended.wait(self._every):
            self.found.append(self._server.resident_mib())

    def end(self):
        """No more looks but the last."""
        self._ended.set()
        self.join()
        self.found.append(self._server.resident_mib())
        return self.found
