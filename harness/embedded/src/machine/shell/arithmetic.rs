//! Evaluates arithmetic expansions.

use brush_parser::ast::{ArithmeticExpr, ArithmeticTarget, BinaryOperator, UnaryOperator};

use super::error::ShellError;
use super::interpreter::Shell;

impl Shell {
    /// Returns the value of an arithmetic expression. An unset variable counts as 0.
    pub(super) fn evaluate(&self, expression: &ArithmeticExpr) -> Result<i64, ShellError> {
        match expression {
            ArithmeticExpr::Literal(number) => Ok(*number),
            ArithmeticExpr::Reference(ArithmeticTarget::Variable(name)) => {
                match self.variables.get(name).map_or("", |value| value.trim()) {
                    "" => Ok(0),
                    value => value.parse().map_err(|_| ShellError::NotANumber),
                }
            }
            ArithmeticExpr::UnaryOp(operator, operand) => {
                let operand = self.evaluate(operand)?;
                Ok(match operator {
                    UnaryOperator::UnaryPlus => operand,
                    UnaryOperator::UnaryMinus => operand.wrapping_neg(),
                    UnaryOperator::BitwiseNot => !operand,
                    UnaryOperator::LogicalNot => i64::from(operand == 0),
                })
            }
            ArithmeticExpr::BinaryOp(operator, left, right) => {
                let left = self.evaluate(left)?;
                match operator {
                    BinaryOperator::LogicalAnd if left == 0 => Ok(0),
                    BinaryOperator::LogicalOr if left != 0 => Ok(1),
                    _ => binary(operator, left, self.evaluate(right)?),
                }
            }
            _ => Err(ShellError::Unsupported("this arithmetic expression")),
        }
    }
}

fn binary(operator: &BinaryOperator, left: i64, right: i64) -> Result<i64, ShellError> {
    Ok(match operator {
        BinaryOperator::Divide | BinaryOperator::Modulo if right == 0 => {
            return Err(ShellError::DivideByZero);
        }
        BinaryOperator::Add => left.wrapping_add(right),
        BinaryOperator::Subtract => left.wrapping_sub(right),
        BinaryOperator::Multiply => left.wrapping_mul(right),
        BinaryOperator::Divide => left.wrapping_div(right),
        BinaryOperator::Modulo => left.wrapping_rem(right),
        BinaryOperator::LessThan => i64::from(left < right),
        BinaryOperator::LessThanOrEqualTo => i64::from(left <= right),
        BinaryOperator::GreaterThan => i64::from(left > right),
        BinaryOperator::GreaterThanOrEqualTo => i64::from(left >= right),
        BinaryOperator::Equals => i64::from(left == right),
        BinaryOperator::NotEquals => i64::from(left != right),
        BinaryOperator::LogicalAnd | BinaryOperator::LogicalOr => i64::from(right != 0),
        _ => return Err(ShellError::Unsupported("this arithmetic operator")),
    })
}
