//! `test`, `[` and `[[`.

use brush_parser::ast::{BinaryPredicate, TestExpr, UnaryPredicate};

use super::super::disk::FileKind;
use super::super::files::Place;
use super::super::kernel::Kernel;
use super::super::process::Pid;
use super::Shell;
use super::code::Test;
use super::expand::Bad;

/// The status of `test` with these arguments.
pub(super) fn test(arguments: &[String], me: Pid, kernel: &mut Kernel) -> i32 {
    match brush_parser::test_command::parse(arguments) {
        Ok(expression) => i32::from(!evaluate(&expression, me, kernel)),
        Err(_) => 2,
    }
}

fn evaluate(expression: &TestExpr, me: Pid, kernel: &mut Kernel) -> bool {
    match expression {
        TestExpr::False => false,
        TestExpr::Literal(text) => !text.is_empty(),
        TestExpr::And(left, right) => evaluate(left, me, kernel) && evaluate(right, me, kernel),
        TestExpr::Or(left, right) => evaluate(left, me, kernel) || evaluate(right, me, kernel),
        TestExpr::Not(inner) => !evaluate(inner, me, kernel),
        TestExpr::Parenthesized(inner) => evaluate(inner, me, kernel),
        TestExpr::UnaryTest(predicate, operand) => unary(predicate, operand, me, kernel),
        TestExpr::BinaryTest(predicate, left, right) => binary(predicate, left, right),
    }
}

fn unary(predicate: &UnaryPredicate, operand: &str, me: Pid, kernel: &mut Kernel) -> bool {
    use UnaryPredicate as P;
    match predicate {
        P::StringHasZeroLength => return operand.is_empty(),
        P::StringHasNonZeroLength => return !operand.is_empty(),
        P::FdIsOpenTerminal => return false,
        _ => {}
    }
    let (kind, size) = match kernel.place(me, operand) {
        None => return false,
        Some(Place::Device(_) | Place::Descriptor(_)) => {
            return matches!(
                predicate,
                P::FileExists
                    | P::FileExistsAndIsCharSpecialFile
                    | P::FileExistsAndIsReadable
                    | P::FileExistsAndIsWritable
            );
        }
        Some(Place::Fact(_)) => (FileKind::Regular, 0),
        Some(Place::Name(store, name)) => {
            match kernel.disk.named(store, &name).and_then(|id| kernel.disk.file(id)) {
                Some(file) => match file.kind {
                    FileKind::Log(key) => (file.kind, kernel.log_blocks(key).bytes),
                    kind => (kind, file.size),
                },
                None if kernel.is_directory(me, store, &name) => (FileKind::Directory, 4096),
                None => return false,
            }
        }
    };
    match predicate {
        P::FileExists | P::FileExistsAndIsReadable | P::FileExistsAndIsWritable => true,
        P::FileExistsAndIsDir => kind == FileKind::Directory,
        P::FileExistsAndIsRegularFile => matches!(kind, FileKind::Regular | FileKind::Log(_)),
        P::FileExistsAndIsFifo => matches!(kind, FileKind::Fifo(_)),
        P::FileExistsAndIsNotZeroLength => size > 0,
        P::FileExistsAndIsExecutable => kind == FileKind::Directory,
        _ => false,
    }
}

fn binary(predicate: &BinaryPredicate, left: &str, right: &str) -> bool {
    use BinaryPredicate as P;
    let numbers = || left.trim().parse::<i64>().ok().zip(right.trim().parse::<i64>().ok());
    let compared = |by: fn(&i64, &i64) -> bool| numbers().is_some_and(|(left, right)| by(&left, &right));
    match predicate {
        P::StringExactlyMatchesString | P::StringExactlyMatchesPattern => left == right,
        P::StringDoesNotExactlyMatchString | P::StringDoesNotExactlyMatchPattern => left != right,
        P::StringContainsSubstring => left.contains(right),
        P::LeftSortsBeforeRight => left < right,
        P::LeftSortsAfterRight => left > right,
        P::ArithmeticEqualTo => compared(i64::eq),
        P::ArithmeticNotEqualTo => compared(i64::ne),
        P::ArithmeticLessThan => compared(i64::lt),
        P::ArithmeticLessThanOrEqualTo => compared(i64::le),
        P::ArithmeticGreaterThan => compared(i64::gt),
        P::ArithmeticGreaterThanOrEqualTo => compared(i64::ge),
        _ => false,
    }
}

impl Shell {
    /// `[[ … ]]`
    pub(super) fn extended_test(&mut self, test: &Test, me: Pid, kernel: &mut Kernel) -> Result<bool, Bad> {
        Ok(match test {
            Test::And(left, right) => {
                self.extended_test(left, me, kernel)? && self.extended_test(right, me, kernel)?
            }
            Test::Or(left, right) => {
                self.extended_test(left, me, kernel)? || self.extended_test(right, me, kernel)?
            }
            Test::Not(inner) => !self.extended_test(inner, me, kernel)?,
            Test::Unary(predicate, word) => {
                let operand = self.single(word)?;
                unary(predicate, &operand, me, kernel)
            }
            Test::Binary(predicate, left, right) => {
                let left = self.single(left)?;
                match predicate {
                    BinaryPredicate::StringExactlyMatchesPattern => self.pattern(right)?.matches(&left),
                    BinaryPredicate::StringDoesNotExactlyMatchPattern => !self.pattern(right)?.matches(&left),
                    _ => binary(predicate, &left, &self.single(right)?),
                }
            }
        })
    }
}
