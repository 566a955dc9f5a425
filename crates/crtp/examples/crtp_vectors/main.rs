//! Prints packets of this crate as `name hex` lines, for comparison with other implementations.

mod list;

fn main() -> Result<(), crtp::ValueError> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    for (name, bytes) in list::all()? {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        if writeln!(out, "{name} {hex}").is_err() {
            break;
        }
    }
    Ok(())
}
