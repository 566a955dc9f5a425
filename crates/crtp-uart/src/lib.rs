//! CPX framing over a serial port: codec, credit, session and the port itself.
