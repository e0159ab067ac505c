"""The script for Slurm of the page on the command line, under a Slurm with two ranks."""

import contextlib
import getpass
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from cnnlab.ranks import job, shared_memory_files
from tests.ranks.programs import until
from tests.source import ROOT

PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin"])
PROGRAMS = "munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "scontrol", "sinfo"
MISSING = [name for name in PROGRAMS if not shutil.which(name, path=PATH)]
pytestmark = [
    pytest.mark.mpi,
    pytest.mark.slurm,
    pytest.mark.skipif(bool(MISSING), reason=f"without {', '.join(MISSING)}"),
    pytest.mark.skipif("Open MPI" in job.library(), reason="--mpi=pmi2 is for MPICH"),
]

CONFIGURATION = """
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SelectType=select/cons_tres
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A function that runs a command of a Slurm, which is started here, and returns its output."""
    folder = tmp_path_factory.mktemp("slurm")
    environment = os.environ | {"PATH": PATH, "SLURM_CONF": str(folder / "slurm.conf")}
    environment |= {"CNNLAB_OFFLINE": "1", "HOME": str(folder)}
    daemons = []

    def run(*command, status=0):
        about = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = subprocess.run(command, env=environment, cwd=folder, timeout=120, **about)
        assert status is None or done.returncode == status, done.stdout
        return done.stdout

    def start(*command):
        with open(folder / f"{command[0]}.log", "w") as log:
            about = {"stdout": log, "stderr": log, "env": environment, "cwd": folder}
            daemons.append(subprocess.Popen(command, **about))

    def logs():
        return "".join(file.read_text()[-500:] for file in folder.glob("*.log"))

    configure(folder)
    try:
        files = {"key-file": "key", "socket": "munge.socket", "pid-file": "munged.pid"}
        files |= {"log-file": "munge.log", "seed-file": "seed"}
        options = (f"--{option}={folder / file}" for option, file in files.items())
        start("munged", "--foreground", "--force", *options)
        if not until((folder / "munge.socket").exists, 20):
            pytest.skip(f"munged does not start here: {logs()}")
        start("slurmctld", "-D")
        start("slurmd", "-D")
        if not until(lambda: "idle" in run("sinfo", "--noheader", status=None), 60):
            pytest.skip(f"Slurm does not start here: {logs()}")
        yield run
        run("scancel", "--user", getpass.getuser(), status=None)
        until(lambda: not steps(folder), 20)
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(20)
            daemon.kill()
            daemon.wait()
    assert not steps(folder)


def configure(folder):
    """Write the configuration, a key, and that script with the sizes of this machine."""
    with contextlib.ExitStack() as stack:
        free = [stack.enter_context(socket.socket()) for _ in range(2)]
        for one in free:
            one.bind(("127.0.0.1", 0))
        facts = {"host": socket.gethostname().partition(".")[0], "user": getpass.getuser()}
        facts |= {"ports": [one.getsockname()[1] for one in free], "folder": folder}
    (folder / "slurm.conf").write_text(CONFIGURATION.format_map(facts))
    (folder / "state").mkdir()
    (folder / "spool").mkdir()
    (folder / "key").write_bytes(secrets.token_bytes(128))
    (folder / "key").chmod(0o400)
    page = (ROOT / "notebooks" / "command_line.md").read_text(encoding="utf-8")
    script = re.search(r"```\n(#!/bin/bash\n#SBATCH.*?)```", page, re.DOTALL)[1]
    for theirs, ours in {
        "--nodes=4 --ntasks-per-node=1 --cpus-per-task=16": "--nodes=1 --ntasks-per-node=2",
        ". .venv/bin/activate": f"export PATH={PATH}",
        "$SLURM_CPUS_PER_TASK": "1",
        "--batch 1024 --epochs 5": '--data digits --batch 64 --epochs "$@"',
    }.items():
        assert theirs in script
        script = script.replace(theirs, ours)
    (folder / "job.sh").write_text(script)


def steps(folder):
    """The processes that run in this Slurm's jobs."""
    result = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # it has just ended
            variables = process.environ()
            if variables.get("SLURM_CONF") == str(folder / "slurm.conf"):
                result += [process] * ("SLURM_JOB_ID" in variables)
    return result


def submit(slurm, *words):
    """The number of a job that runs README's script with these words after `--epochs`."""
    return slurm("sbatch", "--parsable", "--output=%j.out", "job.sh", *words).strip()


def test_ranks_that_srun_leaves_alone_are_refused_once(slurm):
    words = "-m", "cnnlab", "train", "--data", "digits", "--images", "100", "--epochs", "1"
    said = slurm("srun", "-n", "2", sys.executable, *words, "--ranks", "data", status=2)
    assert said.count("cnnlab: ") == 1 and "epoch" not in said
    line = "srun: expected one MPI world of 2 ranks, got 2 worlds of 1: .* srun --mpi=pmi2"
    assert re.search(line, said)
    alone = f"--wrap={sys.executable} {' '.join(words)}"  # in a job of two tasks, without srun
    slurm("sbatch", "--wait", "--ntasks=2", "--output=alone.out", alone)
    assert "epoch 1:" in slurm("cat", "alone.out")


def test_readmes_script_ends_with_a_killed_rank_and_resumes(slurm):
    number = submit(slurm, "100000")
    output = f"{number}.out"
    try:
        assert until(lambda: "epoch 3:" in slurm("cat", output, status=None), 120)
        ranks = [p for p in psutil.process_iter() if trains(p, number)]
        assert sorted(rank.environ()["PMI_RANK"] for rank in ranks) == ["0", "1"]
        files = shared_memory_files.mapped_by(rank.pid for rank in ranks)
        next(rank for rank in ranks if rank.environ()["PMI_RANK"] == "1").kill()
        assert until(lambda: not any(trains(p, number) for p in psutil.process_iter()), 60)
        shared_memory_files.remove(files)
    finally:
        slurm("scancel", number)
    said = slurm("cat", output)
    assert re.search("task 1: Killed", said) and said.count("epoch 1:") == 1
    epochs = int(re.findall(r"epoch (\d+):", said)[-1]) + 3
    again = submit(slurm, str(epochs), "--resume", "training.npz")
    assert until(lambda: '"n_ranks": 2' in slurm("cat", f"{again}.out", status=None), 120)
    said = slurm("cat", f"{again}.out")
    assert f"epoch {epochs}:" in said and "epoch 1:" not in said


def trains(process, number):
    """Whether a process is a rank of a job."""
    with contextlib.suppress(psutil.Error):  # it has just ended
        variables, words = process.environ(), process.cmdline()
        return variables.get("SLURM_JOB_ID") == number and "cnnlab" in words and "srun" not in words
