"""Run by `make test-core` in a virtual environment with the core alone: no extra is needed, and none is there."""

import importlib.util
import subprocess
import sys

EXTRAS = (
    *("pandas", "pyarrow", "matplotlib", "rich", "typer", "pydantic", "optuna", "ray", "distributed", "torch"),
    *("pytest", "hypothesis", "cvxpy"),
)


def main() -> None:
    present = [name for name in EXTRAS if importlib.util.find_spec(name)]
    if present:
        sys.exit(f"the core environment is not bare: it has {', '.join(present)}")

    import numpy as np

    import driftbandits as db
    from driftbandits.testing import POLICY_CHECKS

    world = db.environments.create("switching/1", seed=0)
    policy = db.AdaOPKB.published(world.arms, horizon=world.horizon, seed=0)
    trace = db.simulate(policy, world, seed=0)
    if not (len(trace) == 10_000 and trace.changes and np.isfinite(trace.regret).all()):
        sys.exit("the published ADA-OPKB did not play environment 1 as it should")
    print(trace.changes[0])
    for check in POLICY_CHECKS:
        check(db.OPKB)
    network = db.OPNN(world.arms, horizon=500, seed=0, width=32, steps=5)
    for _ in range(4):
        batch = network.ask(size=100)
        network.tell(batch.ids, 0.1 * np.cos(batch.arms))
    if not (network.trainings > 0 and np.isfinite(network.law()).all()):
        sys.exit("OPNN did not train on NumPy alone")
    try:
        db.OPNN(world.arms, horizon=500, device="cpu")
    except db.errors.MissingExtraError as error:
        if "'.[torch]'" not in str(error):
            sys.exit(f"a missing torch must name its cure, got: {error}")
    else:
        sys.exit("a network was put on torch without torch")
    try:
        trace.to_parquet("never.parquet")
    except db.errors.MissingExtraError as error:
        if "pip install" not in str(error):
            sys.exit(f"a missing extra must name its cure, got: {error}")
    else:
        sys.exit("a trace was written without pyarrow")
    command = subprocess.run(
        [sys.executable, "-m", "driftbandits", "list"], capture_output=True, text=True, check=False
    )
    if command.returncode != 1 or "'.[experiments]'" not in command.stderr or "Traceback" in command.stderr:
        sys.exit(f"a command line without its extra must name the cure, got: {command.stderr}")
    log = db.logs.Log.read(trace, arms=world.arms)
    if not db.logs.evaluate(log, "log").low < trace.reward.mean() < db.logs.evaluate(log, "log").high:
        sys.exit("a trace was not valued as a log")
    from driftbandits import datasets

    if datasets.create("digits").horizon < 1500:
        sys.exit("the digits did not load from scikit-learn alone")
    print(f"1 core run and {len(POLICY_CHECKS)} policy checks without any extra: fine")


if __name__ == "__main__":
    main()
