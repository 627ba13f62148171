"""Listings are made once for a state of the sources."""

import os

from assay.cli.listing_cache import fingerprint, kept_rows


def test_rows_are_made_once_until_a_source_changes(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    package, made = tmp_path / "package", []
    (package / "inner" / "__pycache__").mkdir(parents=True)
    source = package / "inner" / "a.py"
    source.write_text("x = 1\n")

    def rows():
        made.append(1)
        return [{"n": len(made)}]

    def kept(name="things"):
        return kept_rows(name, rows, [package])

    assert [kept(), kept()] == [[{"n": 1}]] * 2
    (package / "inner" / "__pycache__" / "a.pyc").write_text("other")
    (package / "notes.txt").write_text("other")
    assert kept() == [{"n": 1}], "what is no source does not count"
    assert kept("others") == [{"n": 2}], "each listing is its own"
    before = source.stat()
    source.write_text("x = 22\n")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert kept() == [{"n": 3}], "the size tells"
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert kept() == [{"n": 4}], "and the time"
    (package / "b.py").write_text("")
    assert kept() == kept() == [{"n": 5}], "and a new file"


def test_a_damaged_or_a_forbidden_cache_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    package = tmp_path / "package"
    package.mkdir()
    assert kept_rows("things", lambda: [{"n": 1}], [package]) == [{"n": 1}]
    (file,) = (tmp_path / "cache" / "lists").iterdir()
    for text in ("", "[]", "{}", '{"state": 3}'):
        file.write_text(text)
        assert kept_rows("things", lambda: [{"n": 2}], [package]) == [{"n": 2}]
    blocked = tmp_path / "blocked"
    blocked.write_text("no folder")
    monkeypatch.setenv("ASSAY_CACHE", str(blocked))
    assert kept_rows("things", lambda: [{"n": 3}], [package]) == [{"n": 3}]


def test_a_fingerprint_is_of_the_files_alone(tmp_path):
    (tmp_path / "a.py").write_text("")
    assert fingerprint(tmp_path) == fingerprint(tmp_path)


def test_a_list_that_is_kept_is_the_list(assay):
    first, again = assay("tasks", "list", "--json"), assay("tasks", "list", "--json")
    assert first.code == 0
    assert first.out == again.out
    assert assay("verify", "list").out == assay("verify", "list").out
