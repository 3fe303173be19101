from hubbub_lab.simulation.device_simulator import Column as Column, DeviceSimulator as DeviceSimulator
from hubbub_lab.simulation.session import (
    SentRound as SentRound,
    Session as Session,
    Traffic as Traffic,
    fetch_surveys as fetch_surveys,
    released as released,
)
from hubbub_lab.simulation.tokens import TokenPool as TokenPool
from hubbub_lab.simulation.upload import UploadCounts as UploadCounts
