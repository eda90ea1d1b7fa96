//! The depth of nested macros.

use cel::IdedExpr;
use cel::common::ast::Expr;

use super::parts::parts;

/// Returns the maximum number of macros of which each is in an iteration of the one around it. A
/// macro over the result of another one is not nested.
pub(super) fn macro_depth(expression: &IdedExpr) -> usize {
    match &expression.expr {
        Expr::Comprehension(comprehension) => {
            let outside =
                deepest([&comprehension.iter_range, &comprehension.accu_init, &comprehension.result]);
            let inside = deepest([&comprehension.loop_cond, &comprehension.loop_step]);
            outside.max(inside + 1)
        }
        other => deepest(parts(other)),
    }
}

fn deepest<'a>(parts: impl IntoIterator<Item = &'a IdedExpr>) -> usize {
    parts.into_iter().map(macro_depth).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_in_iterations_are_nested() {
        for (text, expected) in [
            ("t > 5", 0),
            ("has(pods.a)", 0),
            ("samples.all(a, true)", 1),
            ("samples.map(a, a).map(b, b)", 1),
            ("samples.map(a, a.pods.filter(b, b == 1)).map(c, c)", 2),
            ("samples.all(a, true) && samples.all(b, samples.exists(c, {'d': [1].map(d, d)} == c))", 3),
        ] {
            let program = cel::Program::compile(text).unwrap();
            assert_eq!(macro_depth(program.expression()), expected, "{text}");
        }
    }
}
