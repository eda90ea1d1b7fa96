//! `dd`

use super::super::files::Mode;
use super::copy::{Copy, Limit, Sink, Source};
use super::{Program, bytes};

/// The program of its operands; another one that complains if they are wrong.
pub(super) fn load(operands: &[String]) -> Program {
    match parse(operands) {
        Ok(copy) => Program::Copy(Box::new(copy)),
        Err(what) => {
            let text = format!("dd: {what}\n");
            Program::Say { name: "dd", text, stderr: true, code: 1 }
        }
    }
}

fn parse(operands: &[String]) -> Result<Copy, String> {
    let (mut source, mut target) = (Source::Stdin, None);
    let (mut block, mut count, mut seek, mut skip) = (512, None, 0, 0);
    let (mut keep, mut append, mut report) = (false, false, true);
    for operand in operands {
        let Some((name, value)) = operand.split_once('=') else {
            return Err(format!("unrecognized operand '{operand}'"));
        };
        let number = || bytes(value).ok_or_else(|| format!("invalid number '{value}'"));
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
            "conv" => keep |= value.split(',').any(|word| word == "notrunc"),
            "oflag" => append |= value.split(',').any(|word| word == "append"),
            "iflag" => {}
            "status" => report = value != "none" && value != "noxfer",
            _ => return Err(format!("unrecognized operand '{operand}'")),
        }
    }
    let sink = match target {
        None => Sink::Stdout,
        Some(path) => {
            let mode = if append {
                Mode::Append
            } else if keep || seek > 0 {
                Mode::Keep
            } else {
                Mode::Write
            };
            Sink::Path { path, mode, at: seek.saturating_mul(block) }
        }
    };
    Ok(Copy {
        limit: count.map_or(Limit::None, |count| Limit::Bytes(block.saturating_mul(count))),
        block,
        buffer: block,
        skip: skip.saturating_mul(block),
        report,
        ..Copy::new("dd", vec![source], sink)
    })
}
