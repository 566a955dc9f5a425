//! Paced, partially reliable, in-order datagram transport over UDP.
