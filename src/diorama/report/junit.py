"""JUnit XML for continuous integration: a test for every control of every section, and one for the cases of every method."""

import xml.etree.ElementTree as ET

from diorama.core.errors import count
from diorama.report.notes import incomplete
from diorama.report.sections import Line, Section, sections
from diorama.report.shown import printable
from diorama.report.tables import Runs
from diorama.report.verdicts import why
from diorama.report.words import section_names


def junit(runs: Runs) -> str:
    """The document: a suite for each section, and one with an error if the run is incomplete."""
    root = ET.Element("testsuites", name="diorama")
    found = sections(runs)
    for name, section in zip(section_names(found), found, strict=True):
        _suite(root, name, section)
    if missing := incomplete(runs.values()):
        suite = ET.SubElement(root, "testsuite", name="complete", tests="1", failures="0", errors="1", skipped="0")
        case = ET.SubElement(suite, "testcase", name="all cases", classname="complete")
        ET.SubElement(case, "error", message=missing)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(root: ET.Element, name: str, section: Section) -> None:
    suite = ET.SubElement(root, "testsuite", name=printable(name))
    for line in section.methods:
        _method(suite, section, line)
    for verdict in section.verdicts:
        case = ET.SubElement(suite, "testcase", name=f"control: {verdict.control}", classname=section.protocol)
        kind = {"holds": "", "fails": "failure", "unknown": "skipped"}[verdict.holds]
        if kind:
            ET.SubElement(case, kind, message=verdict.text)
    for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f".//{tag}"))))


def _method(suite: ET.Element, section: Section, line: Line) -> None:
    """Add a test for a method: it passes if no case failed and there is a mean, which is its output."""
    name = line.name or section.model
    case = ET.SubElement(suite, "testcase", name=name, classname=section.protocol, time=f"{line.entry['seconds']:.3f}")
    if failed := line.primary["n_error"]:
        ET.SubElement(case, "error", message=f"{count(failed, 'case')} failed: {why(line)}")
    elif line.mean is None:
        ET.SubElement(case, "failure", message=f"no case has a value: {why(line)}")
    ET.SubElement(case, "system-out").text = f"{section.metric} {section.score(line)}"
