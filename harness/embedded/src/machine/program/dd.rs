//! `dd`

use super::super::paths::OpenMode;
use super::super::size::parse_size;
use super::copy::{CopyProgram, Sink, Source};

/// Parses the operands of `dd`.
///
/// # Errors
/// The message of `dd` about a wrong operand.
pub(super) fn parse(operands: &[String]) -> Result<CopyProgram, String> {
    let (mut source, mut target) = (Source::Stdin, None);
    let (mut block, mut count, mut seek, mut skip) = (512, None, 0, 0);
    let (mut notrunc, mut append, mut prints_report) = (false, false, true);
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
            "seek" => seek = number()?,
            "skip" => skip = number()?,
            "conv" => notrunc |= value.split(',').any(|word| word == "notrunc"),
            "oflag" => append |= value.split(',').any(|word| word == "append"),
            "iflag" => {}
            "status" => prints_report = value != "none" && value != "noxfer",
            _ => return Err(format!("unrecognized operand '{operand}'")),
        }
    }
    let sink = match target {
        None => Sink::Stdout,
        Some(path) => {
            let mode = if append {
                OpenMode::Append
            } else if notrunc || seek > 0 {
                OpenMode::Update
            } else {
                OpenMode::Truncate
            };
            Sink::Path { path, mode, offset: seek.saturating_mul(block) }
        }
    };
    let mut copy = CopyProgram::new("dd", vec![source], sink);
    copy.limit = count.map(|count| block.saturating_mul(count));
    copy.block = block;
    copy.buffer = block;
    copy.skip = skip.saturating_mul(block);
    copy.prints_report = prints_report;
    Ok(copy)
}
