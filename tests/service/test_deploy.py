"""The files in `deploy`: whatever of them can be tried without an engine for containers, in a fresh environment.

A wheel is built and installed there as the Containerfile does, but for its dependencies, which are this environment's.
Not tried: that the base image has what is asked of it, the user, and the volume.
"""

import configparser
import json
import os
import re
import shlex
import shutil
import signal
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import yaml

from attacks.servers import Server
from driftbandits.live.connections import read_url, sqlite_file
from driftbandits.service.server import END_SECONDS
from driftbandits.service.settings import PREFIX, Settings, read_settings
from tests.test_release import BUILD

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def instructions():
    """Of the Containerfile's last stage: (word, rest), in order."""
    lines = [line for line in (DEPLOY / "Containerfile").read_text().splitlines() if line and not line.startswith("#")]
    pairs = [tuple(line.split(" ", 1)) for line in lines]
    return pairs, pairs[max(number for number, (word, _) in enumerate(pairs) if word == "FROM") :]


def of(word):
    return [rest for found, rest in instructions()[1] if found == word]


def environment():
    return dict(rest.split("=", 1) for rest in of("ENV"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder /opt/driftbandits, elsewhere; made from what the Containerfile copies, and nothing else."""
    source, opt = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("opt") / "driftbandits"
    for rest in [rest for word, rest in instructions()[0] if word == "COPY" and "--from" not in rest]:
        *names, target = rest.split()
        for name in names:
            if (ROOT / name).is_dir():
                shutil.copytree(
                    ROOT / name, source / target, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__")
                )
            else:
                shutil.copy(ROOT / name, source / target)
    subprocess.run([sys.executable, "-c", BUILD], cwd=source, check=True, capture_output=True)
    venv.create(opt, with_pip=True)
    (wheel,) = (source / "dist").glob("*.whl")
    pip = [opt / "bin" / "pip", "install", "--quiet", "--no-index", "--no-deps", wheel]
    subprocess.run(pip, check=True, capture_output=True)
    (packages,) = (opt / "lib").glob("python*/site-packages")
    own = [path for path in site.getsitepackages() if Path(path).is_dir()]
    # After its own packages, so that driftbandits is the wheel's.
    where = [opt / "bin" / "python", "-c", "import driftbandits; print(driftbandits.__file__)"]
    (packages / "dependencies.pth").write_text("".join(f"import sys; sys.path.append({path!r})\n" for path in own))
    clean = {"PATH": os.environ["PATH"]}
    assert subprocess.run(where, env=clean, capture_output=True, text=True, check=True).stdout.startswith(str(packages))
    return opt


def test_the_container_serves_is_healthy_and_stops(installed, tmp_path):
    """Its entry point with its variables; the volume is a folder here, and the port a free one."""
    variables = {name: text.replace("/opt/driftbandits", str(installed)) for name, text in environment().items()}
    assert all(name.removeprefix(PREFIX).lower() in Settings.model_fields for name in variables if PREFIX in name)
    (volume,), (home,), (user,), (port,) = of("VOLUME"), of("WORKDIR"), of("USER"), of("EXPOSE")
    database = variables["DRIFTBANDITS_DATABASE"]
    assert str(sqlite_file(read_url(database)).parent) == volume == home
    assert int(user) > 0
    assert f"--uid {user} " in of("RUN")[0]
    assert int(port) == Settings.model_fields["port"].default
    variables |= {"DRIFTBANDITS_DATABASE": database.replace(volume, str(tmp_path)), "DRIFTBANDITS_PORT": "0"}
    (entry,), usual = (json.loads(of(word)[0]) for word in ("ENTRYPOINT", "CMD"))
    command = [shutil.which(entry, path=variables["PATH"])]
    assert command[0] == str(installed / "bin" / "driftbandits")

    def run(*words):
        return subprocess.run([*command, *words], env=variables, capture_output=True, text=True, check=False)

    refused = run(*usual)
    assert (refused.returncode, "there is no key yet" in refused.stderr) == (1, True)
    made = subprocess.run(
        [*command, "keys", "create", "--scope", "admin"], env=variables, capture_output=True, text=True
    )
    assert made.stdout.startswith("db_")
    with subprocess.Popen([*command, *usual], stderr=subprocess.PIPE, text=True, env=variables) as process:
        server = Server(process)
        try:
            server.wait_until_listening()
            check = json.loads(of("HEALTHCHECK")[0].partition(" CMD ")[2])
            check[-1] = check[-1].replace(f"127.0.0.1:{port}", f"127.0.0.1:{server.url.rpartition(':')[2]}")
            healthy = [shutil.which(check[0], path=variables["PATH"]), *check[1:]]
            assert subprocess.run(healthy, env=variables, check=False).returncode == 0
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(timeout=30) == 0
            assert subprocess.run(healthy, env=variables, capture_output=True, check=False).returncode == 1
        finally:
            server.kill()


def test_compose_gives_the_server_its_database():
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    server, postgres = found["services"]["driftbandits"], found["services"]["postgres"]
    assert (DEPLOY / server["build"]["context"] / server["build"]["dockerfile"]).is_file()
    assert set(server["environment"]) <= {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    url = read_url(re.sub(r"\$\{[^}]*\}", "secret", server["environment"]["DRIFTBANDITS_DATABASE"]))
    assert url.host in found["services"]
    assert (url.username, url.database) == tuple(postgres["environment"][f"POSTGRES_{name}"] for name in ("USER", "DB"))
    assert server["ports"] == [f"127.0.0.1:{of('EXPOSE')[0]}:{of('EXPOSE')[0]}"]
    assert server["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert "healthcheck" in postgres
    assert {volume.partition(":")[0] for volume in postgres["volumes"]} == set(found["volumes"])
    assert float(server["stop_grace_period"].removesuffix("s")) > END_SECONDS


def test_the_unit_starts_what_is_installed_with_the_settings_beside_it(installed, tmp_path):
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    text = (DEPLOY / "driftbandits.service").read_text()
    unit.read_string(text)
    service = unit["Service"]
    program, verb, flag, file = shlex.split(service["ExecStart"])
    assert (installed / Path(program).relative_to("/opt/driftbandits")).is_file()
    assert (verb, flag, Path(file).name) == ("serve", "--config", "service.toml")
    settings = read_settings({}, DEPLOY / "service.toml")
    assert settings.is_local
    assert str(sqlite_file(read_url(settings.database)).parent) == f"/var/lib/{service['StateDirectory']}"
    assert float(service["TimeoutStopSec"]) > END_SECONDS
    verifier = shutil.which("systemd-analyze")
    if verifier is None:
        pytest.skip("systemd-analyze is not installed: the unit's words are not verified")
    copy = tmp_path / "driftbandits.service"
    copy.write_text(text.replace(program, str(installed / "bin" / "driftbandits")))
    done = subprocess.run([verifier, "verify", "--man=no", copy], capture_output=True, text=True, env={**os.environ})
    assert "driftbandits.service" not in done.stderr, done.stderr


def test_pages_name_every_file():
    page = (ROOT / "docs" / "service.md").read_text()
    assert all(f"deploy/{path.name}" in page for path in DEPLOY.iterdir())
