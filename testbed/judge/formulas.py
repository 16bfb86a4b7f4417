# SPDX-License-Identifier: GPL-2.0
"""Values of a paper's formulas, such as "sqrt(5 * C) * (1 - sqrt(delta))" for C = 187.5 and delta = 0.4."""

from __future__ import annotations

import ast
import math
import operator

from ..spec.tables import ExperimentError

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def value(formula: str, of: dict[str, float], where: str = "formula") -> float:
    """The formula's value; it may have numbers, the names in ``of``, + - * / ** and sqrt().

    ExperimentError if it has anything else, or no value.
    """

    def made(node: ast.expr) -> float:
        match node:
            case ast.Constant(value=float() | int() as number):
                return float(number)
            case ast.Name(id=name) if name in of:
                return of[name]
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in OPERATORS:
                return float(OPERATORS[type(sign)](made(left), made(right)))
            case ast.Call(func=ast.Name(id="sqrt"), args=[one], keywords=[]):
                return math.sqrt(made(one))
        raise ExperimentError(
            f"{where}: {formula!r}: {ast.unparse(node)!r}: allowed are numbers, {', '.join(of)}, + - * / ** and sqrt()"
        )

    try:
        return made(ast.parse(formula, mode="eval").body)
    except (SyntaxError, ArithmeticError, ValueError) as error:
        raise ExperimentError(f"{where}: {formula!r} has no value: {error}") from error
