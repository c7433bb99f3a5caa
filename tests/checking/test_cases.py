"""Every record of the engine's table is checked at points of its own."""

from tinygrad_tf.checking.cases import cases, check_record, check_table
from tinygrad_tf.engine.graph import Op
from tinygrad_tf.engine.table import RECORDS


def test_every_record_is_proven_at_points_of_its_own() -> None:
    rows = list(check_table())
    assert [row.op for row in rows] == [record.name for record in RECORDS.values()]
    assert [row.op for row in rows if not row.proven] == []
    assert all(row.report.entries and row.report.worst_second is not None for row in rows)
    assert max(row.report.worst for row in rows) < 1e-8
    assert not any(row.report.kinks or row.report.ill_conditioned for row in rows)


def test_a_record_without_points_is_not_proven() -> None:
    odd = Op("odd_one", lambda x, *, turns: x * turns, (lambda g, _y, _x, *, turns: g * turns,))
    assert not cases(odd) and not check_record(odd).proven


def test_an_op_without_parameters_needs_no_line_in_the_table() -> None:
    cube = Op("cube", lambda x: x * x * x, (lambda g, _y, x: g * 3.0 * x * x,))
    wrong = Op("cube", lambda x: x * x * x, (lambda g, _y, x: g * 3.0 * x,))
    assert check_record(cube).proven
    row = check_record(wrong)
    assert not row.proven and {f.kind for f in row.failures} == {"value"}
