"""Clients that keep their connections and send decide and reward in turns, as fast as answers come; raw sockets.

Runs in a process of its own (`python -m benchmarks.service_load PORT SECONDS CLIENTS SIZE`) and prints one JSON line:
the generator and the server then share the machine, not an interpreter.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from dataclasses import asdict, dataclass, field

ARMS = [f"arm {number}" for number in range(20)]


@dataclass
class Load:
    """What clients saw: answers, their latencies in seconds, statuses other than 200."""

    seconds: float = 0.0
    decisions: int = 0
    rewards: int = 0
    latencies: list[float] = field(default_factory=list)
    other: dict[str, int] = field(default_factory=dict)

    def summary(self) -> dict[str, float | dict[str, int]]:
        """Rates and quantiles."""
        ordered = sorted(self.latencies) or [0.0]
        quantiles = {f"p{q}": 1e3 * ordered[min(int(q / 100 * len(ordered)), len(ordered) - 1)] for q in (50, 95, 99)}
        return {
            "pairs": self.rewards / self.seconds,
            "decisions": self.decisions / self.seconds,
            **quantiles,
            "worst": 1e3 * ordered[-1],
            "requests": len(self.latencies),
            "other": self.other,
        }


class Connection:
    """One keep-alive connection."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer."""
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\ncontent-type: application/json\r\n"
        self._writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        size = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        return int(lines[0].split(b" ")[1]), await self._reader.readexactly(size)

    def close(self) -> None:
        self._writer.close()


async def client(port: int, end: float, size: int, load: Load, number: int) -> None:
    """Decide and reward until time is up."""
    connection = Connection(port)
    await connection.open()
    draw = random.Random(number)
    ask = b"{}" if size == 1 else json.dumps({"size": size}).encode()
    while time.perf_counter() < end:
        begun = time.perf_counter()
        status, content = await connection.post("/v1/experiments/load/decisions", ask)
        load.latencies.append(time.perf_counter() - begun)
        if status != 200:
            load.other[str(status)] = load.other.get(str(status), 0) + 1
            continue
        made = json.loads(content)["decisions"]
        load.decisions += len(made)
        body = [{"id": one["id"], "reward": _reward(one["arm"], draw)} for one in made]
        begun = time.perf_counter()
        status, _ = await connection.post(
            "/v1/experiments/load/rewards", json.dumps(body[0] if size == 1 else {"rewards": body}).encode()
        )
        load.latencies.append(time.perf_counter() - begun)
        if status == 200:
            load.rewards += len(made)
        else:
            load.other[str(status)] = load.other.get(str(status), 0) + 1
    connection.close()


def _reward(arm: str, draw: random.Random) -> float:
    """A success, more often on later arms."""
    return float(draw.random() < 0.1 + 0.03 * int(arm.rsplit(" ", 1)[-1]))


async def main(port: int, seconds: float, clients: int, size: int) -> Load:
    load = Load(seconds)
    end = time.perf_counter() + seconds
    await asyncio.gather(*(client(port, end, size, load, number) for number in range(clients)))
    return load


if __name__ == "__main__":
    found = asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
    print(json.dumps(found.summary() if len(sys.argv) < 6 else asdict(found)))
