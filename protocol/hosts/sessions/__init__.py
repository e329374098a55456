"""Engine processes for people elsewhere: a session is one process, with order, bounds and a second life.

What a session says goes to an `Outlet`, which each adapter brings: a broker's topics, a browser's socket.
"""
