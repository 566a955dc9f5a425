//! Packet logs for other tools: spreadsheets and scripts, Wireshark, Perfetto.

mod csv_file;
mod pcapng;
mod perfetto;

pub use csv_file::csv;
pub use pcapng::{Header, pcapng};
pub use perfetto::perfetto;
