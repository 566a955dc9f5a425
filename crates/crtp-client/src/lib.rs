//! Crazyflie client state machine: connecting, tables of contents, log blocks and parameters.
