//! The direct parts of an expression.

use cel::IdedExpr;
use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr};

/// Returns the direct parts of an expression, such as the target and the arguments of a call.
pub(super) fn parts(expression: &Expr) -> Vec<&IdedExpr> {
    match expression {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Select(select) => vec![&*select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => parts_of_entries(&map.entries),
        Expr::Struct(fields) => parts_of_entries(&fields.entries),
        Expr::Comprehension(comprehension) => {
            let ComprehensionExpr { iter_range, accu_init, loop_cond, loop_step, result, .. } =
                &**comprehension;
            vec![iter_range, accu_init, loop_cond, loop_step, result]
        }
    }
}

fn parts_of_entries(entries: &[IdedEntryExpr]) -> Vec<&IdedExpr> {
    let mut parts = Vec::new();
    for entry in entries {
        match &entry.expr {
            EntryExpr::StructField(field) => parts.push(&field.value),
            EntryExpr::MapEntry(entry) => parts.extend([&entry.key, &entry.value]),
        }
    }
    parts
}
