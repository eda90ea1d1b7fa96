//! Types of the values of expressions, as far as their outermost operation decides.

use cel::IdedExpr;
use cel::common::ast::{Expr, LiteralValue, operators};

use super::concatenation::CONCAT_HOOK;
use super::functions::is_not_boolean;

/// Operators whose values are not booleans.
const ARITHMETIC: [&str; 7] = [
    operators::ADD,
    operators::SUBSTRACT,
    operators::MULTIPLY,
    operators::DIVIDE,
    operators::MODULO,
    operators::NEGATE,
    CONCAT_HOOK,
];

/// Returns whether the value of an expression cannot be a boolean: the outermost operation is
/// arithmetic, a literal of another type, or a function with another result type.
pub(super) fn is_never_boolean(expression: &IdedExpr) -> bool {
    match &expression.expr {
        Expr::Literal(literal) => !matches!(literal, LiteralValue::Boolean(_)),
        Expr::List(_) | Expr::Map(_) | Expr::Struct(_) => true,
        Expr::Call(call) => match (&*call.func_name, &call.args[..]) {
            (operators::CONDITIONAL, [_, then, otherwise]) => {
                is_never_boolean(then) && is_never_boolean(otherwise)
            }
            (name, _) => ARITHMETIC.contains(&name) || is_not_boolean(name),
        },
        // `map` and `filter` return the list that they collect.
        Expr::Comprehension(comprehension) => {
            matches!(comprehension.accu_init.expr, Expr::List(_))
                && matches!(comprehension.result.expr, Expr::Ident(_))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_and_literals_are_never_boolean() {
        for (text, expected) in [
            ("1 + 1", true),
            ("-t", true),
            ("t * 2 - 1", true),
            ("'text'", true),
            ("1.5", true),
            ("null", true),
            ("[true]", true),
            ("{'a': true}", true),
            ("size(events)", true),
            ("events.size()", true),
            ("duration('1s')", true),
            ("timestamp('2026-11-21T09:30:12Z')", true),
            ("quantity('1Mi')", true),
            ("logTime('')", true),
            ("condition(pods.a, 'Ready')", true),
            ("events.map(e, e.reason)", true),
            ("events.filter(e, true)", true),
            ("t > 5 ? 1 : 'a'", true),
            ("true", false),
            ("t > 5", false),
            ("!evicted(pods.a)", false),
            ("t > 5 ? 1 : true", false),
            ("events.exists(e, true)", false),
            ("events.all(e, 1 == 1)", false),
            ("events.exists_one(e, true)", false),
            ("pods.a.status.phase", false),
            ("has(pods.a)", false),
            ("1 in [1]", false),
            ("'a'.startsWith('a')", false),
            ("answers['a']", false),
        ] {
            let program = cel::Program::compile(text).unwrap();
            assert_eq!(is_never_boolean(program.expression()), expected, "{text}");
        }
    }
}
