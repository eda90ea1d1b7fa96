//! Warnings about cases that can run.

use crate::expression::{Expression, MAX_ITERATIONS};
use crate::load::LoadedCase;
use crate::positions::PathSegment;
use crate::problem::Problem;

/// Maximum depth of nested macros without a warning: each level multiplies the iterations by the
/// length of its list, and six lists of 10 items exceed the limit.
const MAX_MACRO_DEPTH: usize = 4;

impl LoadedCase {
    /// Returns what may end the case with an error, although it is valid: expressions that may be
    /// too costly to evaluate.
    pub fn warnings(&self) -> Vec<Problem> {
        let expressions = self.case.located_expressions();
        expressions.iter().filter_map(|(path, expression)| self.costly_expression(path, expression)).collect()
    }

    fn costly_expression(&self, path: &[PathSegment], expression: &Expression) -> Option<Problem> {
        let depth = Some(expression.macro_depth()).filter(|depth| *depth > MAX_MACRO_DEPTH)?;
        let note = format!("an expression whose macros iterate more than {MAX_ITERATIONS} times is an error");
        Some(Problem {
            message: format!("the macros of the expression are nested {depth} deep"),
            spans: vec![self.span(path, &note)],
        })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn deeply_nested_macros_have_a_warning() {
        let warnings = |until: &str| -> Vec<String> {
            let text = format!(
                "name: a\nabout: b\npods: [{{metadata: {{name: p}}, spec: {{containers: [{{name: c, image: agnhost:2.52}}]}}}}]\n\
                 until: \"{until}\"\nexpect: {{evicted: []}}\n"
            );
            let case = crate::parse("s", "s/a.yaml", "a.yaml", text.as_bytes()).unwrap();
            case.warnings().iter().map(ToString::to_string).collect()
        };
        let nested = |depth: usize| {
            let names = &["a", "b", "c", "d", "e", "f", "g", "h"][..depth];
            names.iter().rev().fold("true".to_owned(), |inner, name| format!("samples.all({name}, {inner})"))
        };
        assert_eq!(warnings(&nested(4)), [""; 0]);
        // A macro over the result of another one is not nested.
        let chained = "samples.map(a, a).map(b, b).map(c, c).map(d, d).map(e, e).size() > 0";
        assert_eq!(warnings(chained), [""; 0]);
        for depth in [5, 8] {
            let found = warnings(&nested(depth));
            let message = format!("the macros of the expression are nested {depth} deep\n");
            assert!(found.len() == 1 && found[0].starts_with(&message), "{found:?}");
            assert!(found[0].contains("a.yaml:4:8") && found[0].contains("100000 times"), "{found:?}");
        }
    }
}
