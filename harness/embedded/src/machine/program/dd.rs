//! `dd`

use super::copy::{CopyProgram, Sink, Source};
use crate::machine::paths::OpenMode;
use crate::machine::size::parse_size;

/// Parses the operands of `dd`.
///
/// # Errors
/// The message of `dd` about a wrong operand.
pub(super) fn parse(operands: &[String]) -> Result<CopyProgram, String> {
    let (mut source, mut target) = (Source::Stdin, None);
    let (mut block, mut count) = (512, None);
    let (mut append, mut prints_report) = (false, true);
    for operand in operands {
        let Some((name, value)) = operand.split_once('=') else {
            return Err(format!("unrecognized operand '{operand}'"));
        };
        let number = || parse_size(value).ok_or_else(|| format!("invalid number '{value}'"));
        match name {
            "if" => source = Source::Path(value.to_owned()),
            "of" => target = Some(value.to_owned()),
            "bs" | "ibs" | "obs" => {
                block = number()?;
                if block == 0 {
                    return Err(format!("number {value} is not in 1..2147483647 range"));
                }
            }
            "count" => count = Some(number()?),
            // Leaves a hole, which takes no blocks: the length of files is not modelled.
            "seek" => drop(number()?),
            "oflag" => append |= value.split(',').any(|word| word == "append"),
            "iflag" => {}
            "status" => prints_report = value != "none" && value != "noxfer",
            _ => return Err(format!("unrecognized operand '{operand}'")),
        }
    }
    let sink = match target {
        None => Sink::Stdout,
        Some(path) => {
            let mode = if append { OpenMode::Append } else { OpenMode::Truncate };
            Sink::Path { path, mode }
        }
    };
    let mut copy = CopyProgram::new("dd", vec![source], sink);
    copy.limit = count.map(|count| block.saturating_mul(count));
    copy.block = block;
    copy.buffer = block;
    copy.prints_report = prints_report;
    Ok(copy)
}
