"""Publishes hover setpoints at 50 Hz with a deadline and manual liveliness until it is killed: an autonomy stack on its own."""
import sys

import rclpy
from crazyflie_openlink.msg import Hover
from rclpy.duration import Duration
from rclpy.qos import LivelinessPolicy, QoSProfile

rclpy.init(domain_id=int(sys.argv[1]))
node = rclpy.create_node("autonomy")
qos = QoSProfile(depth=1, deadline=Duration(seconds=0.1), liveliness=LivelinessPolicy.MANUAL_BY_TOPIC,
                 liveliness_lease_duration=Duration(seconds=0.2))
publisher = node.create_publisher(Hover, f"{sys.argv[2]}/cmd_hover", qos)
node.create_timer(0.02, lambda: publisher.publish(Hover(z_distance=0.7)))
rclpy.spin(node)
