"""The container file, the compose file and the systemd unit: no engine runs here, so every line that can be is tried.

The image's own steps are taken in a folder of its layout: the wheel is built from what is copied, installed by itself,
and its entry point is started with the variables of the file, as another user where one may run this Python, watched by
the health check of the file.
"""

import configparser
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from driftbandits.service.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UID = 10001


def instructions():
    """(word, rest) of every instruction."""
    text = re.sub(r"\\\n", " ", (DEPLOY / "Containerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def of(word):
    return [rest for name, rest in instructions() if name == word]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The wheel of the first stage, installed without what it needs: that is here."""
    folder = tmp_path_factory.mktemp("image")
    build = folder / "build"
    build.mkdir()
    for copied in of("COPY"):
        if not copied.startswith("--from"):
            *sources, target = copied.split()
            for source in sources:
                if (ROOT / source).is_dir():
                    shutil.copytree(
                        ROOT / source, build / target, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__")
                    )
                else:
                    shutil.copy(ROOT / source, build / target)
    (command,) = [run for run in of("RUN") if run.startswith("pip wheel")]
    words = command.replace("/wheels", str(folder / "wheels")).split()
    subprocess.run([sys.executable, "-m", *words, "--no-build-isolation", "--quiet"], cwd=build, check=True)
    (wheel,) = (folder / "wheels").glob("driftbandits-*.whl")
    target = folder / "installed"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, wheel], check=True
    )
    for path in (folder, *folder.parents[:2]):
        path.chmod(0o755)
    return target


def user():
    """Another user, where this one may become it and it may read what Python needs."""
    if os.geteuid() != 0:
        return {}
    try:
        tried = subprocess.run([sys.executable, "-c", "import yaml"], user=UID, check=False, capture_output=True)
    except PermissionError:  # Python itself lies where only its owner may look
        return {}
    return {"user": UID, "group": UID} if tried.returncode == 0 else {}


def test_the_entry_point_serves_and_the_health_check_tells(installed, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    if user():
        os.chown(data, UID, UID)
        for path in (tmp_path, *tmp_path.parents[:2]):
            path.chmod(0o755)
    (given,) = of("ENV")
    variables = dict(pair.split("=", 1) for pair in given.split())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        variables["DRIFTBANDITS_PORT"] = str(free.getsockname()[1])
    variables["DRIFTBANDITS_DATABASE"] = variables["DRIFTBANDITS_DATABASE"].replace("/data/", f"{data}/")
    env = {**os.environ, **variables, "PYTHONPATH": str(installed), "HOME": str(data)}
    (entry,) = map(json.loads, of("ENTRYPOINT"))
    (command,) = map(json.loads, of("CMD"))
    program = [sys.executable, str(installed / "bin" / entry[0])]
    # what all can reach needs a key, and says so
    bare = subprocess.run(
        [*program, *command], env=env, cwd=data, **user(), capture_output=True, text=True, check=False
    )
    assert bare.returncode != 0
    assert "keys create" in bare.stderr
    made = subprocess.run(
        [*program, "keys", "create", "--scope", "admin"], env=env, cwd=data, **user(), capture_output=True, check=True
    )
    assert made.stdout
    server = subprocess.Popen([*program, *command], env=env, cwd=data, **user(), stderr=subprocess.DEVNULL)
    try:
        (health,) = of("HEALTHCHECK")
        check = json.loads(health.partition(" CMD ")[2])
        check[0] = sys.executable

        def healthy():
            return subprocess.run(check, env=env, capture_output=True, check=False).returncode == 0

        end = time.monotonic() + 60
        while not healthy():
            assert server.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)
        server.send_signal(signal.SIGTERM)  # what stopping a container sends
        assert server.wait(30) == 0
        assert not healthy()
        assert (data / "driftbandits.db").stat().st_size > 0
    finally:
        server.kill()
        server.wait()


def test_the_image_runs_as_nobody_special_and_keeps_its_data():
    words = [word for word, _ in instructions()]
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert of("USER") == ["driftbandits"]
    (added,) = [run for run in of("RUN") if "useradd" in run]
    assert f"--uid {UID}" in added
    assert f"install -d -o driftbandits {of('VOLUME')[0]}" in added
    (port,) = of("EXPOSE")
    assert f"DRIFTBANDITS_PORT={port}" in of("ENV")[0]
    assert port == str(Settings().port)
    (extras,) = re.findall(r"\.whl\)\[(.*?)\]", " ".join(of("RUN")))
    known = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")[2]
    assert all(re.search(rf"^{extra} = ", known, re.MULTILINE) for extra in extras.split(","))


def check_variables(names):
    ours = [name.removeprefix(PREFIX).lower() for name in names if name.startswith(PREFIX)]
    assert ours
    assert set(ours) <= set(Settings.model_fields)


def test_variables_are_settings():
    check_variables(re.findall(r"DRIFTBANDITS_\w+", of("ENV")[0]))


def test_the_compose_file_builds_this_image_beside_a_postgres():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    ours, postgres = compose["services"]["driftbandits"], compose["services"]["postgres"]
    assert (DEPLOY / ours["build"]["context"] / ours["build"]["dockerfile"]).resolve() == DEPLOY / "Containerfile"
    check_variables(ours["environment"])
    found = re.fullmatch(r"postgresql://(\w+):\$\{.*\}@(\w+)/(\w+)", ours["environment"]["DRIFTBANDITS_DATABASE"])
    assert found.groups() == (
        postgres["environment"]["POSTGRES_USER"],
        "postgres",
        postgres["environment"]["POSTGRES_DB"],
    )
    assert ours["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert "healthcheck" in postgres
    assert {volume.partition(":")[0] for volume in postgres["volumes"]} == set(compose["volumes"])
    assert all(port.startswith("127.0.0.1:") for port in ours["ports"])  # a proxy with TLS stands before it


def test_the_unit_starts_the_same_server(tmp_path):
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(DEPLOY / "driftbandits.service")
    service = unit["Service"]
    program, *words = service["ExecStart"].split()
    assert Path(program).name == json.loads(of("ENTRYPOINT")[0])[0]
    assert words == json.loads(of("CMD")[0])
    name, _, url = service["Environment"].partition("=")
    check_variables([name])
    assert url == f"sqlite:///{service['WorkingDirectory']}/driftbandits.db"
    assert service["WorkingDirectory"] == f"/var/lib/{service['StateDirectory']}"
    assert service["DynamicUser"] == "yes"
    if shutil.which("systemd-analyze"):
        copy = tmp_path / "driftbandits.service"
        copy.write_text((DEPLOY / "driftbandits.service").read_text().replace(program, sys.executable))
        done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
        assert not [line for line in done.stderr.splitlines() if "driftbandits.service" in line], done.stderr
