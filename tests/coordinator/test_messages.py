"""What the pure core orders, as it stands on a control stream."""

from headgate_coordinator.instructions import Refusal, Throttle
from headgate_coordinator.messages import Address, order_of
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire

TO = Address("t", 3, "file:///t", "{}", drop_beaten=True)


def test_a_pause_is_no_rate_and_no_refusal() -> None:
    assert order_of(TO, 1, Throttle(paused=True)).throttle == wire.Throttle(paused=True)
    assert order_of(TO, 1, Throttle(1)).throttle == wire.Throttle(bytes_per_second=1)
    stopped = order_of(TO, 1, Throttle(stopped=Refusal("CODE_OVERLOADED", "200 log files wait", "Start compactors."))).throttle
    assert (stopped.stopped, stopped.paused, stopped.why.code) == (True, False, errors_pb2.CODE_OVERLOADED)
