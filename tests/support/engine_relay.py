"""Stands where an engine should: passes lines to an engine of a pool and back. python -I -S engine_relay.py SOCKET"""

import os
import select
import socket
import sys

link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
ends = {0: link.fileno(), link.fileno(): 1}
while 0 in ends or link.fileno() in ends:
    for source in select.select(list(ends), [], [])[0]:
        data = os.read(source, 65_536)
        if not data and source == 0:
            link.shutdown(socket.SHUT_WR)
            del ends[0]
        elif not data:
            sys.exit()
        while data:
            data = data[os.write(ends[source], data) :]
