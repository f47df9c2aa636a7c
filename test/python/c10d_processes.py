"""Runs a function on several ranks, each a process, and collects what they return."""

import atexit
import faulthandler
import multiprocessing
import multiprocessing.connection
import os
import signal
import tempfile
import time
import traceback

DEADLINE = 120  # seconds; far more than any case needs, so that only a hang reaches it

_to_parent = None  # in a rank: the pipe to its parent


class RankFailed(Exception):
    """`at` is the last case that a failed rank began, or None."""

    def __init__(self, text, at=None):
        super().__init__(text)
        self.at = at


def begin_case(name):
    """Called by a rank: names the case in which it is if it fails, exits or hangs."""
    _to_parent.send(("at", name))


def _rank(function, rank, size, pipe):
    global _to_parent
    _to_parent = pipe
    faulthandler.enable()  # a crash prints the stacks of Python
    try:
        pipe.send(("done", function(rank, size)))
    except BaseException:  # also SystemExit: the parent reports it
        pipe.send(("failed", traceback.format_exc()))
    pipe.close()
    atexit._run_exitfuncs()  # a forked process does not run them
    os._exit(0)


def _how_it_ended(process):
    process.join(10)
    code = process.exitcode
    if code is None:
        return "closed its pipe and continues"
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"


def _receive(rank, process, pipe, end):
    """The outcome of a rank ("done", "failed", "exited", "hangs"), with its result or a text, and its last case."""
    at = None
    try:
        while pipe.poll(max(0.1, end - time.time())):
            outcome, result = pipe.recv()
            if outcome != "at":
                return outcome, result, at
            at = result
    except EOFError:
        return "exited", f"rank {rank} {_how_it_ended(process)}{f' in {at}' if at else ''}", at
    return "hangs", f"rank {rank} hangs{f' in {at}' if at else ''}", at


def run(size, function, may_die=()):
    """The results by rank. Raises RankFailed if a rank fails, exits or hangs; those of `may_die` may exit."""
    context = multiprocessing.get_context("fork")
    processes, pipes = [], []
    for rank in range(size):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_rank, args=(function, rank, size, theirs))
        process.start()
        theirs.close()
        processes.append(process)
        pipes.append(ours)
    results, problems, last, end = [None] * size, [], None, time.time() + DEADLINE
    for rank, pipe in enumerate(pipes):
        outcome, result, at = _receive(rank, processes[rank], pipe, end)
        if outcome == "done":
            results[rank] = result
        elif outcome == "failed":
            problems.append(f"rank {rank} of {size}{f' in {at}' if at else ''}:\n{result}")
        elif outcome == "hangs" or rank not in may_die:
            problems.append(result)
        last = at or last
    for process in processes:
        process.join(0.1 if problems else 10)
        if process.is_alive():
            process.kill()
            process.join()
    if problems:
        raise RankFailed("\n".join(problems), last)
    return results


def fresh_path():
    """The name of a file that does not exist, for a FileStore."""
    folder = tempfile.mkdtemp()
    return os.path.join(folder, "store")
