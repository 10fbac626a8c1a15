"""Fifteen lines that talk to `driftbandits serve`; here the server runs beside them, in a thread."""

import random
import tempfile

import driftbandits as db
from driftbandits.service.background import serving

CHANCES = {"9 EUR": 0.6, "12 EUR": 0.5, "14 EUR": 0.3}

with tempfile.TemporaryDirectory() as folder, serving(database=f"sqlite:///{folder}/shop.db") as url:
    client = db.live.Client(url, timeout=60.0)  # with keys: db.live.Client(url, key)
    shop = client.create("prices", arms=list(CHANCES), seed=0)
    draw = random.Random(0)
    for _ in range(300):
        choice = shop.decide()
        bought = draw.random() < CHANCES[choice.arm]
        shop.reward(choice.id, float(bought))
    print(shop.summary())
    print(f"the page: {url}/experiments/prices")
