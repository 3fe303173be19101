from typing import ClassVar

from mechanism_contract import Case, MechanismContract

from hubbub_authoring.mechanisms.nearness import nearness


class TestNearness(MechanismContract):
    cases: ClassVar = {
        "seven values": Case(
            lambda: nearness(7, epsilon=2.0, reach=0.5),
            epsilon=2.0,
            digest="b2419d7032a2295476a2a6148c28f7eaa66452f2dc5dfed696dccfb9618f252f",
        ),
    }
