"""The app of docs/device.md on an event loop."""

import asyncio

from hubbub.survey import Attribute
from hubbub_client import AsyncAgent, TransportError

COMMUTE = Attribute.labels("commute", ["car", "bike", "train", "on foot"], kind="static")


async def main() -> None:
    """Join, answer and upload, as app.py does."""
    async with AsyncAgent("loop.db", "http://127.0.0.1:8780", budget=4.0) as agent:
        await agent.register(COMMUTE)
        await agent.set("commute", "train")
        await agent.opt_in("commute")
        try:
            for survey in await agent.fetch_surveys():
                print(survey.title, (await agent.enrol(survey)).status)
        except TransportError as error:
            print("no new surveys:", error)
        await agent.answer()
        print((await agent.upload()).waiting, "wait,", len(await agent.sent()), "sent")
        account = await agent.account()
        print(f"spent {account.loss:.3f} of {account.budget:g}, {account.left:.3f} left")


asyncio.run(main())
