"""An HTTP service that writes an event for each request, and answers when the event is safe.

Beside a running `headgate dev`:  uvicorn --app-dir examples fastapi_service:app
Then:  curl -d '{"id": "1", "kind": "order", "amount": 9.5}' -H 'content-type: application/json' localhost:8000/events
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel, Field

import headgate


class Event(BaseModel):
    """What a caller sends: what the table could refuse, a text of no characters as the key, is refused before."""

    id: str = Field(min_length=1, max_length=100)
    kind: str
    amount: float


class Row(Event):
    """A row of the table, which has these columns."""

    at: datetime


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    address = os.environ.get("HEADGATE_CONNECT", "localhost:7070")
    async with headgate.aio.connect(address) as hg:
        events = await hg.create_table("events", Row, key="id", ordering="at", exist_ok=True)
        # One process, one channel: a second one of the same name would end this one with ChannelTakenOverError.
        async with events.channel(os.environ.get("CHANNEL", "api-1")) as channel:
            app.state.channel = channel
            yield  # when the service ends, the channel flushes what is still on its way


app = FastAPI(lifespan=lifespan)


@app.post("/events", status_code=201)
async def write(event: Event, request: Request) -> Row:
    """Requests that come together travel and are committed together; each waits for the commit of its own row."""
    row = Row(**event.model_dump(), at=datetime.now(UTC))
    channel: headgate.aio.Channel = request.app.state.channel
    try:
        receipt = await channel.upsert(row, timeout=5)
        await receipt.wait("durable", timeout=30)
    except headgate.FixCall as error:
        raise HTTPException(422, str(error)) from error
    except headgate.RetryLater as error:  # the row is kept and still being sent; sent again, it is the same row by its key
        raise HTTPException(503, str(error), headers={"Retry-After": "5"}) from error
    return row
