//! Real-time policies, periodic loops, the fake control box and the host doctor.
