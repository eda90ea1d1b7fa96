//! Fields that an expression reads and that cannot exist.

use cel::IdedExpr;
use cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue, operators};

use super::shape::{ITERATION, ObjectTypes, Shape};

/// A field that an object cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownField {
    /// The object, as the expression names it.
    pub(crate) of: String,
    /// The field.
    pub(crate) name: String,
    /// The fields of the object.
    pub(crate) known: Vec<&'static str>,
}

/// Returns the fields that an expression reads and that cannot exist.
pub(super) fn unknown_fields(expression: &IdedExpr, objects: &ObjectTypes<'_>) -> Vec<UnknownField> {
    let mut inference = Inference { objects, bound: Vec::new(), found: Vec::new() };
    inference.shape(expression);
    inference.found
}

struct Inference<'a> {
    objects: &'a ObjectTypes<'a>,
    /// Variables that macros bind, innermost last.
    bound: Vec<(String, Shape)>,
    found: Vec<UnknownField>,
}

impl Inference<'_> {
    fn shape(&mut self, expression: &IdedExpr) -> Shape {
        match &expression.expr {
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => {
                let operand = self.shape(&select.operand);
                self.field(&select.operand, &operand, &select.field)
            }
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                let items: Vec<Shape> = list.elements.iter().map(|item| self.shape(item)).collect();
                Shape::List(Box::new(items.into_iter().fold(Shape::Never, Shape::or)))
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.shape(&entry.key);
                        self.shape(&entry.value);
                    }
                }
                Shape::Any
            }
            Expr::Comprehension(all) => {
                let item = self.shape(&all.iter_range).item(false);
                let start = self.shape(&all.accu_init);
                let outside = self.bound.len();
                self.bound.push((all.iter_var.clone(), item));
                self.bound.extend(all.iter_var2.iter().map(|name| (name.clone(), Shape::Any)));
                self.bound.push((all.accu_var.clone(), start));
                self.shape(&all.loop_cond);
                let step = self.shape(&all.loop_step);
                self.bound.truncate(outside);
                self.bound.push((all.accu_var.clone(), step));
                let result = self.shape(&all.result);
                self.bound.truncate(outside);
                result
            }
            _ => Shape::Any,
        }
    }

    fn variable(&self, name: &str) -> Shape {
        let bound = self.bound.iter().rev().find(|(bound, _)| bound == name);
        bound.map_or_else(|| Shape::of_variable(name, self.objects), |(_, shape)| shape.clone())
    }

    fn field(&mut self, operand: &IdedExpr, of: &Shape, name: &str) -> Shape {
        of.field(name).unwrap_or_else(|known| {
            let unknown = UnknownField { of: describe(operand), name: name.to_owned(), known };
            if !self.found.contains(&unknown) {
                self.found.push(unknown);
            }
            Shape::Any
        })
    }

    fn call(&mut self, call: &CallExpr) -> Shape {
        if let Some(target) = &call.target {
            self.shape(target);
        }
        let shapes: Vec<Shape> = call.args.iter().map(|argument| self.shape(argument)).collect();
        match (&*call.func_name, &call.args[..], &shapes[..]) {
            (operators::INDEX, [operand, key], [of, _]) => match &key.expr {
                Expr::Literal(LiteralValue::String(key)) => self.field(operand, of, key.inner()),
                _ => of.item(true),
            },
            (operators::CONDITIONAL, [condition, ..], [_, then, otherwise]) => match &condition.expr {
                Expr::Ident(name) if name == ITERATION => then.clone(),
                _ => then.clone().or(otherwise.clone()),
            },
            (operators::ADD, _, [one, other]) => one.clone().or(other.clone()),
            (name, ..) => Shape::of_function(name),
        }
    }
}

/// Returns the text of a path, such as `pods.web.spec`.
fn describe(expression: &IdedExpr) -> String {
    match &expression.expr {
        Expr::Ident(name) => name.clone(),
        Expr::Select(select) => format!("{}.{}", describe(&select.operand), select.field),
        Expr::Call(CallExpr { func_name, args, .. }) if func_name == operators::INDEX => match &args[..] {
            [of, key] => match &key.expr {
                Expr::Literal(LiteralValue::String(key)) => format!("{}['{}']", describe(of), key.inner()),
                _ => format!("{}[…]", describe(of)),
            },
            _ => "…".to_owned(),
        },
        Expr::Call(call) => format!("{}(…)", call.func_name),
        _ => "…".to_owned(),
    }
}
