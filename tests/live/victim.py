"""A process that decides and rewards from several threads, prints what was answered, and is killed by its parent.

`python -m tests.live.victim URL NAME THREADS`: one line per answer, written in one piece as soon as it is there.
"""

import itertools
import os
import sys
import threading

from driftbandits import live


def work(shop, lock):
    columns = shop.view.definition.contexts
    for number in itertools.count():
        device = None if columns is None else {"device": columns["device"][number % 2]}
        choice = shop.decide(context=device)
        say(lock, f"decided {choice.id} {choice.arm}")
        reward = 1.0 if choice.arm == "high" else 0.0
        shop.reward(choice.id, reward)
        say(lock, f"rewarded {choice.id} {reward}")


def say(lock, line):
    with lock:
        os.write(1, f"{line}\n".encode())


def main(url, name, threads):
    shop = live.open(url).experiment(name)
    lock = threading.Lock()
    say(lock, "ready")
    workers = [threading.Thread(target=work, args=(shop, lock)) for _ in range(int(threads))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
