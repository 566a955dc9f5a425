//! Simulated Crazyflie that speaks CRTP protocol 12.
