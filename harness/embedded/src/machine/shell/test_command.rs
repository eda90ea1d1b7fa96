//! `[`

use brush_parser::ast::{BinaryPredicate, TestExpr, UnaryPredicate};

use crate::machine::disk::FileKind;
use crate::machine::ids::Pid;
use crate::machine::kernel::Kernel;
use crate::machine::paths::Location;

/// Returns whether an expression holds.
///
/// # Errors
/// A message about an expression that is invalid or not supported.
pub(super) fn test(arguments: &[String], pid: Pid, kernel: &mut Kernel) -> Result<bool, String> {
    let expression = brush_parser::test_command::parse(arguments).map_err(|_| "syntax error".to_owned())?;
    evaluate(&expression, pid, kernel)
}

fn evaluate(expression: &TestExpr, pid: Pid, kernel: &mut Kernel) -> Result<bool, String> {
    match expression {
        TestExpr::False => Ok(false),
        TestExpr::Literal(text) => Ok(!text.is_empty()),
        TestExpr::And(left, right) => Ok(evaluate(left, pid, kernel)? && evaluate(right, pid, kernel)?),
        TestExpr::Or(left, right) => Ok(evaluate(left, pid, kernel)? || evaluate(right, pid, kernel)?),
        TestExpr::Not(inner) => Ok(!evaluate(inner, pid, kernel)?),
        TestExpr::Parenthesized(inner) => evaluate(inner, pid, kernel),
        TestExpr::UnaryTest(predicate, operand) => unary(predicate, operand, pid, kernel),
        TestExpr::BinaryTest(predicate, left, right) => binary(predicate, left, right),
    }
}

fn unary(predicate: &UnaryPredicate, operand: &str, pid: Pid, kernel: &mut Kernel) -> Result<bool, String> {
    match predicate {
        UnaryPredicate::StringHasZeroLength => return Ok(operand.is_empty()),
        UnaryPredicate::StringHasNonZeroLength => return Ok(!operand.is_empty()),
        _ => {}
    }
    // The kind and the size of a file; `None` for a device.
    let file = match kernel.resolve(pid, operand) {
        None => return Ok(false),
        Some(Location::Device(_) | Location::Descriptor(_)) => None,
        Some(Location::Procfs(_)) => Some((FileKind::Regular, 0)),
        Some(Location::Entry(tree, name)) => {
            match kernel.disk.lookup(tree, &name).and_then(|id| kernel.disk.file(id)) {
                Some(file) => match file.kind {
                    FileKind::Log(key) => Some((file.kind, kernel.log_usage(key).bytes)),
                    kind => Some((kind, file.size)),
                },
                None if kernel.is_directory(pid, tree, &name) => Some((FileKind::Directory, 4096)),
                None => return Ok(false),
            }
        }
    };
    Ok(match predicate {
        UnaryPredicate::FileExists
        | UnaryPredicate::FileExistsAndIsReadable
        | UnaryPredicate::FileExistsAndIsWritable => true,
        UnaryPredicate::FileExistsAndIsDir => matches!(file, Some((FileKind::Directory, _))),
        UnaryPredicate::FileExistsAndIsRegularFile => {
            matches!(file, Some((FileKind::Regular | FileKind::Log(_), _)))
        }
        UnaryPredicate::FileExistsAndIsNotZeroLength => file.is_some_and(|(_, size)| size > 0),
        _ => return Err("this operator is not supported by this model".to_owned()),
    })
}

fn binary(predicate: &BinaryPredicate, left: &str, right: &str) -> Result<bool, String> {
    use BinaryPredicate as P;
    let numbers = left.trim().parse::<i64>().ok().zip(right.trim().parse::<i64>().ok());
    let compare = |holds: fn(&i64, &i64) -> bool| numbers.is_some_and(|(left, right)| holds(&left, &right));
    Ok(match predicate {
        P::StringExactlyMatchesString | P::StringExactlyMatchesPattern => left == right,
        P::StringDoesNotExactlyMatchString | P::StringDoesNotExactlyMatchPattern => left != right,
        P::ArithmeticEqualTo => compare(i64::eq),
        P::ArithmeticNotEqualTo => compare(i64::ne),
        P::ArithmeticLessThan => compare(i64::lt),
        P::ArithmeticLessThanOrEqualTo => compare(i64::le),
        P::ArithmeticGreaterThan => compare(i64::gt),
        P::ArithmeticGreaterThanOrEqualTo => compare(i64::ge),
        _ => return Err("this operator is not supported by this model".to_owned()),
    })
}
