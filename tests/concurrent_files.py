"""Files that are read while they are written."""

import threading


def read_while_writing(read, write, contents):
    """Call `write` with each of the contents, in a thread each, and `read` over and over until all are done."""
    done = threading.Event()

    def keep_reading():
        while not done.is_set():
            read()

    writers = [threading.Thread(target=write, args=(content,)) for content in contents]
    reader = threading.Thread(target=keep_reading)
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
