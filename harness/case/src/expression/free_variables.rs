//! Variables that an expression reads outside of the macros that bind them.

use std::collections::BTreeSet;

use cel::IdedExpr;
use cel::common::ast::{ComprehensionExpr, Expr};

use super::parts::parts;

/// Returns the variables of an expression that no macro around them binds.
pub(super) fn free_variables(expression: &IdedExpr) -> BTreeSet<&str> {
    let mut walk = Walk::default();
    walk.visit(expression);
    walk.free
}

#[derive(Default)]
struct Walk<'a> {
    /// Variables that macros bind, innermost last.
    bound: Vec<&'a str>,
    free: BTreeSet<&'a str>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, expression: &'a IdedExpr) {
        match &expression.expr {
            Expr::Ident(name) => {
                if !self.bound.contains(&name.as_str()) {
                    self.free.insert(name);
                }
            }
            Expr::Comprehension(comprehension) => self.visit_macro(comprehension),
            other => parts(other).into_iter().for_each(|part| self.visit(part)),
        }
    }

    /// Visits a macro. The list of a macro is outside of the scope of its variables; only the
    /// accumulator is in the scope of its result.
    fn visit_macro(&mut self, comprehension: &'a ComprehensionExpr) {
        self.visit(&comprehension.iter_range);
        self.visit(&comprehension.accu_init);
        let outside = self.bound.len();
        self.bound.push(&comprehension.accu_var);
        self.bound.push(&comprehension.iter_var);
        self.bound.extend(comprehension.iter_var2.as_deref());
        self.visit(&comprehension.loop_cond);
        self.visit(&comprehension.loop_step);
        self.bound.truncate(outside + 1);
        self.visit(&comprehension.result);
        self.bound.truncate(outside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_macro_binds_its_variable_within_its_brackets() {
        for (text, expected) in [
            ("samples.all(s, s.t > 1)", "samples"),
            ("samples.all(s, s.t > 1) && s.t < 9", "s samples"),
            ("s.exists(s, s.t > 1)", "s"),
            ("samples.map(s, s.pods.filter(p, p.t == s.t && q.t == 1))", "q samples"),
            ("samples.all(a, true) && samples.all(b, a == 1)", "a samples"),
            ("'.all(x, ' == x", "x"),
            ("[x].map(y, {y: z})[k]", "k x z"),
            ("{a: [b], 'c': d.e}", "a b d"),
            ("has(pods.web) ? [t] : [minor]", "minor pods t"),
            ("samples.exists_one(s, s == t)", "samples t"),
            ("size(evictions)", "evictions"),
        ] {
            let program = cel::Program::compile(text).unwrap();
            let free: Vec<_> = free_variables(program.expression()).into_iter().collect();
            assert_eq!(free.join(" "), expected, "{text}");
        }
    }
}
