import asyncio
import inspect

import pytest
from conftest import KEY

import labdata_client as labdata


def test_the_asynchronous_client_does_the_same(server, tables, tmp_path):
    async def script():
        async with labdata.connect_async(server.url, KEY) as lab:
            async with lab.execution("Import") as run:
                await run.upload(bytes(5_000_000), name="large.bin")
                rows = [{"_ref": f"s{i}", "name": f"S{i}"} for i in range(10_001)]
                points = {"@s0": {"hours": [0.0], "od600": [1.0]}}
                written = await run.write({tables.sample: rows}, series={tables.curve: points})
            both = await asyncio.gather(
                lab.read(tables.sample, name__in=["S0", "S10000"]),
                lab.series(tables.curve, [written.refs["s0"]]),
            )
            file = (await lab.files("large.bin", limit=1))[0]
            path = await lab.download(file["file_id"], tmp_path)
            return run, both, path.stat().st_size

    run, (rows, curves), size = asyncio.run(script())
    assert run.status == "completed"
    assert {row["name"] for row in rows} == {"S0", "S10000"}
    assert curves[0].columns["od600"] == [1.0]
    assert size == 5_000_000


def test_a_cancelled_script_fails_and_reverts_its_execution(server, lab, tables):
    async def script():
        client = labdata.connect_async(server.url, KEY)
        async with client, client.execution("Import", revert_on_error=True) as run:
            await run.write({tables.sample: [{"name": "A"}]})
            ids.append(run.id)
            await asyncio.sleep(3600)

    async def cancel():
        task = asyncio.ensure_future(script())
        while not ids:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    ids = []
    asyncio.run(cancel())
    assert lab.get_execution(ids[0]).status == "failed"
    assert lab.read(tables.sample) == []


@pytest.mark.parametrize(
    ("asynchronous", "synchronous"),
    [(labdata.AsyncLab, labdata.Lab), (labdata.AsyncExecution, labdata.Execution)],
)
def test_both_have_the_same_names(asynchronous, synchronous):
    def public(kind):
        return {
            name: inspect.signature(member).parameters.keys() if callable(member) else None
            for name, member in vars(kind).items()
            if not name.startswith("_")
        }

    assert public(asynchronous) == public(synchronous)
