"""Runs a function on several ranks, each a process, and collects what they return."""

import atexit
import multiprocessing
import multiprocessing.connection
import os
import tempfile
import time
import traceback

DEADLINE = 120  # seconds; far more than any case needs, so that only a hang reaches it


class RankFailed(Exception):
    pass


def _rank(function, rank, size, pipe):
    try:
        pipe.send(("done", function(rank, size)))
    except BaseException:  # also SystemExit: the parent reports it
        pipe.send(("failed", traceback.format_exc()))
    pipe.close()
    atexit._run_exitfuncs()  # a forked process does not run them
    os._exit(0)


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
    results, problems, end = [None] * size, [], time.time() + DEADLINE
    for rank, pipe in enumerate(pipes):
        try:
            if not pipe.poll(max(0.1, end - time.time())):
                problems.append(f"rank {rank} hangs")
                continue
            outcome, results[rank] = pipe.recv()
            if outcome == "failed":
                problems.append(f"rank {rank} of {size}:\n{results[rank]}")
        except EOFError:
            if rank not in may_die:
                problems.append(f"rank {rank} exited")
    for process in processes:
        process.join(0.1 if problems else 10)
        if process.is_alive():
            process.kill()
            process.join()
    if problems:
        raise RankFailed("\n".join(problems))
    return results


def fresh_path():
    """The name of a file that does not exist, for a FileStore."""
    folder = tempfile.mkdtemp()
    return os.path.join(folder, "store")
