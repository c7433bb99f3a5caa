"""The whole table of the engine, checked record by record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tinygrad_tf.checking.cases import Record, cases, records
from tinygrad_tf.checking.report import GradcheckError, Report


@dataclass(frozen=True)
class Row:
    """What the check of one record came to; `report` joins its cases, `failures` are those amiss.

    A record without cases has nothing to show for itself, and so is not proven.
    """

    op: str
    cases: int
    report: Report
    failures: tuple[GradcheckError, ...] = ()

    @property
    def proven(self) -> bool:
        """Whether there was something to check, and all of it is right."""
        return self.cases > 0 and not self.failures


def check_table() -> Iterator[Row]:
    """Check every primitive and fused operation of the engine, first and second order."""
    for record in records():
        yield check_record(record)


def check_record(record: Record) -> Row:
    """Check one record at all its points."""
    points = cases(record)
    report, failures = Report(record.name), []
    for case in points:
        try:
            report = report.joined(case.check(order=2))
        except GradcheckError as failure:
            failures.append(failure)
    return Row(record.name, len(points), report, tuple(failures))
