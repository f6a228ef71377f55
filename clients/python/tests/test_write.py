import datetime
import uuid

import pytest

import labdata_client as labdata


def test_rows_and_their_curves_are_one_request(lab, tables):
    result = lab.write(
        {tables.sample: [{"_ref": "a", "name": "A"}, {"_ref": "b", "name": "B", "parent": "@a"}]},
        series={tables.curve: {"@a": {"hours": [0, 1], "od600": [0.1, None]}}},
    )
    assert result.refs["a"] == result["refs"]["a"] == result.tables[0]["ids"][0]
    assert result.series[0]["points_written"] == 2
    assert lab.get_execution(result.job_execution_id).status == "completed"
    rows = lab.read(tables.sample, name="B")
    assert rows[0]["parent"] == result.refs["a"]
    curve = lab.series(tables.curve, [result.refs["a"]])[0]
    assert curve.columns["od600"] == [0.1, None]


def test_an_execution_completes_and_can_be_reverted(lab, tables):
    with lab.execution("Import") as run:
        run.write({tables.sample: [{"name": "A"}]})
        assert lab.get_execution(run.id).status == "running"
    assert run.status == "completed"
    assert "Import" in run._repr_html_()
    assert run.revert().deleted_count == 1
    assert lab.read(tables.sample) == []


def test_changes_are_shown_before_and_after_the_revert(lab, tables):
    with lab.execution("Import") as run:
        run.write({tables.sample: [{"name": "A"}, {"name": "B"}]})
        shown = run.changes()
    (table,) = shown.tables
    assert (table["table"], table["created"], len(table["ids"]["created"])) == (tables.sample, 2, 2)
    assert run.revert(dry_run=True).deleted_count == 2
    assert run.changes() == shown
    assert len(lab.read(tables.sample)) == 2
    assert run.revert().deleted_count == 2
    reverted = lab.changes(run.id)
    assert reverted.tables[0]["created"] == 2
    assert reverted.reverted_by["user"]["id"] == lab.request("GET", "/me")["user"]["id"]


def test_updates_are_restored_and_the_undo_is_undone(lab, tables):
    (sample,) = lab.write({tables.sample: [{"name": "A"}]}).tables[0]["ids"]
    with lab.execution("Correct") as run:
        run.write({tables.sample: [{"id": sample, "name": "B"}]}, mode="update")
    done = lab.revert(run.id, restore=True)
    assert done.restored_count == 1
    assert [row["name"] for row in lab.read(tables.sample)] == ["A"]
    lab.revert(done.undo_execution_id, restore=True)
    assert [row["name"] for row in lab.read(tables.sample)] == ["B"]
    versions = lab.history(tables.sample, sample)
    assert [version.operation for version in versions] == ["restored", "restored", "updated", "created"]
    assert versions[2].changed["name"] == {"before": "A", "after": "B"}
    lab.restore(tables.sample, sample, 1)
    assert [row["name"] for row in lab.read(tables.sample)] == ["A"]


def test_a_dropped_column_is_restored_from_the_trash(lab, tables):
    lab.write({tables.sample: [{"name": "A", "strain": "K-12"}]})
    lab.request("DELETE", f"/tables/{tables.sample}/columns/strain", params={"force": "true"})
    entry = next(entry for entry in lab.trash() if entry.name == f"{tables.sample}.strain")
    assert (entry.kind, entry.deleted_by["user"]["id"]) == ("column", lab.request("GET", "/me")["user"]["id"])
    assert lab.restore_from_trash(entry.id) == entry
    assert entry not in lab.trash(limit=1000)
    assert lab.read(tables.sample)[0]["strain"] == "K-12"


@pytest.mark.parametrize(("revert", "left"), [(True, 0), (False, 1)])
def test_an_exception_fails_the_execution(lab, tables, revert, left):
    run = lab.execution("Import", revert_on_error=revert)

    def script():
        with run:
            run.write({tables.sample: [{"name": "A"}]})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        script()
    assert lab.get_execution(run.id).status == "failed"
    assert len(lab.read(tables.sample)) == left


def test_upserts_take_a_key(lab, tables):
    lab.write({tables.sample: [{"name": "A", "strain": "x"}]})
    options = {"mode": "upsert", "key": ["name"]}
    result = lab.write({tables.sample: [{"name": "A", "strain": "y"}, {"name": "B"}]}, **options)
    assert (result.tables[0]["created"], result.tables[0]["updated"]) == (1, 1)
    lab.write([{"table": tables.sample, "rows": [{"name": "B"}], "mode": "delete", "key": ["name"]}])
    assert [row["strain"] for row in lab.read(tables.sample)] == ["y"]


def test_what_was_changed_since_it_was_read_is_not_overwritten(lab, tables):
    lab.write({tables.sample: [{"name": "A", "strain": "x"}]})
    (read,) = lab.read(tables.sample)
    change = {"id": read["id"], "strain": "y", "_if_updated_at": read["updated_at"]}
    lab.write({tables.sample: [change]}, mode="update")
    with pytest.raises(labdata.WriteRefused) as refused:
        lab.write({tables.sample: [change]}, mode="update")
    (problem,) = refused.value.problems
    assert (problem.path, problem.code) == ("tables[0].rows[0]", "changed_since")
    (read,) = lab.read(tables.sample)
    lab.write({tables.sample: [{"id": read["id"], "_if_updated_at": read["updated_at"]}]}, mode="delete")


def test_values_of_python_are_sent_as_the_platform_takes_them(lab, tables):
    taken_at = datetime.datetime(2026, 3, 1, 12, 30, 0, 250000, tzinfo=datetime.timezone.utc)
    lab.write(
        {
            tables.reading: [
                {
                    "value": float("nan"),
                    "taken_at": taken_at,
                    "day": taken_at.date(),
                    "settings": {"gain": [1, None]},
                    "note": str(uuid.UUID(int=1)),
                }
            ]
        }
    )
    row = lab.read(tables.reading)[0]
    assert row["value"] is None
    assert row["taken_at"] == "2026-03-01T12:30:00.25Z"
    assert row["day"] == "2026-03-01"
    assert row["settings"] == {"gain": [1, None]}


def test_an_infinite_number_is_refused_with_its_place(lab, tables):
    with pytest.raises(ValueError, match=r"\[1\]\.value"):
        lab.write({tables.reading: [{"value": 1.0}, {"value": float("inf")}]})
    assert lab.read(tables.reading) == []


def test_problems_have_their_place_and_the_request_id(lab, tables):
    with pytest.raises(labdata.WriteRefused) as refused:
        lab.write({tables.sample: [{"name": 3}, {"name": "A", "colour": "<red>"}]})
    paths = [problem.path for problem in refused.value.problems]
    assert paths[0] == "tables[0].rows[0].name"
    assert refused.value.request_id in str(refused.value)
    assert "tables[0].rows[0].name" in str(refused.value)
    assert "<red>" not in refused.value._repr_html_()
    assert lab.read(tables.sample) == []


def test_a_dry_run_writes_nothing(lab, tables):
    result = lab.write({tables.sample: [{"name": "A"}]}, dry_run=True)
    assert result.job_execution_id is None
    assert result.tables[0]["created"] == 1
    assert lab.read(tables.sample) == []


def test_an_empty_write_is_allowed(lab, tables):
    assert lab.write({tables.sample: []}).tables[0]["ids"] == []


class TestBatches:
    def test_labels_hold_across_batches(self, lab, tables):
        rows = [{"_ref": f"s{i}", "name": f"S{i:05}", "strain": "@s1"} for i in range(12_000)]
        children = [{"name": f"C{i}", "parent": f"@s{i}"} for i in (0, 11_999)]
        readings = [{"sample": "@s11999", "value": 1}]
        result = lab.write(
            [
                {"table": tables.sample, "rows": rows},
                {"table": tables.sample, "rows": children},
                {"table": tables.reading, "rows": readings},
            ],
            series={tables.curve: {"@s0": {"hours": [1], "od600": [2]}}},
        )
        assert [entry["created"] for entry in result.tables] == [12_000, 2, 1]
        assert len(result.tables[0]["ids"]) == len(result.refs) == 12_000
        assert lab.read(tables.sample, name="C0")[0]["parent"] == result.refs["s0"]
        assert lab.read(tables.reading)[0]["sample"] == result.refs["s11999"]
        # A text is not a label.
        assert lab.read(tables.sample, name="S11000")[0]["strain"] == "@s1"
        assert lab.series(tables.curve, [result.refs["s0"]])[0].points == 1
        execution = result.job_execution_id
        assert lab.get_execution(execution).status == "completed"
        assert lab.revert(execution).deleted_count == 12_003
        assert lab.read(tables.sample, limit=1) == []

    def test_rows_are_cut_by_their_size(self, lab, tables):
        rows = ({"name": f"S{i}", "strain": "x" * 100_000} for i in range(100))
        result = lab.write({tables.sample: rows})
        assert result.tables[0]["created"] == 100
        assert lab.query(f"select count(*) as n from {tables.sample}") == [{"n": 100}]

    def test_series_are_cut_by_their_values(self, lab, tables):
        names = [f"S{i}" for i in range(7)]
        ids = lab.write({tables.sample: [{"name": name} for name in names]}).tables[0]["ids"]
        points = {"hours": list(range(30_000)), "od600": [0.5] * 30_000}
        result = lab.write(series={tables.curve: dict.fromkeys(ids, points)})
        assert [entry["points_written"] for entry in result.series] == [30_000] * 7

    def test_a_series_that_cannot_be_cut_is_refused_in_words(self, lab, tables):
        points = {"hours": range(125_001), "od600": range(125_001)}
        series = {tables.curve: {"@a": {"hours": [0], "od600": [1]}, "@b": points}}
        rows = [{"_ref": "a", "name": "A"}, {"_ref": "b", "name": "B"}]
        with pytest.raises(labdata.InvalidArgument, match=r"series\[1\] has 250,002 values.*row of its own"):
            lab.write({tables.sample: rows}, series)

    def test_a_problem_of_a_later_batch_has_its_place_in_the_whole_write(self, lab, tables):
        rows = [{"name": f"S{i}"} for i in range(10_005)]
        rows[10_003]["name"] = 7
        with pytest.raises(labdata.WriteRefused) as refused, lab.execution("x", revert_on_error=True) as run:
            run.write({tables.sample: rows})
        assert refused.value.problems[0].path == "tables[0].rows[10003].name"
        assert lab.read(tables.sample, limit=1) == []

    def test_a_label_cannot_be_used_twice(self, lab, tables):
        rows = [
            {"_ref": "a", "name": f"S{i}"} if i in (0, 10_001) else {"name": f"S{i}"} for i in range(10_002)
        ]
        with pytest.raises(ValueError, match="two rows have the label 'a'"), lab.execution() as run:
            run.write({tables.sample: rows})

    def test_a_dry_run_is_one_request(self, lab, tables):
        with pytest.raises(ValueError, match="dry run"):
            lab.write({tables.sample: [{"name": f"S{i}"} for i in range(10_001)]}, dry_run=True)
        assert lab.read(tables.sample) == []

    def test_a_later_failure_names_what_stays_and_how_to_revert_it(self, lab, tables):
        rows = [{"name": f"S{i}"} for i in range(10_001)]
        with pytest.raises(labdata.WriteRefused, match=r"10,000 rows before it were written") as refused:
            lab.write({tables.sample: [*rows, {"name": 7}]})
        execution = refused.value.job_execution_id
        assert f"lab.revert({execution!r})" in str(refused.value)
        assert execution in refused.value._repr_html_()
        assert lab.revert(execution)["deleted_count"] == 10_000
        with lab.execution("Rows") as run, pytest.raises(labdata.InvalidArgument) as failed:
            run.write({tables.sample: [*rows, {"name": float("inf")}]})
        assert failed.value.job_execution_id == run.id
        with pytest.raises(labdata.WriteRefused) as refused:
            lab.write({tables.sample: [{"name": 7}]})
        assert refused.value.job_execution_id is None
        assert "stay" not in str(refused.value)
