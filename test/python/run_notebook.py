"""run_notebook.py NOTEBOOK -- executes the code cells of a notebook in order, as Jupyter would, and prints
what they show. A value in a cell's last line is shown as HTML if it has _repr_html_. Fails if a cell fails,
or if the notebook stores outputs."""

import ast
import json
import os
import sys

# Programs that a cell starts must not get the sanitizers' runtime of this process.
os.environ.pop("LD_PRELOAD", None)


def run_cell(source, names, name):
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), names)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        notebook = json.load(file)
    os.chdir(os.path.dirname(os.path.abspath(sys.argv[1])))  # where Jupyter starts it
    assert notebook["nbformat"] == 4, notebook["nbformat"]
    names, ran = {"__name__": "__main__"}, 0
    for index, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        if cell["outputs"] or cell["execution_count"] is not None:
            sys.exit(f"cell {index} stores outputs: clear them, since times differ between machines")
        shown = run_cell("".join(cell["source"]), names, f"cell {index}")
        if shown is not None:
            print(shown._repr_html_()[:70] if hasattr(shown, "_repr_html_") else repr(shown)[:70])
        ran += 1
    print(f"{ran} cells of {os.path.basename(sys.argv[1])}")


if __name__ == "__main__":
    main()
