"""What `./task build` makes: each wheel is its package, whole, without tests, and they need each other in one version."""

import re
import subprocess
import tarfile
import zipfile
from email.message import Message
from email.parser import BytesParser
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "headgate": "lib/client",
    "headgate-cli": "lib/cli",
    "headgate-compactor": "compactor",
    "headgate-coordinator": "coordinator",
    "headgate-proto": "proto",
    "headgate-runtime": "lib/runtime",
    "headgate-spark": "lib/spark",
    "headgate-tables": "lib/tables",
    "headgate-writer": "writer",
}
PROGRAMS = {
    "headgate-cli": "headgate = headgate_cli.main:main",
    "headgate-compactor": "headgate-compactor = headgate_compactor.__main__:main",
    "headgate-coordinator": "headgate-coordinator = headgate_coordinator.__main__:main",
    "headgate-writer": "headgate-writer = headgate_writer.__main__:main",
}
PYTHONS = ("3.11", "3.12", "3.13")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one build, in which another one's files lay before."""
    folder = tmp_path_factory.mktemp("wheels")
    (folder / "headgate-0.0.1-py3-none-any.whl").touch()
    subprocess.run([ROOT / "task", "build", folder], check=True, capture_output=True)
    return folder


def wheel(built: Path, name: str) -> zipfile.ZipFile:
    (found,) = built.glob(f"{name.replace('-', '_')}-[0-9]*.whl")
    return zipfile.ZipFile(found)


def part(built: Path, name: str, file: str) -> bytes:
    with wheel(built, name) as opened:
        (found,) = [path for path in opened.namelist() if path.endswith(f".dist-info/{file}")]
        return opened.read(found)


def metadata(built: Path, name: str) -> Message:
    return BytesParser().parsebytes(part(built, name, "METADATA"))


def committed(folder: str) -> set[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT / folder, check=True, capture_output=True, text=True)
    return set(listed.stdout.rstrip("\0").split("\0"))


def test_every_member_has_a_wheel_and_a_source_archive_and_nothing_older_is_left(built: Path) -> None:
    names = {name.replace("-", "_") for name in PACKAGES}
    assert {path.name.split("-")[0] for path in built.glob("*.whl")} == names
    assert {path.name.split("-")[0] for path in built.glob("*.tar.gz")} == names
    assert len(list(built.iterdir())) == 2 * len(PACKAGES)


def test_a_wheel_holds_its_package_whole_and_nothing_else(built: Path) -> None:
    for name, folder in PACKAGES.items():
        package = name.replace("-", "_")
        with wheel(built, name) as opened:
            found = {path for path in opened.namelist() if ".dist-info/" not in path}
        assert found == {path for path in committed(folder) if path.startswith(f"{package}/")}, name
        assert f"{package}/py.typed" in found
        assert not [path for path in found if "test" in path]


def test_the_contracts_come_with_their_types(built: Path) -> None:
    with wheel(built, "headgate-proto") as opened:
        found = set(opened.namelist())
    generated = {path.removesuffix(".py") for path in found if path.endswith("_pb2.py")}
    assert len(generated) > 10
    assert {f"{stem}.pyi" for stem in generated} <= found
    assert "headgate_proto/api/v1/ingest_pb2_grpc.pyi" in found


def test_a_source_archive_makes_a_wheel_without_the_repository(built: Path) -> None:
    for name, folder in PACKAGES.items():
        (found,) = built.glob(f"{name.replace('-', '_')}-[0-9]*.tar.gz")
        with tarfile.open(found) as opened:
            files = {path.partition("/")[2] for path in opened.getnames()}
        assert {path for path in committed(folder) if "/" in path} | {"pyproject.toml", "LICENSE"} <= files, name


def test_members_need_each_other_in_this_version_alone(built: Path) -> None:
    versions = {name: metadata(built, name)["Version"] for name in PACKAGES}
    assert len(set(versions.values())) == 1
    needed = [
        line for name in PACKAGES for line in metadata(built, name).get_all("Requires-Dist", ()) if line.startswith("headgate")
    ]
    assert len(needed) > 20
    for line in needed:
        found = re.match(r"([a-z-]+)(?:\[[a-z,]+\])?==([0-9.]+)(?:;|$)", line)
        assert found, line
        assert found[2] == versions[found[1]], line


def test_the_sdk_needs_three_packages_beside_the_contracts(built: Path) -> None:
    """It is installed into programs that have many others."""
    needed = [line for line in metadata(built, "headgate").get_all("Requires-Dist", ()) if "extra ==" not in line]
    assert {re.split(r"[<>=]", line)[0] for line in needed} == {"grpcio", "headgate-proto", "protobuf", "pyarrow"}


def test_metadata_say_what_an_index_shows(built: Path) -> None:
    for name in PACKAGES:
        said = metadata(built, name)
        assert said["Name"] == name
        assert said["License-Expression"] == "Apache-2.0"
        assert said["Requires-Python"] == ">=3.11"
        assert said["Description-Content-Type"] == "text/markdown"
        classifiers = said.get_all("Classifier", ())
        assert "Typing :: Typed" in classifiers
        named = {line.removeprefix("Programming Language :: Python :: ") for line in classifiers if "Python ::" in line}
        assert named == set(PYTHONS), name
        text = str(said.get_payload())
        assert "headgate" in text
        assert not re.search(r"\]\((?![a-z]+:)", text), f"{name}: a link that leads nowhere outside of the repository"


def test_every_wheel_has_the_license(built: Path) -> None:
    for name in PACKAGES:
        assert part(built, name, "licenses/LICENSE") == (ROOT / "LICENSE").read_bytes(), name


def test_the_programs_of_the_wheels_can_be_loaded(built: Path) -> None:
    for name in PACKAGES:
        with wheel(built, name) as opened:
            has_programs = any(path.endswith("/entry_points.txt") for path in opened.namelist())
        assert has_programs == (name in PROGRAMS), name
        if has_programs:
            section, line = part(built, name, "entry_points.txt").decode().split("\n")[:2]
            assert (section, line) == ("[console_scripts]", PROGRAMS[name])
            program, _, where = line.partition(" = ")
            assert callable(EntryPoint(program, where, "console_scripts").load())


def test_the_same_files_give_the_same_bytes(built: Path, tmp_path: Path) -> None:
    subprocess.run([ROOT / "task", "build", tmp_path], check=True, capture_output=True)
    first, second = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in (built, tmp_path))
    assert first == second
