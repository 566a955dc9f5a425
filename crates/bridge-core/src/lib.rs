//! Routes, setpoint mailboxes, link-loss policy and telemetry mapping, without I/O.
