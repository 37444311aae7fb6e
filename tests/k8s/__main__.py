"""`./task k8s`: installs the chart, and does to the cluster what operators and machines do, while programs send rows."""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from headgate_tables.storage.open import open_store
from headgate_tables.system import SystemIds
from k8s.commits import CommitWatch, longest_gap
from k8s.events import EVENTS, Event, Need
from k8s.judging import Judgement, judge
from k8s.kubectl import Kubectl, KubectlError, namespace, wait_until
from k8s.manifests import program, secret
from k8s.misconfigured import CASES, Trial, judge_misconfigured
from k8s.notes import Notes
from k8s.outside_s3 import BUCKET, OutsideS3, outside_s3, read_only_s3, unconditional_s3
from k8s.producer import Stream
from k8s.release import HelmError, Release
from k8s.report import Line, Report
from k8s.scene import CLIENT_PORT, Scene
from k8s.settings import Settings, read_settings, run_command
from k8s.values import CLIENT_SECRET, RELEASE, STORE_SECRET, good_values
from support.waiting import TimedOut
from support.workload import Workload

TABLE, BUCKETS, PARTITIONS = "t", 4, 2
PRODUCERS = ("one", "two", "three")
BATCH = 20
TABLE_SETTINGS = (
    "headgate.clean.min.age=86400",
    "headgate.slice.max.log.files=100000",
    "hoodie.compact.inline.max.delta.commits=60",
)
"""The judge reads all that was ever committed, so nothing is removed; and checkpoints are never stretched."""
FINISHED_WITHIN_S = 180.0


def main() -> None:
    options = _options()
    settings = read_settings()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("k8s: asked to end"))
    folder = Path(tempfile.mkdtemp(prefix="headgate-k8s-"))
    report = Report()
    with (
        namespace(settings.namespace, keep=options.keep) as kubectl,
        outside_s3(settings.host, options.port, folder / "s3") as s3,
    ):
        _prepare_images(settings, options)
        _accept(settings, options, kubectl, s3, report)
    if report.is_well and not options.keep:
        shutil.rmtree(folder)
    print(report.text(), flush=True)
    if options.json:
        print(report.json(), flush=True)
    sys.exit(0 if report.is_well else 1)


def _prepare_images(settings: Settings, options: argparse.Namespace) -> None:
    for image in (settings.image, settings.other_image):
        if settings.build and not options.no_build:
            began = time.monotonic()
            archive = run_command(f"{settings.build} . {{image}} --file deploy/docker/Dockerfile", image=image).splitlines()[-1]
            if settings.load:
                run_command(settings.load, archive=archive)
            _say(f"{image} built and loaded in {time.monotonic() - began:.0f} s")


def _accept(settings: Settings, options: argparse.Namespace, kubectl: Kubectl, s3: OutsideS3, report: Report) -> None:
    url = f"s3://{BUCKET}/lake/{TABLE}"
    kubectl.apply(program(), secret(STORE_SECRET, s3.environment))
    watch = CommitWatch(open_store(url, s3.options, SystemIds()))
    try:
        scene = _scene(settings, options, kubectl, s3, watch)
        report.install = _install(scene, s3)
        _say(f"{report.install:6.1f} s from nothing to the first queryable row")
        for event in _chosen(options.only):
            if why := _lacks(event, scene):
                report.left_out.append((event.name, why))
            else:
                report.lines.append(_suffer(event, scene))
        if any(_is_chosen(name, options.only) for name in CASES):
            _misconfigure(scene, options, s3, report)
        report.judgement = _judged(scene, s3)
    finally:
        watch.stop()
    report.findings += scene.findings
    report.figures |= scene.figures


def _scene(settings: Settings, options: argparse.Namespace, kubectl: Kubectl, s3: OutsideS3, watch: CommitWatch) -> Scene:
    notes = f"s3://{BUCKET}/notes"
    stream = Stream(TABLE, f"{RELEASE}:{CLIENT_PORT}", notes, options.rate, BATCH, BUCKETS, PARTITIONS)
    nodes = [node["metadata"]["name"] for node in kubectl.list("nodes") if not node["spec"].get("taints")]
    return Scene(
        settings,
        kubectl,
        Release(kubectl, RELEASE, settings.helm, settings.chart, settings.values),
        stream,
        open_store(f"s3://{BUCKET}/lake/{TABLE}", s3.options, SystemIds()),
        Notes(open_store(notes, s3.options, SystemIds())),
        watch,
        nodes,
        STORE_SECRET,
        CLIENT_SECRET,
    )


def _install(scene: Scene, s3: OutsideS3) -> float:
    """Seconds from ``helm install`` to the first commit. Programs start as soon as they have credentials."""
    began = time.time()
    scene.release.install(good_values(scene.settings, s3.endpoint))
    wait_until("credentials for programs", lambda: scene.kubectl.get("secret", scene.client_secret), 120, 0.3)
    scene.start_producers(*PRODUCERS)
    wait_until("the first commit", lambda: scene.watch.seen, 150, 0.1)
    first = scene.watch.seen[0].at
    scene.settle()
    scene.headgate("configure", TABLE, *TABLE_SETTINGS)
    return first - began


def _misconfigure(scene: Scene, options: argparse.Namespace, s3: OutsideS3, report: Report) -> None:
    """In a namespace beside, while the programs go on."""
    host, folder = scene.settings.host, s3.folder.parent.parent
    with (
        namespace(f"{scene.kubectl.namespace}-bad", keep=options.keep) as kubectl,
        read_only_s3(host, options.port + 1, folder / "read-only") as read_only,
        unconditional_s3(host, options.port + 2, folder / "unconditional") as unconditional,
    ):
        trial = Trial(scene, kubectl, s3, read_only, unconditional)
        for name, seconds, amiss in judge_misconfigured(trial, lambda name: _is_chosen(name, options.only)):
            _say(f"{seconds:6.1f} s  {name}: {amiss or 'says what to do'}")
            report.figures[f"{name} is said after"] = f"{seconds:.1f} s"
            report.findings += [f"{name}: {amiss}"] if amiss else []


def _chosen(only: Sequence[str]) -> Iterator[Event]:
    return (event for event in EVENTS if _is_chosen(event.name, only))


def _is_chosen(name: str, only: Sequence[str]) -> bool:
    return not only or any(word in name for word in only)


def _lacks(event: Event, scene: Scene) -> str:
    here = True
    match event.need:
        case Need.NOTHING:
            pass
        case Need.NODE_FAULTS:
            here = scene.settings.can_fault_nodes and len(scene.nodes) > 1
        case Need.TWO_NODES:
            here = len(scene.nodes) > 1
        case Need.METRICS:
            here = _has_metrics(scene.kubectl)
        case Need.OTHER_IMAGE:
            here = bool(scene.settings.other_image)
    return "" if here else event.need.value


def _has_metrics(kubectl: Kubectl) -> bool:
    try:
        kubectl.run("get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes")
    except KubectlError:
        return False
    return True


def _suffer(event: Event, scene: Scene) -> Line:
    began, error, told = time.time(), "", None
    try:
        told = event.act(scene)
        scene.settle()
    except (KubectlError, HelmError, TimedOut) as failure:
        error = str(failure)
    ended = time.time()
    moments = [commit.at for commit in scene.watch.seen]
    gap = longest_gap(moments, began if told is None else told, ended)
    line = Line(event.name, event.goal, gap.seconds, ended - began, error)
    verdict = "" if line.is_well else f", NOT WELL {error}"
    longest = f"at most {gap.seconds:.1f} s without a commit, from {gap.at - began:.1f} s on"
    _say(f"{ended - began:6.1f} s  {event.name}: {longest}{verdict}")
    return line


def _judged(scene: Scene, s3: OutsideS3) -> Judgement:
    scene.notes.ask_to_finish()

    def ended() -> bool:
        last = {attempt.producer: attempt for attempt in scene.notes.attempts()}
        return all(attempt.ended for attempt in last.values())

    try:
        wait_until("all producers have ended", ended, FINISHED_WITHIN_S, 1)
    except TimedOut as error:
        scene.findings.append(str(error))
    _say("reading every block that was ever committed ...")
    # The server's own files: tens of thousands, each read twice.
    return judge(f"file://{s3.folder}/lake/{TABLE}", scene.notes.attempts(), Workload(partitions=PARTITIONS))


def _say(text: str) -> None:
    print(text, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./task k8s", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="events whose name has it; may be repeated")
    parser.add_argument("--rate", type=float, default=100, help="rows a second of each producer")
    parser.add_argument("--port", type=int, default=7480, help="of the S3 server on this machine; the next two are taken as well")
    parser.add_argument("--keep", action="store_true", help="the namespace stays, for a look at it")
    parser.add_argument("--no-build", action="store_true", help="the images are loaded already")
    parser.add_argument("--json", action="store_true", help="a last line for programs")
    return parser.parse_args()


if __name__ == "__main__":
    main()
