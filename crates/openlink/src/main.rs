//! The `openlink` command: everything that needs no ROS.

fn main() {}
