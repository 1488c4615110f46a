"""Which names the code of a notebook's cells makes and needs, and from which earlier statements a later cell gets them.

A static analysis: nothing runs. It sees names, and objects that a statement changes in place. It doesn't see what a cell
does outside the notebook, such as to a topic.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

__all__ = ["Code", "Needs", "Statement", "ended_by", "needs"]

# IPython has them, too.
_GIVEN = {*dir(builtins), "get_ipython", "display", "_", "__class__"}

# Methods of lists, sets and dictionaries that change them.
_CHANGING = {
    "add",
    "append",
    "clear",
    "difference_update",
    "discard",
    "extend",
    "insert",
    "pop",
    "remove",
    "setdefault",
    "sort",
    "update",
}

# What IPython fills into the command of a line that begins with "!".
_FILLED = re.compile(r"(?<!\{)\{([^{}]+)\}(?!\})")


@dataclass(frozen=True)
class Statement:
    """A statement at the top level of a cell.

    Attributes
    ----------
    text
        Its source.
    makes
        Names that it binds.
    uses
        Names that it reads when it runs.
    uses_later
        Names that its functions read when somebody calls them.
    changes
        Names of objects that it changes in place.
    plain
        Whether running it does nothing but bind names: an import, a definition or a literal.
    """

    text: str
    makes: frozenset[str]
    uses: frozenset[str]
    uses_later: frozenset[str]
    changes: frozenset[str]
    plain: bool


@dataclass(frozen=True)
class Code:
    """The source of a cell of code, with or without IPython's magics."""

    source: str

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Its statements, in order."""
        return _statements(self.source)

    def part(self, chosen: frozenset[int]) -> str:
        """Return the source of some statements, by their numbers. Comments stay if all are chosen."""
        if len(chosen) == len(self.statements):
            return self.source
        return "\n".join(self.statements[number].text for number in sorted(chosen))


@dataclass(frozen=True)
class Needs:
    """What must run before.

    Attributes
    ----------
    parts
        The number of a cell → the numbers of its statements that are needed. Either all of them, or only such as do
        nothing but bind names.
    missing
        Names that nothing has made before.
    """

    parts: dict[int, frozenset[int]]
    missing: frozenset[str]


def needs(
    cells: Sequence[Code], start: int, *, also: Iterable[int] = (), never: Iterable[int] = (), ends: bool = True
) -> Needs:
    """Find out what must have run so that the cells from a place on can run.

    Parameters
    ----------
    cells
        All cells of code, in order.
    start
        The number of the first cell that is to run.
    also
        Numbers of cells before it that must run for a reason that names don't show.
    never
        Numbers of cells that aren't taken just because they change an object that is needed.
    ends
        Whether ``name.stop()`` and the like count as a use of the name. They don't if what was never started needn't be
        stopped.
    """
    return _Search(cells, start, frozenset(never)).find(frozenset(also), ends)


def ended_by(statement: Statement) -> str | None:
    """Return the name that a statement ends (``name.stop()``, ``close`` or ``cleanup``), or None if it does anything else."""
    found = re.fullmatch(r"(\w+)\.(?:stop|close|cleanup)\(\)", statement.text.strip())
    return found[1] if found else None


class _Search:
    """Go back from what is to run. A place is the number of a statement, counted over all cells."""

    def __init__(self, cells: Sequence[Code], start: int, never: frozenset[int]) -> None:
        self._statements = [statement for cell in cells for statement in cell.statements]
        self._cell_of = [number for number, cell in enumerate(cells) for _ in cell.statements]
        self._begins = list(accumulate((len(cell.statements) for cell in cells), initial=0))
        self._start = start
        self._never = never
        self._made: dict[str, list[int]] = {}
        self._changed: dict[str, list[int]] = {}
        for place, statement in enumerate(self._statements):
            for name in statement.makes:
                self._made.setdefault(name, []).append(place)
            for name in statement.changes:
                self._changed.setdefault(name, []).append(place)
        self._parts: dict[int, set[int]] = {}
        self._whole: set[int] = set()
        self._missing: set[str] = set()
        self._resolved: set[tuple[str, int]] = set()

    def find(self, also: frozenset[int], ends: bool) -> Needs:
        for number in sorted(also):
            self._take_whole(number)
        for place in range(self._begins[self._start], len(self._statements)):
            if ends or not ended_by(self._statements[place]):
                self._resolve_uses(place)
        return Needs({number: frozenset(parts) for number, parts in sorted(self._parts.items())}, frozenset(self._missing))

    def _resolve_uses(self, place: int) -> None:
        for name in self._statements[place].uses:
            self._resolve(name, place)

    def _resolve(self, name: str, where: int) -> None:
        """Take what binds a name before a place, and what changes the object between there and that place."""
        if name in _GIVEN or (name, where) in self._resolved:
            return
        self._resolved.add((name, where))
        made = self._made.get(name, [])
        last = bisect_left(made, where) - 1
        if last < 0:
            self._missing.add(name)
            return
        place = made[last]
        for change in self._changed.get(name, []):
            if place < change < where and self._cell_of[change] not in self._never:
                self._take_whole(self._cell_of[change])
        self._take(place)
        for later in self._statements[place].uses_later:
            self._resolve(later, where)

    def _take(self, place: int) -> None:
        number = self._cell_of[place]
        if not self._statements[place].plain:
            self._take_whole(number)
        elif number < self._start and number not in self._whole:
            self._parts.setdefault(number, set()).add(place - self._begins[number])
            self._resolve_uses(place)

    def _take_whole(self, number: int) -> None:
        if number < self._start and number not in self._whole:
            self._whole.add(number)
            places = range(self._begins[number], self._begins[number + 1])
            self._parts[number] = set(range(len(places)))
            for place in places:
                self._resolve_uses(place)


@cache  # a chapter's cells are asked for again for each of its sections
def _statements(source: str) -> tuple[Statement, ...]:
    from IPython.core.inputtransformer2 import TransformerManager

    python = TransformerManager().transform_cell(source)
    return tuple(_statement(node, python) for node in ast.parse(python).body)


def _statement(node: ast.stmt, python: str) -> Statement:
    text = ast.get_source_segment(python, node) or ast.unparse(node)
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.decorator_list:
        text = ast.unparse(node)  # the segment begins after the decorators
    flow = _Flow()
    flow.visit(node)
    return Statement(
        text,
        frozenset(flow.bound),
        frozenset(flow.uses - _GIVEN),
        frozenset(flow.later - _GIVEN),
        frozenset(() if isinstance(node, ast.FunctionDef | ast.ClassDef) else _changed(node)),
        _plain(node),
    )


class _Flow(ast.NodeVisitor):
    """Follow a statement as it runs: which names it reads before it has bound them itself."""

    def __init__(self) -> None:
        self.bound: set[str] = set()
        self.uses: set[str] = set()
        self.later: set[str] = set()
        self._local: list[set[str]] = []  # of lambdas and comprehensions

    def visit_Name(self, node: ast.Name) -> None:
        inside = any(node.id in names for names in self._local)
        if isinstance(node.ctx, ast.Store):
            self.bound.add(node.id)
        elif not inside and node.id not in self.bound:
            self.uses.add(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._in_turn(node.value, *node.targets)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._in_turn(node.annotation, node.value, node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and node.target.id not in self.bound:
            self.uses.add(node.target.id)
        self._in_turn(node.value, node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._in_turn(node.value, node.target)

    def visit_For(self, node: ast.For) -> None:
        self._in_turn(node.iter, node.target, *node.body, *node.orelse)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        # Python deletes the name afterwards.
        self._local.append({node.name} if node.name else set())
        self._in_turn(node.type, *node.body)
        self._local.pop()

    def visit_Import(self, node: ast.Import) -> None:
        self.bound |= {(name.asname or name.name).partition(".")[0] for name in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.bound |= {name.asname or name.name for name in node.names}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        defaults = [default for default in node.args.kw_defaults if default]
        self._in_turn(*node.decorator_list, *node.args.defaults, *defaults)
        self.bound.add(node.name)
        reads, writes = _globals_of(node)
        self.later |= reads
        self.bound |= writes

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._in_turn(*node.decorator_list, *node.bases)
        inner = _Flow()
        for statement in node.body:
            inner.visit(statement)
        self.uses |= inner.uses
        self.later |= inner.later
        self.bound.add(node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        self._in_turn(*node.args.defaults)
        self._local.append({arg.arg for arg in every if arg})
        self.visit(node.body)
        self._local.pop()

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        for command in _commands(node):
            for expression in _FILLED.findall(command):
                self._in_turn(_parsed(expression))

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        targets = {part.id for made in node.generators for part in ast.walk(made.target) if isinstance(part, ast.Name)}
        self._in_turn(node.generators[0].iter)  # outside of the comprehension's own scope
        self._local.append(targets)
        for number, made in enumerate(node.generators):
            self._in_turn(*([made.iter] if number else []), *made.ifs)
        self._in_turn(*((node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)))
        self._local.pop()

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def _in_turn(self, *nodes: ast.AST | None) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)


def _globals_of(function: ast.FunctionDef) -> tuple[set[str], set[str]]:
    """Return the names outside of it that a function reads, and those that it writes."""
    reads: set[str] = set()
    writes: set[str] = set()
    todo = list(symtable.symtable(ast.unparse(function), "cell", "exec").get_children())
    while todo:
        scope = todo.pop()
        todo += scope.get_children()
        reads |= {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global() and symbol.is_referenced()}
        writes |= {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global() and symbol.is_assigned()}
    for node in ast.walk(function):
        for command in _commands(node):
            for expression in _FILLED.findall(command):
                reads |= {part.id for part in ast.walk(_parsed(expression)) if isinstance(part, ast.Name)}
    return reads - writes, writes


def _commands(call: ast.AST) -> Iterator[str]:
    """Yield the command that a call gives to a shell."""
    if isinstance(call, ast.Call) and ast.unparse(call.func) in ("get_ipython().system", "get_ipython().getoutput"):
        yield from (arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))


def _parsed(expression: str) -> ast.AST:
    """Return what IPython fills into a command. What isn't Python is part of the command, such as a program of awk's."""
    try:
        return ast.parse(expression, mode="eval")
    except SyntaxError:
        return ast.Module([], [])


def _changed(node: ast.stmt) -> Iterator[str]:
    for part in ast.walk(node):
        target: ast.expr | None = None
        if isinstance(part, ast.Subscript | ast.Attribute) and isinstance(part.ctx, ast.Store | ast.Del):
            target = part.value
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _CHANGING:
            target = part.func.value
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
        if isinstance(target, ast.Name):
            yield target.id


def _plain(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return True
    if not isinstance(node, ast.Assign) or not all(isinstance(target, ast.Name) for target in node.targets):
        return False
    try:
        ast.literal_eval(node.value)
    except ValueError:
        return False
    return True
